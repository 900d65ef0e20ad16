/* SPDX-License-Identifier: Apache-2.0
 * Turns signals into verdicts: what happened, where, reading or writing. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "frames.h"
#include "shim.h"

#define WATCHDOG_TICK_US 100000
#define TICKS_PER_S 10u

static uint64_t watched_calls;
static uint64_t watched_ticks;
static uint64_t most_ticks = WATCHDOG_S * TICKS_PER_S;

static void locate(struct departure *d, uintptr_t address, const ucontext_t *u)
{
    const struct arena *a = arena_at(address);
    uintptr_t results = (uintptr_t)batch.results, base = (uintptr_t)batch.base;
    if (heap_locate(address, &d->offset)) {
        d->buffer = BUFFER_CTX;
    } else if (a != NULL) {
        d->buffer = a->kind;
        d->offset = (intptr_t)(address - (uintptr_t)a->at);
    } else if (address >= results && address < results + batch.results_capacity) {
        d->buffer = BUFFER_RESULTS;
        d->offset = (int64_t)(address - results);
    } else if (address >= base && address < base + batch.base_len) {
        d->buffer = BUFFER_BATCH;
        d->offset = (int64_t)(address - base);
    } else {
        d->offset = (int64_t)address;
        return;
    }
    d->symptom = frame_fault_is_write(u, address) ? SYMPTOM_GUARD_WRITE : SYMPTOM_GUARD_READ;
}

static _Noreturn void end_case(struct departure *d, const ucontext_t *u)
{
    d->pc = frame_pc(u);
    batch_results_unlock();
    shim_end_after_departure(d);
}

HANDLER static void on_fault(int sig, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    size_t trap_len = sig == SIGTRAP ? paths_hit(frame_trap_place(u)) : 0;
    if (trap_len > 0) {
        frame_resume_at(u, frame_trap_place(u) + trap_len);
        return;
    }
    if ((sig == SIGSEGV || sig == SIGBUS) && threads_fault((uintptr_t)info->si_addr)) {
        return;
    }
    if (!subject_running && !getter_running) {
        shim_fail("the shim itself crashed outside the subject");
    }
    struct departure d = {.verdict = VERDICT_CRASH, .signal = (uint8_t)sig};
    if (sig == SIGSEGV || sig == SIGBUS) {
        locate(&d, (uintptr_t)info->si_addr, u);
    }
    end_case(&d, u);
}

HANDLER static void on_tick(int sig, siginfo_t *info, void *context)
{
    (void)info;
    uint64_t calls = num_calls + threads_progress();
    if ((!subject_running && !getter_running) || calls != watched_calls) {
        watched_calls = calls;
        watched_ticks = 0;
        return;
    }
    if (++watched_ticks >= most_ticks) {
        struct departure d = {.verdict = VERDICT_HANG, .signal = (uint8_t)sig};
        end_case(&d, context);
    }
}

static void handle(int sig, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigfillset(&action.sa_mask);
    if (sigaction(sig, &action, NULL) != 0) {
        shim_fail("cannot install a signal handler");
    }
}

void signals_init(void)
{
    size_t len = 256 * 1024;
    stack_t stack = {.ss_size = len};
    stack.ss_sp = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL) != 0) {
        shim_fail("cannot set up the signal stack");
    }
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        handle(faults[i], on_fault);
    }
}

void watchdog_allow(uint64_t seconds)
{
    most_ticks = seconds * TICKS_PER_S;
    watched_ticks = 0;
}

/* CPU time, not wall time: a loaded machine is no hang. */
void watchdog_start(void)
{
    handle(SIGPROF, on_tick);
    struct itimerval every = {{0, WATCHDOG_TICK_US}, {0, WATCHDOG_TICK_US}};
    if (setitimer(ITIMER_PROF, &every, NULL) != 0) {
        shim_fail("cannot start the watchdog");
    }
}
