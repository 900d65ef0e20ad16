/* SPDX-License-Identifier: Apache-2.0
 * Time in nanoseconds from the operating system, and cycles from the processor's counter where it may be read, else
 * from the time-stamp counter, which ticks at a constant rate that is no core's momentary frequency. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "bench.h"

#define WORST_STEP_NS 10000u
#define CALIBRATION_NS 50000000u

static enum bench_clock used = BENCH_CLOCK_NONE;
static int perf_fd = -1;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static int perf_open(void)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.type = PERF_TYPE_HARDWARE;
    attr.size = sizeof attr;
    attr.config = PERF_COUNT_HW_CPU_CYCLES;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static uint64_t perf_cycles(void)
{
    uint64_t count = 0;
    return read(perf_fd, &count, sizeof count) == (ssize_t)sizeof count ? count : 0;
}

#if defined(__x86_64__)

/* Intel SDM vol. 3, 18.17.1 and AMD APM vol. 3, E.4.6: CPUID 80000007h, EDX bit 8: the TSC rate is invariant. */
static int tsc_usable(void)
{
    uint32_t a, b, c, d;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && ((d >> 8) & 1u) != 0;
}

static uint64_t tsc_cycles(void)
{
    uint32_t low, high;
    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
    return ((uint64_t)high << 32) | low;
}

#else

static int tsc_usable(void)
{
    return 0;
}

static uint64_t tsc_cycles(void)
{
    return 0;
}

#endif

struct bench_time bench_clock_now(void)
{
    struct bench_time t = {now_ns(), 0};
    if (used == BENCH_CLOCK_PERF) {
        t.cycles = perf_cycles();
    } else if (used == BENCH_CLOCK_TSC) {
        t.cycles = tsc_cycles();
    }
    return t;
}

/* The smallest step that the system's clock makes, over a few hundred readings. */
static void check_system_clock(void)
{
    uint64_t least = UINT64_MAX, last = now_ns(), begun = last;
    for (unsigned steps = 0; steps < 200 && last - begun < 20 * CALIBRATION_NS;) {
        uint64_t t = now_ns();
        if (t < last) {
            bench_fail("the system's clock CLOCK_MONOTONIC_RAW ran backwards; measure on another machine");
        }
        if (t > last) {
            least = t - last < least ? t - last : least;
            steps++;
        }
        last = t;
    }
    if (least > WORST_STEP_NS) {
        bench_fail("the system's clock CLOCK_MONOTONIC_RAW steps by more than 10 microseconds; measure on another "
                   "machine");
    }
}

static double cycles_per_us(void)
{
    struct bench_time a = bench_clock_now(), b;
    do {
        b = bench_clock_now();
    } while (b.ns - a.ns < CALIBRATION_NS);
    return 1000.0 * (double)(b.cycles - a.cycles) / (double)(b.ns - a.ns);
}

void bench_clock_open(enum bench_clock wanted)
{
    char why[160] = "";
    check_system_clock();
    if (wanted == BENCH_CLOCK_AUTO || wanted == BENCH_CLOCK_PERF) {
        perf_fd = perf_open();
        used = perf_fd >= 0 ? BENCH_CLOCK_PERF : BENCH_CLOCK_NONE;
        if (perf_fd < 0) {
            (void)snprintf(why, sizeof why, "perf_event_open: %s", strerror(errno));
        }
    }
    if (wanted == BENCH_CLOCK_PERF && used != BENCH_CLOCK_PERF) {
        char text[320];
        (void)snprintf(text, sizeof text, "the clock perf is unusable here (%s); use --clock tsc or --clock none", why);
        bench_fail(text);
    }
    if ((wanted == BENCH_CLOCK_AUTO || wanted == BENCH_CLOCK_TSC) && used == BENCH_CLOCK_NONE && tsc_usable()) {
        used = BENCH_CLOCK_TSC;
    }
    if (wanted == BENCH_CLOCK_TSC && used != BENCH_CLOCK_TSC) {
        bench_fail("the clock tsc is unusable here (the processor does not promise a constant rate, or it is no x86); "
                   "use --clock perf or --clock none");
    }
    static const char *const names[] = {"auto", "perf", "tsc", "none"};
    printf("clock %s %.3f %s\n", names[used], used == BENCH_CLOCK_NONE ? 0.0 : cycles_per_us(), why);
}
