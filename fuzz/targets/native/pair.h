/* SPDX-License-Identifier: Apache-2.0
 * Both sides of a target and what is said of an input. */
#ifndef CROSSLANE_PAIR_H
#define CROSSLANE_PAIR_H

#include "target.h"

#define MAX_ROWS 256u

enum { PAIR_AGREES, PAIR_STATUS, PAIR_OUTPUT, PAIR_WATCHER, PAIR_GONE };

struct pair_departure {
    uint32_t what, op, kind, verdict, symptom, reserved;
    uint64_t offset; /* of the first byte that differs, in the operation's output */
};

EXPORTED int pair_open(const struct side *oracle, const struct side *tested, unsigned family, unsigned watch);
/* 0; 1 where the CPU lacks what an implementation needs; -1 where there are too many rows. */
EXPORTED int pair_add(uint32_t number);
EXPORTED uint8_t *pair_counters(void);
EXPORTED uint32_t pair_num_paths(void);
EXPORTED const char *pair_path_name(uint32_t index);
EXPORTED int pair_one(const uint8_t *data, size_t len);
EXPORTED void pair_decode(const uint8_t *data, size_t len);
EXPORTED const struct pair_departure *pair_found(void);
EXPORTED const uint8_t *pair_batch(uint64_t *len);
EXPORTED uint32_t pair_row(void);
EXPORTED void pair_counts(uint64_t *executions, uint64_t *messages);

/* remote.c: a subject in another process */
enum { REMOTE_GONE = -1 };
EXPORTED void remote_use(uint8_t *to_guest, uint8_t *from_guest, int pid);
EXPORTED int remote_wait_ready(uint32_t milliseconds);
uint8_t *remote_batch(void);
void remote_start(uint32_t row, size_t len);
int remote_finish(void); /* as struct side's run, or REMOTE_GONE */
const uint8_t *remote_results(void);

#endif
