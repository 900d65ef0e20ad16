/* SPDX-License-Identifier: Apache-2.0
 * What the parts of a fuzz target share. docs/reference/fuzz-targets.md has the form of an input.
 *
 * A side is one program's worth of shim around some implementations: the subject's, whose code is instrumented, and the
 * oracle's, whose is not. Both run batches of one case. The host's process holds the oracle's side; the subject's is beside
 * it, or in a program that an emulator runs. */
#ifndef CROSSLANE_TARGET_H
#define CROSSLANE_TARGET_H

#include <stddef.h>
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))

#define MAX_OPS 48u
#define MAX_BLOB_LEN 32768u
#define MAX_BATCH_LEN (192u + 48u * MAX_OPS + MAX_BLOB_LEN)
#define MAX_RESULTS_LEN 65536u
#define MAX_COUNTERS 16384u
#define MAX_COMPARISONS 64u

enum { FAMILY_ONESHOT, FAMILY_STREAMING, FAMILY_AEAD, FAMILY_KEYSCHEDULE, NUM_FAMILIES };
enum { SPLIT_BYTE, SPLIT_BLOCK, SPLIT_NONE };
enum { PARTIAL_REFUSED, PARTIAL_ANYWHERE, PARTIAL_STEALING };
enum { IV_OUT_NONE, IV_OUT_NEXT, IV_OUT_WHOLE };

/* One algorithm of one implementation. Lengths in bytes, lists with their number before them. */
struct target_row {
    const char *cell; /* "ctr(sm4)/sm4-ce", for people */
    const char *mode, *symbol, *generic, *cipher;
    uint16_t num_key_lens, key_lens[40];
    uint16_t num_iv_lens, iv_lens[20];
    uint16_t num_tag_lens, tag_lens[12];
    uint8_t families; /* bit set */
    uint8_t block_len, min_len, split, partial, iv_out, is_mac, is_aead, decrypts, policies;
};

/* Generated for each target; ends with a row whose members are NULL. */
extern const struct target_row target_rows[];

/* ---- decode.c --------------------------------------------------------------------------------------------- */

struct decoded {
    size_t batch_len;
    uint32_t num_ops;
    uint64_t out_len;
    int decrypting; /* to be sealed first: the batch encrypts */
    uint8_t tamper, where;
    uint8_t *batch; /* MAX_BATCH_LEN bytes */
};

/* Which row an input chooses among `num` of them. */
unsigned decode_row(const uint8_t *data, size_t len, unsigned num);
/* Makes a batch of one case of any bytes. Nothing fails: what no case can have is replaced by what one can. */
void decode_input(struct decoded *d, const uint8_t *data, size_t len, const struct target_row *row, unsigned family);
/* The batch as it decrypts, of what it gave when it encrypted: `results` has the form of the wire protocol. */
void decode_seal(struct decoded *d, const uint8_t *results);
size_t decode_results_len(const struct decoded *d);

/* ---- side.c ----------------------------------------------------------------------------------------------- */

struct side {
    /* 0, or 1 where the CPU lacks what the implementation needs. `generic`: the row's oracle. */
    int (*open)(const struct target_row *row, int generic, unsigned watch);
    /* 1 where a watcher objected, which the results say; 0 otherwise. */
    int (*run)(const uint8_t *batch, size_t batch_len, uint8_t *results, size_t results_len);
    /* Code paths of all implementations in it. */
    unsigned (*num_paths)(void);
    const char *(*path_name)(unsigned index);
    /* From now on hits are told there, 16 bytes a path, one for each length class. */
    void (*count_paths)(uint8_t *counters);
    /* From a handler of SIGTRAP: 1 where the trap was one of a path, and execution goes on behind it. */
    int (*hit)(void *context);
};
extern EXPORTED const struct side SIDE_NAME;

/* path_counters.c, in place of the shim's paths.c */
void paths_count_into(uint8_t *counters);
unsigned paths_total(void);
const char *paths_title(unsigned index);

/* ---- shared with a program under an emulator ------------------------------------------------------------------ */

struct request { /* written by the host alone */
    uint32_t turn, row, len, asleep;
};
struct comparison {
    uint64_t one, other;
    uint32_t len, constant;
};
struct answer { /* written by the guest alone, ahead of counters, comparisons and results */
    uint32_t turn, departed, ready, num_paths;
    uint32_t num_counters, num_comparisons, declined, asleep;
};
enum { GUEST_AWAKE, GUEST_ASLEEP, GUEST_ENDED };
#define BATCH_AT 4096u
#define COUNTERS_AT 4096u
#define COMPARISONS_AT (COUNTERS_AT + MAX_COUNTERS)
#define NAMES_AT (COMPARISONS_AT + 24u * MAX_COMPARISONS)
#define RESULTS_AT (NAMES_AT + 64u * 32u)
#define REQUEST_MEMORY (BATCH_AT + MAX_BATCH_LEN + 4096u)
#define ANSWER_MEMORY (RESULTS_AT + MAX_RESULTS_LEN)

#endif
