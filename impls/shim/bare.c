/* SPDX-License-Identifier: Apache-2.0
 * The same calls without the suite: what `crosslane bench harness` measures the suite against. */
#define _GNU_SOURCE
#include <time.h>

#include "shim.h"

#define BARE_CONTEXT_LEN 8192u

uint64_t cpu_time_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t bare_run(uint64_t num_messages, uint64_t message_len, uint64_t messages_per_key, uint64_t *cpu_ns)
{
    static _Alignas(64) uint8_t ctx[2][BARE_CONTEXT_LEN];
    static uint8_t data[65536];
    static struct subject_state state;
    uint8_t iv[SUBJECT_MAX_BLOCK_LEN] = {0}, running[SUBJECT_MAX_BLOCK_LEN], key[32] = {0};
    struct subject_message m = {&subject.bare, ctx[0], ctx[1], running, &state};
    uint64_t digest = 0, begun = cpu_time_ns();
    for (uint64_t i = 0; i < num_messages; i++) {
        if (i % messages_per_key == 0) {
            store_le64(key, i);
            (void)subject.mode->setkey(&m, key, 16, 0);
        }
        store_le64(iv, i);
        memset(&state, 0, offsetof(struct subject_state, extra));
        (void)subject.mode->setiv(&m, iv, subject.mode->iv_out_len(&m));
        (void)subject.mode->update(&m, data, data, message_len, 1);
        (void)subject.mode->final(&m);
        digest += load_le64(data);
    }
    *cpu_ns = cpu_time_ns() - begun;
    return digest;
}
