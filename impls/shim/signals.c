/* SPDX-License-Identifier: Apache-2.0
 * Turns signals into verdicts: what happened, where, reading or writing. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#include "shim.h"

#define WATCHDOG_TICK_US 100000
#define WATCHDOG_TICKS 30 /* 3 s of CPU time without an operation ending */

static uint64_t watched_calls;
static unsigned watched_ticks;

#if defined(__x86_64__)

/* qemu-x86_64 7.2 enters a handler with the stack 8 bytes off, where the compiler's own aligned stores fault. */
#define HANDLER __attribute__((force_align_arg_pointer))

static uintptr_t fault_pc(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
}

static uintptr_t trap_place(const ucontext_t *u)
{
    return fault_pc(u) - 1;
}

static void resume_at(ucontext_t *u, uintptr_t pc)
{
    u->uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
}

/* Intel SDM vol. 3, 4.7: bit 1 of a page fault's error code is set for a write. */
static int fault_is_write(const ucontext_t *u)
{
    return (u->uc_mcontext.gregs[REG_ERR] & 2) != 0;
}

#elif defined(__aarch64__)

static uintptr_t fault_pc(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.pc;
}

static uintptr_t trap_place(const ucontext_t *u)
{
    return fault_pc(u);
}

static void resume_at(ucontext_t *u, uintptr_t pc)
{
    u->uc_mcontext.pc = pc;
}

#define ESR_CONTEXT_MAGIC 0x45535201u

/* ESR_ELx.ISS.WnR (bit 6) where the kernel hands it over; else the instruction says it: in the loads-and-stores group
 * bit 22 is set for loads, and bit 23 alone marks the 128-bit load of a SIMD register. */
static int fault_is_write(const ucontext_t *u)
{
    const uint8_t *p = (const uint8_t *)u->uc_mcontext.__reserved;
    const uint8_t *end = p + sizeof u->uc_mcontext.__reserved;
    while (p + 16 <= end) {
        uint32_t magic = load_le32(p), size = load_le32(p + 4);
        if (magic == ESR_CONTEXT_MAGIC) {
            return (int)((load_le64(p + 8) >> 6) & 1u);
        }
        if (magic == 0 || size < 16) {
            break;
        }
        p += size;
    }
    uint32_t word;
    memcpy(&word, (const void *)(uintptr_t)u->uc_mcontext.pc, sizeof word);
    int load = (int)((word >> 22) & 1u);
    if ((word & 0x3b000000u) == 0x39000000u || (word & 0x3b200000u) == 0x38000000u) {
        load |= (int)((word >> 23) & 1u);
    }
    return !load;
}

#else

static uintptr_t fault_pc(const ucontext_t *u)
{
    (void)u;
    return 0;
}

static uintptr_t trap_place(const ucontext_t *u)
{
    (void)u;
    return 0;
}

static void resume_at(ucontext_t *u, uintptr_t pc)
{
    (void)u;
    (void)pc;
}

static int fault_is_write(const ucontext_t *u)
{
    (void)u;
    return 0;
}

#endif

#ifndef HANDLER
#define HANDLER
#endif

static void locate(struct departure *d, uintptr_t address, int write)
{
    const struct arena *a = arena_at(address);
    uintptr_t results = (uintptr_t)batch.results, base = (uintptr_t)batch.base;
    if (a != NULL) {
        d->buffer = a->kind;
        d->offset = (int64_t)(address - (uintptr_t)a->at);
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
    d->symptom = write ? SYMPTOM_GUARD_WRITE : SYMPTOM_GUARD_READ;
}

static _Noreturn void end_case(struct departure *d, const ucontext_t *u)
{
    d->pc = fault_pc(u);
    batch_results_unlock();
    batch_record(batch_current_case(), d);
    shim_end_after_departure();
}

HANDLER static void on_fault(int sig, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    if (sig == SIGTRAP && paths_hit(trap_place(u))) {
        resume_at(u, trap_place(u));
        return;
    }
    if (!subject_running) {
        shim_fail("the shim itself crashed outside the subject");
    }
    struct departure d = {.verdict = VERDICT_CRASH, .signal = (uint8_t)sig};
    if (sig == SIGSEGV || sig == SIGBUS) {
        locate(&d, (uintptr_t)info->si_addr, fault_is_write(u));
    }
    end_case(&d, u);
}

HANDLER static void on_tick(int sig, siginfo_t *info, void *context)
{
    (void)info;
    if (!subject_running || num_calls != watched_calls) {
        watched_calls = num_calls;
        watched_ticks = 0;
        return;
    }
    if (++watched_ticks >= WATCHDOG_TICKS) {
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

/* CPU time, not wall time: a loaded machine is no hang. */
void watchdog_start(void)
{
    handle(SIGPROF, on_tick);
    struct itimerval every = {{0, WATCHDOG_TICK_US}, {0, WATCHDOG_TICK_US}};
    if (setitimer(ITIMER_PROF, &every, NULL) != 0) {
        shim_fail("cannot start the watchdog");
    }
}
