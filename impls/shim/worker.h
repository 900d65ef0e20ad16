/* SPDX-License-Identifier: Apache-2.0
 * One thread's share of a THREADS request (threads.c): runs cases without watching them (worker.c). */
#ifndef CROSSLANE_WORKER_H
#define CROSSLANE_WORKER_H

#include "shim.h"

#define MAX_CONTEXT_LEN 8192u

/* What the cases of a batch answered. */
struct outcome {
    uint8_t *statuses;
    uint8_t *out;
};

/* Memory around a page's beginning: what is placed there has its middle at the border, or nearly. */
struct room {
    uint8_t *start;
    uint8_t *border;
};

struct worker {
    unsigned number;
    uint8_t *signal_stack;
    const volatile uint32_t *other; /* progress of the other one */
    struct held held[NUM_SLOTS];
    uint8_t stages[NUM_SLOTS]; /* enum stage of worker.c */
    int placed[NUM_SLOTS];
    uint8_t iv[NUM_SLOTS][SUBJECT_MAX_BLOCK_LEN];
    struct room contexts[NUM_SLOTS][2], in, out;
    uint8_t *closed; /* the page that cannot be reached now */
    unsigned num_closed;
    int held_up;
    struct outcome outcome;
    struct test_case test_case; /* under way */
    uint64_t case_index, op_index;
    volatile uint32_t progress; /* operations ended */
    uint64_t num_beside;
    struct threads_result *result; /* the first departure */
};

void worker_begin_case(struct worker *w, uint64_t index);
/* Runs the next operation of the case and returns its kind; 0 where there is none left. */
unsigned worker_step(struct worker *w);
void worker_run_case(struct worker *w, uint64_t index);
/* Holds the case just run against what it gave first; only the worker's first departure is kept. */
void worker_compare(struct worker *w, const struct outcome *expected, unsigned how);
void worker_open_page(struct worker *w);

#endif
