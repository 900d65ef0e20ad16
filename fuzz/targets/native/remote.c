/* SPDX-License-Identifier: Apache-2.0
 * The host's half of a subject under an emulator: requests and answers in shared memory. Both halves look for a while before
 * they sleep. */
#define _GNU_SOURCE
#include "pair.h"

#include "shim.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_LOOKS 4000u
#define LEAST_LOOKS 50u
#define STEP_MS 200u
#define PATIENCE_MS 20000u

static uint8_t *requests, *answers;
static uint32_t turn;
static pid_t guest;
static unsigned looks = MOST_LOOKS; /* fewer where looking came to nothing: the machine is busy */

/* The engine's, where it is loaded: what a program compares is worth trying as input. */
void __sanitizer_cov_trace_cmp1(uint8_t one, uint8_t other) __attribute__((weak));
void __sanitizer_cov_trace_cmp2(uint16_t one, uint16_t other) __attribute__((weak));
void __sanitizer_cov_trace_cmp4(uint32_t one, uint32_t other) __attribute__((weak));
void __sanitizer_cov_trace_cmp8(uint64_t one, uint64_t other) __attribute__((weak));

static struct answer *answer(void)
{
    return (struct answer *)(void *)answers;
}

static struct request *request(void)
{
    return (struct request *)(void *)requests;
}

void remote_use(uint8_t *to_guest, uint8_t *from_guest, int pid)
{
    requests = to_guest;
    answers = from_guest;
    turn = 0;
    guest = pid;
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield");
#endif
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int guest_ended(void)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)guest, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

/* Whether the guest's word became what is waited for. */
static int wait_for(uint32_t *word, uint32_t wanted, uint32_t milliseconds)
{
    for (unsigned i = 0; i < looks; i++) {
        if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == wanted) {
            looks = looks < MOST_LOOKS / 2 ? looks * 2 : MOST_LOOKS;
            return 1;
        }
        pause_briefly();
    }
    looks = looks / 2 > LEAST_LOOKS ? looks / 2 : LEAST_LOOKS;
    uint64_t until = now_ms() + milliseconds;
    struct timespec step = {0, STEP_MS * 1000000L};
    __atomic_store_n(&request()->asleep, 1, __ATOMIC_SEQ_CST);
    uint32_t seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    while (seen != wanted && now_ms() <= until && !guest_ended()) {
        (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, &step, NULL, 0);
        seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    }
    __atomic_store_n(&request()->asleep, 0, __ATOMIC_SEQ_CST);
    return __atomic_load_n(word, __ATOMIC_ACQUIRE) == wanted;
}

int remote_wait_ready(uint32_t milliseconds)
{
    return wait_for(&answer()->ready, 1, milliseconds) ? 0 : REMOTE_GONE;
}

uint8_t *remote_batch(void)
{
    return requests + BATCH_AT;
}

const uint8_t *remote_results(void)
{
    return answers + RESULTS_AT;
}

void remote_start(uint32_t row, size_t len)
{
    request()->row = row;
    request()->len = (uint32_t)len;
    turn++;
    __atomic_store_n(&request()->turn, turn, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&answer()->asleep, __ATOMIC_SEQ_CST) != GUEST_AWAKE) {
        (void)syscall(SYS_futex, &request()->turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

static void replay(const struct comparison *c)
{
    switch (c->len) {
    case 1:
        if (__sanitizer_cov_trace_cmp1 != NULL) {
            __sanitizer_cov_trace_cmp1((uint8_t)c->one, (uint8_t)c->other);
        }
        break;
    case 2:
        if (__sanitizer_cov_trace_cmp2 != NULL) {
            __sanitizer_cov_trace_cmp2((uint16_t)c->one, (uint16_t)c->other);
        }
        break;
    case 4:
        if (__sanitizer_cov_trace_cmp4 != NULL) {
            __sanitizer_cov_trace_cmp4((uint32_t)c->one, (uint32_t)c->other);
        }
        break;
    default:
        if (__sanitizer_cov_trace_cmp8 != NULL) {
            __sanitizer_cov_trace_cmp8(c->one, c->other);
        }
    }
}

int remote_finish(void)
{
    if (!wait_for(&answer()->turn, turn, PATIENCE_MS)) {
        return REMOTE_GONE;
    }
    const struct comparison *c = (const struct comparison *)(const void *)(answers + COMPARISONS_AT);
    uint32_t num = answer()->num_comparisons;
    for (uint32_t i = 0; i < num && i < MAX_COMPARISONS; i++) {
        replay(&c[i]);
    }
    return (int)answer()->departed;
}
