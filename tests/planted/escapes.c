/* SPDX-License-Identifier: Apache-2.0
 * Tries one escape, named by the first argument, and says "succeeded" or "refused" with the reason. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile sig_atomic_t timer_fired;

static void say(const char *prefix, long result)
{
    const char *reason = errno == EPERM    ? "EPERM"
                         : errno == EACCES ? "EACCES"
                         : errno == ENOMEM ? "ENOMEM"
                                           : strerror(errno);

    if (result >= 0) {
        printf("%ssucceeded\n", prefix);
    } else {
        printf("%srefused %s\n", prefix, reason);
    }
}

static long fork_child(void)
{
    pid_t child = fork();

    if (child == 0) {
        _exit(0);
    }
    return child > 0 ? waitpid(child, NULL, 0) : child;
}

static long allocate(size_t len)
{
    return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0;
}

static long raise_limit(void)
{
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};

    return setrlimit(RLIMIT_NOFILE, &limit);
}

static long own_for_parent(void)
{
    int ends[2] = {0, 0};

    return fcntl(ends[0], F_SETOWN, getppid());
}

static long try_file(const char *escape, const char *path)
{
    if (strcmp(escape, "write_file") == 0) {
        return open(path, O_WRONLY);
    }
    if (strcmp(escape, "truncate_file") == 0) {
        return truncate(path, 30);
    }
    if (strcmp(escape, "remove_file") == 0) {
        return rename(path, path);
    }
    return open(path, O_RDONLY);
}

static void *thread_body(void *argument)
{
    *(int *)argument = 1;
    return NULL;
}

static void on_fault(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

static void on_timer(int number)
{
    (void)number;
    timer_fired = 1;
}

/* What the shim does all the time, and what has to go on working. */
static int honest(void)
{
    pthread_t thread;
    int ran = 0;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
    struct itimerspec soon = {.it_value = {.tv_nsec = 1000000}};
    timer_t timer;
    void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (pthread_create(&thread, NULL, thread_body, &ran) == 0 && pthread_join(thread, NULL) == 0 && ran) {
        printf("thread ");
    }
    signal(SIGSEGV, on_fault);
    if (sigsetjmp(back, 1) == 0) {
        *(volatile char *)page = 1;
    } else {
        printf("signal ");
    }
    signal(SIGPROF, on_timer);
    if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) == 0 && timer_settime(timer, 0, &soon, NULL) == 0) {
        for (volatile long i = 0; i < 2000000000L && !timer_fired; i++) {
        }
        printf("%s", timer_fired ? "timer " : "");
    }
    if (mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0 && munmap(page, 4096) == 0) {
        printf("memory ");
    }
    timer_fired = 0;
    if (raise(SIGPROF) == 0 && timer_fired) {
        printf("raise\n");
    }
    return 0;
}

static int write_inherited(int fd)
{
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (page == MAP_FAILED) {
        printf("cannot map: %s\n", strerror(errno));
        return 1;
    }
    memcpy(page, "guest", 5);
    printf("wrote\n");
    say("truncate ", ftruncate(fd, 0));
    say("seal ", fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
    return 0;
}

static _Noreturn void spin(int stubbornly)
{
    if (stubbornly) {
        signal(SIGXCPU, SIG_IGN);
    }
    for (volatile unsigned i = 0;; i++) {
    }
}

static long try_escape(const char *escape, const char *argument)
{
    char letter = '\n';

    if (strcmp(escape, "socket") == 0) {
        return socket(AF_INET, SOCK_STREAM, 0);
    }
    if (strcmp(escape, "kill_parent") == 0) {
        return kill(getppid(), SIGCONT);
    }
    if (strcmp(escape, "kill_group") == 0) {
        return kill(0, SIGCONT);
    }
    if (strcmp(escape, "kill_everyone") == 0) {
        return kill(-1, SIGCONT);
    }
    if (strcmp(escape, "signal_parent_by_owner") == 0) {
        return own_for_parent();
    }
    if (strcmp(escape, "fork") == 0) {
        return fork_child();
    }
    if (strcmp(escape, "trace_parent") == 0) {
        return ptrace(PTRACE_SEIZE, getppid(), NULL, NULL);
    }
    if (strcmp(escape, "raise_limit") == 0) {
        return raise_limit();
    }
    if (strcmp(escape, "type_into_terminal") == 0) {
        return ioctl(2, TIOCSTI, &letter);
    }
    if (strcmp(escape, "allocate") == 0) {
        return allocate(strtoul(argument, NULL, 10));
    }
    return try_file(escape, argument);
}

int main(int argc, char **argv)
{
    const char *escape = argc > 1 ? argv[1] : "";
    const char *argument = argc > 2 ? argv[2] : "";

    if (strcmp(escape, "honest") == 0) {
        return honest();
    }
    if (strncmp(escape, "spin", 4) == 0) {
        spin(escape[4] != '\0');
    }
    if (strcmp(escape, "abort") == 0) {
        abort();
    }
    if (strcmp(escape, "write_inherited") == 0) {
        return write_inherited(atoi(argument));
    }
    errno = 0;
    say("", try_escape(escape, argument));
    return 0;
}
