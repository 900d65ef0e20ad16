/* SPDX-License-Identifier: Apache-2.0
 * Puts the thunks of thunk_<arch>.S into a leaf's slots. */
#include "shim.h"
#include "subject_asm.h"

struct subject_asm_watch subject_asm_watch;
static subject_asm_fn *asm_thunk;

#if defined(__x86_64__)
subject_asm_fn thunk_asm_system, thunk_asm_win64;
#endif

void thunks_for_assembly(int win64)
{
#if defined(__x86_64__)
    asm_thunk = win64 ? thunk_asm_win64 : thunk_asm_system;
#else
    (void)win64;
#endif
    thunks_assembly_on(1);
}

void thunks_assembly_on(int on)
{
    subject_asm_watch.thunk = on ? asm_thunk : NULL;
}

#if defined(__x86_64__) || defined(__aarch64__)

#define NUM_THUNKS 32u
#define STUB_LEN 16u

extern void *thunk_targets[NUM_THUNKS];
extern const uint8_t thunk_stubs[];
extern uint64_t thunk_has_avx;

int thunks_available(void)
{
    return 1;
}

void thunks_install(struct subject_leaf *leaf)
{
    size_t first = offsetof(struct subject_leaf, setkey);
    size_t count = (sizeof *leaf - first) / sizeof(void *);
    _Static_assert((sizeof(struct subject_leaf) - offsetof(struct subject_leaf, setkey)) / sizeof(void *) <= NUM_THUNKS,
                   "a leaf has more functions than there are thunks");
    uint8_t *slots = (uint8_t *)leaf + first;
    thunk_has_avx = (features_detect() & SUBJECT_X86_AVX) != 0;
    for (size_t i = 0; i < count; i++) {
        uintptr_t stub = (uintptr_t)thunk_stubs + i * STUB_LEN;
        memcpy(&thunk_targets[i], slots + i * sizeof(void *), sizeof(void *));
        if (thunk_targets[i] != NULL) {
            memcpy(slots + i * sizeof(void *), &stub, sizeof stub);
        }
    }
}

#else

volatile uint64_t thunk_departures;

int thunks_available(void)
{
    return 0;
}

void thunks_install(struct subject_leaf *leaf)
{
    (void)leaf;
}

#endif
