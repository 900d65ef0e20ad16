/* SPDX-License-Identifier: Apache-2.0
 * A target without Python, for engines that link LLVMFuzzerTestOneInput. A departure ends it, as these engines want it. */
#include "pair.h"

#include <stdio.h>
#include <stdlib.h>

extern const struct side oracle_side, subject_side;

/* All watchers but that of wiping: instrumented code leaves what it compares on the stack. */
#define WATCHED 31u

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* libFuzzer's, where that is the engine. */
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*one)(const uint8_t *data, size_t len)) __attribute__((weak));
void __sanitizer_cov_8bit_counters_init(uint8_t *start, uint8_t *stop) __attribute__((weak));
void __sanitizer_cov_pcs_init(const uintptr_t *start, const uintptr_t *stop) __attribute__((weak));

static void count_paths(void)
{
    static uintptr_t places[2 * MAX_COUNTERS]; /* libFuzzer wants a place in the code for each counter, and its flags */
    uint32_t number = 16 * pair_num_paths();
    if (LLVMFuzzerRunDriver == NULL || __sanitizer_cov_8bit_counters_init == NULL || __sanitizer_cov_pcs_init == NULL ||
        number == 0) {
        return;
    }
    for (uint32_t i = 0; i < number; i++) {
        places[2 * (size_t)i] = (uintptr_t)(pair_counters() + i);
    }
    __sanitizer_cov_8bit_counters_init(pair_counters(), pair_counters() + number);
    __sanitizer_cov_pcs_init(places, places + 2 * (size_t)number);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    unsigned added = 0;
    (void)argc;
    (void)argv;
    (void)pair_open(&oracle_side, &subject_side, FAMILY, WATCHED);
    for (uint32_t i = 0; target_rows[i].mode != NULL; i++) {
        if ((target_rows[i].families >> FAMILY & 1u) != 0) {
            added += pair_add(i) == 0; /* others are for CPUs with more than this one has */
        }
    }
    if (added == 0) {
        fprintf(stderr, "crosslane: this CPU runs none of the implementations in this target\n");
        exit(2);
    }
    count_paths();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const char *const words[] = {"", "status", "output", "what a watcher saw"};
    int what = pair_one(data, len);
    if (what != PAIR_AGREES) {
        const struct pair_departure *d = pair_found();
        fprintf(stderr, "crosslane: %s departs from generic in %s (operation %u, symptom %u)\n",
                target_rows[pair_row()].cell, words[what], d->op, d->symptom);
        abort();
    }
    return 0;
}
