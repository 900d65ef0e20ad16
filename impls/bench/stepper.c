/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a program one instruction at a time between its marks: the native counterpart of insn_plugin.c, exact and free of
 * an emulator, which may lack instructions that the machine has.
 *
 *   stepper out=FILE [trace=FILE] PROGRAM [ARGUMENT]...
 *
 * A mark is a system call that no kernel knows (MARK_CALL, made by bench_main.c). Of each pair of marks the number of
 * instructions becomes a line of `out`, and the address of each instruction eight bytes of `trace`. Exit status: the
 * program's; 125 wrong use or a machine that does not let one process trace another, with a sentence.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARK_CALL 0x58424eL
#define STATUS_USAGE 125
#define STOPPED_IN_CALL (SIGTRAP | 0x80)

#if defined(__x86_64__)
#define PC(regs) ((regs).rip)
#define CALL_NUMBER(regs) ((long)(regs).orig_rax)
#define NEXT_CALL_NUMBER(regs) ((long)(regs).rax)
#define CALL_LEN 2u
#elif defined(__aarch64__)
#define PC(regs) ((regs).pc)
#define CALL_NUMBER(regs) ((long)(regs).regs[8])
#define NEXT_CALL_NUMBER(regs) ((long)(regs).regs[8])
#define CALL_LEN 4u
#else
#error "the stepper knows the registers of x86-64 and AArch64 only"
#endif

static FILE *out, *trace;

static _Noreturn void fail(const char *sentence)
{
    fprintf(stderr, "stepper: %s\n", sentence);
    exit(STATUS_USAGE);
}

static struct user_regs_struct registers(pid_t child)
{
    struct user_regs_struct regs;
    struct iovec whole = {&regs, sizeof regs};
    if (ptrace(PTRACE_GETREGSET, child, (void *)NT_PRSTATUS, &whole) != 0) {
        fail("the traced program's registers cannot be read");
    }
    return regs;
}

/* Lets the child go on in one way until it stops again; ends with the child's status where it has ended. */
static int resume(pid_t child, int how, int signal_number)
{
    int status;
    if (ptrace(how, child, NULL, (void *)(intptr_t)signal_number) != 0 || waitpid(child, &status, 0) != child) {
        fail("this process may not trace another one");
    }
    if (WIFEXITED(status)) {
        if (fflush(out) != 0 || (trace != NULL && fclose(trace) != 0)) {
            fail("the counts cannot be written");
        }
        exit(WEXITSTATUS(status));
    }
    if (!WIFSTOPPED(status)) {
        fail("a signal ended the traced program");
    }
    return WSTOPSIG(status);
}

/* Lets the child run to its next system call's entry or exit, and gives it the signals that come between. */
static void to_call(pid_t child)
{
    int got = 0;
    do {
        got = resume(child, PTRACE_SYSCALL, got);
    } while (got != STOPPED_IN_CALL);
}

/* From the exit of one mark to the entry of the next. The call itself lies at `call`. A repeated string instruction stops
 * once each repetition and is one instruction nevertheless. */
static void step_to_mark(pid_t child, uint64_t call)
{
    uint64_t executed = 0, last = 0;
    for (;;) {
        struct user_regs_struct regs = registers(child);
        uint64_t pc = PC(regs);
        if (pc == call && NEXT_CALL_NUMBER(regs) == MARK_CALL) {
            break;
        }
        executed += pc != last;
        if (pc != last && trace != NULL && fwrite(&pc, sizeof pc, 1, trace) != 1) {
            fail("the trace cannot be written");
        }
        last = pc;
        if (resume(child, PTRACE_SINGLESTEP, 0) != SIGTRAP) {
            fail("a signal reached the program between two marks");
        }
    }
    fprintf(out, "%" PRIu64 "\n", executed);
}

static void watch(pid_t child)
{
    for (;;) {
        to_call(child);
        struct user_regs_struct regs = registers(child);
        uint64_t call = PC(regs) - CALL_LEN;
        int is_mark = CALL_NUMBER(regs) == MARK_CALL;
        to_call(child);
        if (is_mark) {
            step_to_mark(child, call);
            to_call(child);
            to_call(child);
        }
    }
}

/* The two processes take turns, which is fastest on one processor; elsewhere it works too. */
static void stay(void)
{
    cpu_set_t set;
    int cpu = sched_getcpu();
    CPU_ZERO(&set);
    if (cpu >= 0 && cpu < CPU_SETSIZE) {
        CPU_SET((unsigned)cpu, &set);
        (void)sched_setaffinity(0, sizeof set, &set);
    }
}

static FILE *opened(const char *argument, const char *name)
{
    size_t len = strlen(name);
    if (argument == NULL || strncmp(argument, name, len) != 0) {
        return NULL;
    }
    FILE *file = fopen(argument + len, "we");
    if (file == NULL) {
        fail("give files that can be written");
    }
    return file;
}

int main(int argc, char **argv)
{
    char **program = argv + 1;
    out = argc > 1 ? opened(*program, "out=") : NULL;
    program += out != NULL;
    trace = out != NULL ? opened(*program, "trace=") : NULL;
    program += trace != NULL;
    if (out == NULL || *program == NULL) {
        fail("give out=FILE, then trace=FILE or not, then a program and its arguments");
    }
    stay();
    pid_t child = fork();
    if (child < 0) {
        fail("no process can be started");
    }
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0) {
            execv(*program, program);
        }
        _exit(STATUS_USAGE);
    }
    int status;
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) != 0) {
        fail("this machine lets no process trace another one, or the program cannot be executed");
    }
    watch(child);
}
