/* SPDX-License-Identifier: Apache-2.0
 * The program that an emulator runs: one side, and a loop that takes batches out of shared memory.
 * Arguments: descriptors of both memories, the watchers to switch on. */
#define _GNU_SOURCE
#include "target.h"

#include "frames.h"
#include "shim.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_LOOKS 3000u
#define LEAST_LOOKS 50u

static const uint8_t *requests;
static uint8_t *answers;
static uint32_t turn;
static pid_t parent;

static struct answer *answer(void)
{
    return (struct answer *)(void *)answers;
}

static const struct request *request(void)
{
    return (const struct request *)(const void *)requests;
}

/* ---- what instrumented code calls ------------------------------------------------------------------------------- */

static struct {
    uint8_t *start, *end;
} sections[16];
static unsigned num_sections;
static uint32_t num_comparisons;

void __sanitizer_cov_8bit_counters_init(uint8_t *start, uint8_t *end);
void __sanitizer_cov_pcs_init(const uintptr_t *start, const uintptr_t *end);
void __sanitizer_cov_trace_cmp1(uint8_t one, uint8_t other);
void __sanitizer_cov_trace_cmp2(uint16_t one, uint16_t other);
void __sanitizer_cov_trace_cmp4(uint32_t one, uint32_t other);
void __sanitizer_cov_trace_cmp8(uint64_t one, uint64_t other);
void __sanitizer_cov_trace_const_cmp1(uint8_t one, uint8_t other);
void __sanitizer_cov_trace_const_cmp2(uint16_t one, uint16_t other);
void __sanitizer_cov_trace_const_cmp4(uint32_t one, uint32_t other);
void __sanitizer_cov_trace_const_cmp8(uint64_t one, uint64_t other);
void __sanitizer_cov_trace_switch(uint64_t value, const uint64_t *cases);

void __sanitizer_cov_8bit_counters_init(uint8_t *start, uint8_t *end)
{
    for (unsigned i = 0; i < num_sections; i++) {
        if (sections[i].start == start) {
            return;
        }
    }
    if (start < end && num_sections < sizeof sections / sizeof sections[0]) {
        sections[num_sections].start = start;
        sections[num_sections++].end = end;
    }
}

void __sanitizer_cov_pcs_init(const uintptr_t *start, const uintptr_t *end)
{
    (void)start;
    (void)end;
}

/* Equal ones teach nothing. The last ones win: a message's end is compared behind its blocks. */
static void compared(uint64_t one, uint64_t other, uint32_t len)
{
    if (one != other && answers != NULL) {
        struct comparison *c = (struct comparison *)(void *)(answers + COMPARISONS_AT);
        c[num_comparisons++ % MAX_COMPARISONS] = (struct comparison){one, other, len, 0};
    }
}

void __sanitizer_cov_trace_cmp1(uint8_t one, uint8_t other)
{
    compared(one, other, 1);
}

void __sanitizer_cov_trace_cmp2(uint16_t one, uint16_t other)
{
    compared(one, other, 2);
}

void __sanitizer_cov_trace_cmp4(uint32_t one, uint32_t other)
{
    compared(one, other, 4);
}

void __sanitizer_cov_trace_cmp8(uint64_t one, uint64_t other)
{
    compared(one, other, 8);
}

void __sanitizer_cov_trace_const_cmp1(uint8_t one, uint8_t other)
{
    compared(one, other, 1);
}

void __sanitizer_cov_trace_const_cmp2(uint16_t one, uint16_t other)
{
    compared(one, other, 2);
}

void __sanitizer_cov_trace_const_cmp4(uint32_t one, uint32_t other)
{
    compared(one, other, 4);
}

void __sanitizer_cov_trace_const_cmp8(uint64_t one, uint64_t other)
{
    compared(one, other, 8);
}

void __sanitizer_cov_trace_switch(uint64_t value, const uint64_t *cases)
{
    for (uint64_t i = 0; i < cases[0]; i++) {
        compared(value, cases[2 + i], 8);
    }
}

/* Behind the paths' counters, at what the host was told. */
static uint32_t copy_counters(uint32_t from)
{
    for (unsigned i = 0; i < num_sections; i++) {
        size_t len = (size_t)(sections[i].end - sections[i].start);
        len = len < MAX_COUNTERS - from ? len : MAX_COUNTERS - from;
        memcpy(answers + COUNTERS_AT + from, sections[i].start, len);
        memset(sections[i].start, 0, len);
        from += (uint32_t)len;
    }
    return from;
}

static void clear_counters(void)
{
    for (unsigned i = 0; i < num_sections; i++) {
        memset(sections[i].start, 0, (size_t)(sections[i].end - sections[i].start));
    }
}

/* ---- what the shim's parts call ----------------------------------------------------------------------------------- */

int threads_fault(uintptr_t address)
{
    (void)address;
    return 0;
}

uint64_t threads_progress(void)
{
    return 0;
}

static void give_answer(uint32_t departed)
{
    uint32_t num = num_comparisons < MAX_COMPARISONS ? num_comparisons : MAX_COMPARISONS;
    answer()->num_comparisons = num;
    (void)copy_counters(NUM_CLASSES * paths_total());
    answer()->departed = departed;
    __atomic_store_n(&answer()->turn, turn, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&request()->asleep, __ATOMIC_SEQ_CST) != 0) {
        (void)syscall(SYS_futex, &answer()->turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

_Noreturn void shim_end_after_departure(const struct departure *d)
{
    batch_record(0, d);
    give_answer(2);
    __atomic_store_n(&answer()->asleep, GUEST_ENDED, __ATOMIC_SEQ_CST);
    _exit(0);
}

/* ---- the loop ------------------------------------------------------------------------------------------------------ */

static void *mapped(const char *fd, size_t len, int protection)
{
    void *p = mmap(NULL, len, protection, MAP_SHARED, atoi(fd), 0);
    if (p == MAP_FAILED) {
        shim_fail("cannot map the memory shared with the host");
    }
    return p;
}

static void sleep_until_turn(uint32_t done)
{
    static unsigned looks = MOST_LOOKS; /* fewer where looking came to nothing */
    for (unsigned i = 0; i < looks; i++) {
        if (__atomic_load_n(&request()->turn, __ATOMIC_ACQUIRE) != done) {
            looks = looks < MOST_LOOKS / 2 ? looks * 2 : MOST_LOOKS;
            return;
        }
    }
    looks = looks / 2 > LEAST_LOOKS ? looks / 2 : LEAST_LOOKS;
    __atomic_store_n(&answer()->asleep, GUEST_ASLEEP, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&request()->turn, __ATOMIC_SEQ_CST) == done) {
        struct timespec step = {1, 0};
        if (getppid() != parent) {
            _exit(0); /* whose engine ended without a word */
        }
        (void)syscall(SYS_futex, &request()->turn, FUTEX_WAIT, done, &step, NULL, 0);
    }
    __atomic_store_n(&answer()->asleep, GUEST_AWAKE, __ATOMIC_SEQ_CST);
}

static void serve(unsigned watch)
{
    for (;;) {
        sleep_until_turn(turn);
        turn = __atomic_load_n(&request()->turn, __ATOMIC_ACQUIRE);
        uint32_t row = request()->row, len = request()->len;
        if (SIDE_NAME.open(&target_rows[row], 0, watch) != 0) {
            shim_fail("the host asks for an implementation that this CPU cannot run");
        }
        num_comparisons = 0;
        clear_counters();
        give_answer((uint32_t)SIDE_NAME.run(requests + BATCH_AT, len, answers + RESULTS_AT, MAX_RESULTS_LEN));
    }
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        return 3;
    }
    parent = getppid();
    requests = mapped(argv[1], REQUEST_MEMORY, PROT_READ);
    answers = mapped(argv[2], ANSWER_MEMORY, PROT_READ | PROT_WRITE);
    unsigned watch = (unsigned)atoi(argv[3]);
    answer()->declined = 0;
    for (int i = 4; i < argc; i++) {
        answer()->declined |= (uint32_t)SIDE_NAME.open(&target_rows[atoi(argv[i])], 0, watch);
    }
    signals_init();
    watchdog_start();
    SIDE_NAME.count_paths(answers + COUNTERS_AT);
    for (unsigned i = 0; i < paths_total() && i < 64; i++) {
        strncpy((char *)answers + NAMES_AT + 32 * (size_t)i, paths_title(i), 31);
    }
    answer()->num_paths = paths_total();
    answer()->num_counters = copy_counters(NUM_CLASSES * paths_total());
    __atomic_store_n(&answer()->ready, 1, __ATOMIC_SEQ_CST);
    serve(watch);
}
