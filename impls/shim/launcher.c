/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts a program that is not trusted: has itself killed when its parent ends, sets resource limits, gives up
 * privileges, confines files (Landlock) and system calls (seccomp), then becomes the program. Runs on the host side,
 * before the shim or qemu-user: inside qemu-user none of this works. Inherited file descriptors stay open: the
 * protocol's pipes and the batches' memory.
 *
 *   launcher [--limit-as BYTES] [--limit-cpu S] [--limit-nofile N] [--limit-fsize BYTES]
 *            [--landlock-read PATH]... [--require] -- PROGRAM [ARGUMENT]...
 *   launcher --probe
 *
 * A layer that the host refuses costs one line on stderr; with --require it ends the launcher. --probe applies every
 * layer to itself and prints which ones hold. Exit status of the launcher's own: 125 wrong use or a layer missing
 * under --require, 126 the program cannot be executed, 127 it does not exist.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define HOST_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define HOST_AUDIT_ARCH AUDIT_ARCH_AARCH64
#else
#error "the launcher knows the system calls of x86-64 and AArch64 hosts only"
#endif

enum { STATUS_USAGE = 125, STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127, MAX_READ_PATHS = 64 };

struct options {
    struct {
        bool given;
        uint64_t value;
    } as, cpu, nofile, fsize;
    const char *read_paths[MAX_READ_PATHS];
    unsigned num_read_paths;
    bool require;
    bool probe;
    char **program;
};

/* ---- Landlock ---- */

/* The kernel's structures and bits (Documentation/userspace-api/landlock.rst), declared here because the headers of
 * a distribution end at an older interface than its users' kernels offer. */
struct ruleset_attr {
    uint64_t handled_access_fs;
    uint64_t handled_access_net; /* from interface 4 */
    uint64_t scoped;             /* from interface 6 */
};

struct path_beneath_attr {
    uint64_t allowed_access;
    int32_t parent_fd;
} __attribute__((packed));

#define NR_LANDLOCK_CREATE_RULESET 444
#define NR_LANDLOCK_ADD_RULE 445
#define NR_LANDLOCK_RESTRICT_SELF 446
#define RULESET_VERSION 1u
#define RULE_PATH_BENEATH 1
#define FS_EXECUTE (UINT64_C(1) << 0)
#define FS_READ_FILE (UINT64_C(1) << 2)
#define FS_READ_DIR (UINT64_C(1) << 3)
#define FS_ALL_OF_1 ((UINT64_C(1) << 13) - 1)
#define FS_REFER (UINT64_C(1) << 13)     /* from interface 2 */
#define FS_TRUNCATE (UINT64_C(1) << 14)  /* from interface 3 */
#define FS_IOCTL_DEV (UINT64_C(1) << 15) /* from interface 5 */
#define NET_BIND_CONNECT UINT64_C(3)
#define SCOPE_ABSTRACT_SOCKETS_SIGNALS UINT64_C(3)

/* The host's Landlock interface, or a negative number where there is none. */
static long landlock_interface(void)
{
    return syscall(NR_LANDLOCK_CREATE_RULESET, NULL, (size_t)0, RULESET_VERSION);
}

static int open_ruleset(long interface)
{
    struct ruleset_attr attr = {.handled_access_fs = FS_ALL_OF_1};
    size_t attr_len = offsetof(struct ruleset_attr, handled_access_net);

    attr.handled_access_fs |= interface >= 2 ? FS_REFER : 0;
    attr.handled_access_fs |= interface >= 3 ? FS_TRUNCATE : 0;
    attr.handled_access_fs |= interface >= 5 ? FS_IOCTL_DEV : 0;
    if (interface >= 4) {
        attr.handled_access_net = NET_BIND_CONNECT;
        attr_len = offsetof(struct ruleset_attr, scoped);
    }
    if (interface >= 6) {
        attr.scoped = SCOPE_ABSTRACT_SOCKETS_SIGNALS;
        attr_len = sizeof attr;
    }
    return (int)syscall(NR_LANDLOCK_CREATE_RULESET, &attr, attr_len, 0u);
}

/* Lets the program read and execute what is at or beneath path. A path that cannot be opened is wrong use. */
static int allow_reading(int ruleset, const char *path)
{
    struct path_beneath_attr rule = {.allowed_access = FS_EXECUTE | FS_READ_FILE};
    struct stat info;
    int status = -1;

    rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (rule.parent_fd < 0 || fstat(rule.parent_fd, &info) != 0) {
        fprintf(stderr, "launcher: --landlock-read %s cannot be opened: %s; give a path that exists\n", path,
                strerror(errno));
        exit(STATUS_USAGE);
    }
    if (S_ISDIR(info.st_mode)) {
        rule.allowed_access |= FS_READ_DIR;
    }
    status = (int)syscall(NR_LANDLOCK_ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0u);
    close(rule.parent_fd);
    return status;
}

static bool confine_files(const struct options *options)
{
    long interface = landlock_interface();
    int ruleset = interface < 1 ? -1 : open_ruleset(interface);
    bool held = ruleset >= 0;

    for (unsigned i = 0; held && i < options->num_read_paths; i++) {
        held = allow_reading(ruleset, options->read_paths[i]) == 0;
    }
    held = held && syscall(NR_LANDLOCK_RESTRICT_SELF, ruleset, 0u) == 0;
    if (ruleset >= 0) {
        int kept = errno;
        close(ruleset);
        errno = kept;
    }
    return held;
}

/* ---- seccomp ---- */

/* Calls that reach nothing outside the process, whatever their arguments. Files are opened by calls judged below. */
static const uint32_t harmless[] = {
    /* files already open, and looking at names that Landlock lets through */
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_lseek, SYS_close, SYS_dup, SYS_dup3,
    SYS_pipe2, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_statfs, SYS_fstatfs, SYS_faccessat, SYS_readlinkat,
    SYS_getdents64, SYS_getcwd, SYS_ppoll, SYS_pselect6,
    /* memory */
    SYS_mmap, SYS_mprotect, SYS_munmap, SYS_mremap, SYS_brk, SYS_madvise, SYS_msync, SYS_mincore, SYS_mlock,
    SYS_munlock, SYS_membarrier, SYS_get_mempolicy, SYS_set_mempolicy,
    /* threads */
    SYS_futex, SYS_set_tid_address, SYS_set_robust_list, SYS_get_robust_list, SYS_sched_yield, SYS_sched_getaffinity,
    SYS_getcpu,
    /* the process's own signals and timers */
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigsuspend, SYS_rt_sigtimedwait, SYS_rt_sigpending,
    SYS_sigaltstack, SYS_restart_syscall, SYS_timer_create, SYS_timer_settime, SYS_timer_gettime, SYS_timer_getoverrun,
    SYS_timer_delete, SYS_setitimer, SYS_getitimer,
    /* time and facts */
    SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday, SYS_times, SYS_getrusage,
    SYS_getrlimit, SYS_sysinfo, SYS_uname, SYS_getrandom, SYS_getpid, SYS_getppid, SYS_gettid, SYS_getuid, SYS_geteuid,
    SYS_getgid, SYS_getegid, SYS_getgroups,
    /* the way in and out */
    SYS_execve, SYS_exit, SYS_exit_group};

/* Likewise harmless, but not every host or every C library's header has them; a missing one is refused. */
static const uint32_t harmless_if_known[] = {
#ifdef SYS_arch_prctl
    SYS_arch_prctl,
#endif
#ifdef SYS_stat
    SYS_stat,        SYS_lstat, SYS_access, SYS_readlink, SYS_dup2,    SYS_poll,
    SYS_select,      SYS_alarm, SYS_pause,  SYS_time,     SYS_getpgrp,
#endif
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
#ifdef SYS_close_range
    SYS_close_range,
#endif
#ifdef SYS_futex_waitv
    SYS_futex_waitv,
#endif
#ifdef SYS_mseal
    SYS_mseal,
#endif
    SYS_getpgid,
};

struct filter {
    struct sock_filter code[512];
    unsigned short len;
};

static void emit(struct filter *filter, uint16_t code, uint32_t k, uint8_t if_true, uint8_t if_false)
{
    if (filter->len >= sizeof filter->code / sizeof filter->code[0]) {
        fprintf(stderr, "launcher: the system call filter has more than %u steps\n", (unsigned)filter->len);
        exit(STATUS_USAGE);
    }
    filter->code[filter->len++] = (struct sock_filter){.code = code, .jt = if_true, .jf = if_false, .k = k};
}

static void emit_return(struct filter *filter, uint32_t action)
{
    emit(filter, BPF_RET | BPF_K, action, 0, 0);
}

static void emit_refusal(struct filter *filter, uint32_t error)
{
    emit_return(filter, SECCOMP_RET_ERRNO | error);
}

static void emit_load_number(struct filter *filter)
{
    emit(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, nr), 0, 0);
}

/* The low half of an argument (both hosts are little-endian): all that the kernel reads of an int. */
static void emit_load_argument(struct filter *filter, unsigned argument, bool high)
{
    size_t offset = offsetof(struct seccomp_data, args) + 8 * (size_t)argument + (high ? 4u : 0u);

    emit(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void emit_decided(struct filter *filter, uint32_t number, uint32_t action)
{
    emit(filter, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    emit_return(filter, action);
}

/* The call is allowed if its argument is one of the values, and refused with EPERM otherwise. */
static void emit_one_of(struct filter *filter, uint32_t number, unsigned argument, const uint32_t *values,
                        size_t num_values)
{
    emit(filter, BPF_JMP | BPF_JEQ | BPF_K, number, 0, (uint8_t)(2 * num_values + 2));
    emit_load_argument(filter, argument, false);
    for (size_t i = 0; i < num_values; i++) {
        emit_decided(filter, values[i], SECCOMP_RET_ALLOW);
    }
    emit_refusal(filter, EPERM);
}

/* The call is refused with EACCES if its flags open for anything but reading. */
static void emit_read_only(struct filter *filter, uint32_t number, unsigned argument)
{
    const uint32_t writing = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY);

    emit(filter, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4);
    emit_load_argument(filter, argument, false);
    emit(filter, BPF_JMP | BPF_JSET | BPF_K, writing, 0, 1);
    emit_refusal(filter, EACCES);
    emit_return(filter, SECCOMP_RET_ALLOW);
}

/* Threads are the process's own business (qemu-user needs one); anything else clone makes is a new process. */
static void emit_threads_only(struct filter *filter)
{
    emit(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
    emit_load_argument(filter, 0, false);
    emit(filter, BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
    emit_return(filter, SECCOMP_RET_ALLOW);
    emit_refusal(filter, EPERM);
}

/* Limits may be read, not set: root could raise them again. */
static void emit_limits_read_only(struct filter *filter)
{
    emit(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 6);
    emit_load_argument(filter, 2, false);
    emit(filter, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3);
    emit_load_argument(filter, 2, true);
    emit(filter, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
    emit_return(filter, SECCOMP_RET_ALLOW);
    emit_refusal(filter, EPERM);
}

/* Calls whose arguments decide. */
static void emit_judged(struct filter *filter)
{
    const uint32_t own_pid = (uint32_t)getpid();
    /* never F_SETOWN or F_SETFL: O_ASYNC sends signals to any process of the user; never F_ADD_SEALS */
    static const uint32_t fcntl_commands[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_GET_SEALS};
    /* never TIOCSTI: stderr may be the terminal of the person who started the suite */
    static const uint32_t ioctl_commands[] = {TCGETS, TIOCGWINSZ, FIONREAD};
    static const uint32_t prctl_options[] = {PR_SET_NAME, PR_GET_NAME, 0x53564d41u /* PR_SET_VMA: names a mapping */};

#ifdef SYS_open
    emit_read_only(filter, SYS_open, 1);
#endif
    emit_read_only(filter, SYS_openat, 2);
    emit_threads_only(filter);
    emit_limits_read_only(filter);
    emit_one_of(filter, SYS_kill, 0, &own_pid, 1);
    emit_one_of(filter, SYS_tkill, 0, &own_pid, 1);
    emit_one_of(filter, SYS_tgkill, 0, &own_pid, 1);
    emit_one_of(filter, SYS_rt_sigqueueinfo, 0, &own_pid, 1);
    emit_one_of(filter, SYS_rt_tgsigqueueinfo, 0, &own_pid, 1);
    emit_one_of(filter, SYS_fcntl, 1, fcntl_commands, sizeof fcntl_commands / sizeof fcntl_commands[0]);
    emit_one_of(filter, SYS_ioctl, 1, ioctl_commands, sizeof ioctl_commands / sizeof ioctl_commands[0]);
    emit_one_of(filter, SYS_prctl, 0, prctl_options, sizeof prctl_options / sizeof prctl_options[0]);
}

static void emit_allowed(struct filter *filter, const uint32_t *numbers, size_t num_numbers)
{
    for (size_t i = 0; i < num_numbers; i++) {
        emit_decided(filter, numbers[i], SECCOMP_RET_ALLOW);
    }
}

static void build_filter(struct filter *filter)
{
    /* another ABI numbers its calls otherwise; x32 shares the architecture but no number of this list */
    emit(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, arch), 0, 0);
    emit(filter, BPF_JMP | BPF_JEQ | BPF_K, HOST_AUDIT_ARCH, 1, 0);
    emit_return(filter, SECCOMP_RET_KILL_PROCESS);
    emit_load_number(filter);
    emit_allowed(filter, harmless, sizeof harmless / sizeof harmless[0]);
    emit_allowed(filter, harmless_if_known, sizeof harmless_if_known / sizeof harmless_if_known[0]);
    /* arguments behind a pointer cannot be judged: the C library then takes the older call, which can */
#ifdef SYS_clone3
    emit_decided(filter, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
#endif
#ifdef SYS_openat2
    emit_decided(filter, SYS_openat2, SECCOMP_RET_ERRNO | ENOSYS);
#endif
    emit_judged(filter);
    emit_refusal(filter, EPERM);
}

static bool confine_calls(void)
{
    static struct filter filter;
    struct sock_fprog program;
    long status;

    build_filter(&filter);
    program.len = filter.len;
    program.filter = filter.code;
    /* Older kernels slow a filtered process down against speculation; it holds no secrets, and speed is measured. */
    status = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program);
    if (status != 0 && errno == EINVAL) {
        status = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0u, &program);
    }
    if (status != 0) {
        return false;
    }
    errno = 0;
    return socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM;
}

/* ---- limits and privileges ---- */

/* Never above what the launcher itself has. */
static bool limit(unsigned resource, uint64_t soft, uint64_t hard)
{
    struct rlimit now;

    if (getrlimit((int)resource, &now) != 0) {
        return false;
    }
    now.rlim_max = hard < now.rlim_max ? hard : now.rlim_max;
    now.rlim_cur = soft < now.rlim_max ? soft : now.rlim_max;
    return setrlimit((int)resource, &now) == 0;
}

static bool limit_resources(const struct options *options)
{
    bool held = limit(RLIMIT_CORE, 0, 0);

    held = (!options->as.given || limit(RLIMIT_AS, options->as.value, options->as.value)) && held;
    held = (!options->nofile.given || limit(RLIMIT_NOFILE, options->nofile.value, options->nofile.value)) && held;
    held = (!options->fsize.given || limit(RLIMIT_FSIZE, options->fsize.value, options->fsize.value)) && held;
    /* SIGXCPU first; a second later SIGKILL, for a program that catches it */
    return (!options->cpu.given || limit(RLIMIT_CPU, options->cpu.value, options->cpu.value + 1)) && held;
}

/* What root would regain at exec: all of the bounding set and what is inheritable. Only CAP_DAC_READ_SEARCH stays, as
 * a checkout may belong to somebody else. Users without capabilities have nothing to drop, so failing is no loss. */
static void drop_capabilities(void)
{
    const unsigned long dac_read_search = 2;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

    for (unsigned long capability = 0; capability < 64; capability++) {
        if (capability != dac_read_search) {
            (void)prctl(PR_CAPBSET_DROP, capability, 0ul, 0ul, 0ul);
        }
    }
    if (syscall(SYS_capget, &header, sets) == 0) {
        sets[0].inheritable = 0;
        sets[1].inheritable = 0;
        (void)syscall(SYS_capset, &header, sets);
    }
}

static bool give_up_privileges(void)
{
    drop_capabilities();
    return prctl(PR_SET_NO_NEW_PRIVS, 1ul, 0ul, 0ul, 0ul) == 0;
}

/* Nobody is left to stop a program that never returns once the suite is gone. The setting survives exec. */
static bool die_with_parent(void)
{
    pid_t parent = getppid();

    if (prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0ul, 0ul, 0ul) != 0) {
        return false;
    }
    if (getppid() != parent) {
        exit(STATUS_USAGE);
    }
    return true;
}

/* ---- the command line ---- */

static _Noreturn void wrong_use(const char *what, const char *value)
{
    fprintf(stderr,
            "launcher: %s %s; use: launcher [--limit-as BYTES] [--limit-cpu S] [--limit-nofile N] "
            "[--limit-fsize BYTES] [--landlock-read PATH]... [--require] -- PROGRAM [ARGUMENT]..., or launcher "
            "--probe\n",
            what, value);
    exit(STATUS_USAGE);
}

static uint64_t parse_number(const char *option, const char *text)
{
    char *end = NULL;
    unsigned long long value;

    errno = 0;
    value = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    if (end == NULL || *end != '\0' || errno != 0) {
        fprintf(stderr, "launcher: %s takes a decimal number, not '%s'\n", option, text);
        exit(STATUS_USAGE);
    }
    return value;
}

/* Takes one option with its value. */
static void parse_valued(struct options *options, const char *option, const char *value)
{
    if (strcmp(option, "--landlock-read") == 0) {
        if (options->num_read_paths == MAX_READ_PATHS) {
            wrong_use("takes at most 64 paths to read, one too many is", value);
        }
        options->read_paths[options->num_read_paths++] = value;
    } else if (strcmp(option, "--limit-as") == 0) {
        options->as.given = true;
        options->as.value = parse_number(option, value);
    } else if (strcmp(option, "--limit-cpu") == 0) {
        options->cpu.given = true;
        options->cpu.value = parse_number(option, value);
    } else if (strcmp(option, "--limit-nofile") == 0) {
        options->nofile.given = true;
        options->nofile.value = parse_number(option, value);
    } else if (strcmp(option, "--limit-fsize") == 0) {
        options->fsize.given = true;
        options->fsize.value = parse_number(option, value);
    } else {
        wrong_use("does not know", option);
    }
}

static void parse(struct options *options, int argc, char **argv)
{
    int i = 1;

    if (argc == 2 && strcmp(argv[1], "--probe") == 0) {
        options->probe = true;
        return;
    }
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--require") == 0) {
            options->require = true;
        } else if (i + 1 < argc) {
            parse_valued(options, argv[i], argv[i + 1]);
            i++;
        } else {
            wrong_use("misses a value after", argv[i]);
        }
    }
    if (i + 1 >= argc) {
        wrong_use("misses", "-- and a program");
    }
    options->program = argv + i + 1;
}

static int probe(const struct options *options)
{
    bool no_new_privs = give_up_privileges();
    long interface = landlock_interface();
    bool landlock = confine_files(options);
    bool seccomp = confine_calls();

    printf("seccomp %s\n", seccomp ? "yes" : "no");
    if (landlock) {
        printf("landlock %ld\n", interface);
    } else {
        printf("landlock no\n");
    }
    printf("no_new_privs %s\n", no_new_privs ? "yes" : "no");
    return 0;
}

/* Says in one line that the host refuses a layer, and ends if every layer is required. */
static void demand(const struct options *options, bool held, const char *layer)
{
    if (held) {
        return;
    }
    fprintf(stderr, "launcher: this host refuses %s (%s); the program %s\n", layer, strerror(errno),
            options->require ? "is not started" : "runs without it");
    if (options->require) {
        exit(STATUS_USAGE);
    }
}

int main(int argc, char **argv)
{
    static struct options options;

    parse(&options, argc, argv);
    if (options.probe) {
        return probe(&options);
    }
    demand(&options, die_with_parent(), "the parent-death signal");
    demand(&options, limit_resources(&options), "resource limits");
    demand(&options, give_up_privileges(), "no_new_privs");
    demand(&options, confine_files(&options), "landlock");
    demand(&options, confine_calls(), "seccomp");
    execv(options.program[0], options.program);
    fprintf(stderr, "launcher: cannot start %s: %s; give the path of an executable file beneath a --landlock-read\n",
            options.program[0], strerror(errno));
    return errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
}
