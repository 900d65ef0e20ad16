/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the bench program share. It links implementations and modes as the shim does, but calls them bare:
 * no thunks, no guard pages, no copies. src/crosslane/bench/program.py writes its arguments and reads its answers.
 */
#ifndef CROSSLANE_BENCH_H
#define CROSSLANE_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include "subject.h"

#define BENCH_MAX_SUBJECTS 16u
#define BENCH_MAX_SIZES 32u
#define BENCH_MAX_LEN (UINT64_C(1) << 20)
#define BENCH_MAX_KEY_LEN 96u

/* What all subjects of one run compute. Lengths in bytes. */
struct bench_job {
    const char *mode;
    const char *cipher;
    int decrypting;
    size_t key_len; /* of the mode: all its cipher keys and what it takes besides */
    size_t iv_len;
    size_t tag_len;
    size_t update_len; /* a message is given in pieces of this length; 0: in one piece */
    uint64_t hide;     /* CPU features masked from the getters */
    int peer_hardware; /* libraries may use CPU features */
    uint8_t key[BENCH_MAX_KEY_LEN];
    uint8_t iv[256];
};

/* One message under the key: setiv, updates, final, tag. Returns 0, or the status of the call that refused. For a mode
 * with tags `tag` is written when encrypting and compared when decrypting. */
typedef int bench_message_fn(void *self, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *tag);

enum bench_answer { BENCH_READY, BENCH_DECLINED, BENCH_UNSUPPORTED, BENCH_UNKNOWN };

struct bench_subject {
    const char
        *name; /* a library, or a getter's symbol; behind the latter :composed for the mode without fused functions */
    enum bench_answer answer;
    void *self; /* context of one direction; the other direction's, where tags need it, is made by a second open */
    bench_message_fn *message;
};

/* Fills answer, self and message of a subject whose name is set. */
void bench_open_own(struct bench_subject *s, const struct bench_job *job);

/* Fills the same of a subject whose messages do nothing. */
void bench_open_nothing(struct bench_subject *s, const struct bench_job *job);

/* A library whose ciphers are measured beside ours; the program without peers has an empty table. */
struct bench_library {
    const char *name;
    const char *(*version)(void);
    void *(*open)(const struct bench_job *job); /* NULL: it lacks the algorithm or the key length */
    bench_message_fn *message;
};

/* Ends with an entry whose members are all NULL. */
extern const struct bench_library bench_libraries[];

/* ---- clocks ---- */

enum bench_clock { BENCH_CLOCK_AUTO, BENCH_CLOCK_PERF, BENCH_CLOCK_TSC, BENCH_CLOCK_NONE };

struct bench_time {
    uint64_t ns;
    uint64_t cycles; /* 0 where no cycle counter is used */
};

/* Opens the wanted clock or ends the program with a sentence; prints the line that says which one it is. */
void bench_clock_open(enum bench_clock wanted);
struct bench_time bench_clock_now(void);

_Noreturn void bench_fail(const char *sentence);

#endif
