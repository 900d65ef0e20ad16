/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the same messages through several subjects in one process, in turns, so that whatever the machine does to one
 * of them it does to all. Arguments are name=value; answers are lines on standard output:
 *
 *   clock NAME CYCLES_PER_US [why the processor's counter is not used]
 *   subject INDEX NAME ready|declined|unsupported|unknown [VERSION]
 *   refused INDEX SIZE STATUS           the subject does not take messages of this length
 *   sample SIZE INDEX MESSAGES NS CYCLES
 *   counted SIZE INDEX MESSAGES         (count=1) the instruction counter's next line is for these messages
 *   retaken NUMBER                      samples that another process interrupted and that were taken again
 *   end
 *
 * A sentence on standard error and status 2 say that nothing could be measured.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

/* A call that no kernel knows and that qemu-user shows to plugins: impls/bench/insn_plugin.c looks for it. */
#define MARK_CALL 0x58424eL
#define MAX_RETAKES_PER_SAMPLE 8u
#define MAX_MESSAGES (UINT64_C(1) << 40)
/* Between the page offsets of what is read and what is written: processors compare only the low bits of addresses at
 * first, and a store just before a load at the same offset of another page would stall it. */
#define RESULT_OFFSET 1088u

struct options {
    struct bench_job job;
    size_t sizes[BENCH_MAX_SIZES];
    unsigned num_sizes;
    struct bench_subject subjects[BENCH_MAX_SUBJECTS];
    struct bench_subject makers[BENCH_MAX_SUBJECTS]; /* the encrypting direction, where tags need it */
    unsigned num_subjects;
    unsigned rounds;
    uint64_t sample_ns;
    int cpu; /* -1: anywhere */
    int count;
    int compare; /* all subjects compute the same */
    enum bench_clock clock;
};

static uint64_t retaken;

_Noreturn void bench_fail(const char *sentence)
{
    fprintf(stderr, "%s\n", sentence);
    exit(2);
}

/* ---- arguments ---- */

static uint64_t number(const char *text, uint64_t most)
{
    char *end;
    unsigned long long v = strtoull(text, &end, 0);
    if (*text == 0 || *end != 0 || v > most) {
        bench_fail("an argument of the bench program is no number in its range");
    }
    return v;
}

static void read_sizes(struct options *o, char *text)
{
    for (char *word = strtok(text, ","); word != NULL; word = strtok(NULL, ",")) {
        if (o->num_sizes == BENCH_MAX_SIZES) {
            bench_fail("the bench program takes at most 32 sizes");
        }
        o->sizes[o->num_sizes++] = number(word, BENCH_MAX_LEN);
    }
}

static void read_subjects(struct options *o, char *text)
{
    for (char *word = strtok(text, ","); word != NULL; word = strtok(NULL, ",")) {
        if (o->num_subjects == BENCH_MAX_SUBJECTS) {
            bench_fail("the bench program takes at most 16 subjects");
        }
        o->subjects[o->num_subjects++].name = word;
    }
}

static enum bench_clock read_clock(const char *name)
{
    static const char *const names[] = {"auto", "perf", "tsc", "none"};
    for (unsigned i = 0; i < 4; i++) {
        if (strcmp(name, names[i]) == 0) {
            return (enum bench_clock)i;
        }
    }
    bench_fail("the clock is none of auto, perf, tsc, none");
}

static void read_argument(struct options *o, char *argument)
{
    char *value = strchr(argument, '=');
    if (value == NULL) {
        bench_fail("an argument of the bench program is not of the form name=value");
    }
    *value++ = 0;
    struct {
        const char *name;
        size_t *to;
        size_t most;
    } lengths[] = {
        {"key_len", &o->job.key_len, BENCH_MAX_KEY_LEN},
        {"iv_len", &o->job.iv_len, sizeof o->job.iv},
        {"tag_len", &o->job.tag_len, 64},
        {"update_len", &o->job.update_len, BENCH_MAX_LEN},
    };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        if (strcmp(argument, lengths[i].name) == 0) {
            *lengths[i].to = number(value, lengths[i].most);
            return;
        }
    }
    if (strcmp(argument, "mode") == 0) {
        o->job.mode = value;
    } else if (strcmp(argument, "cipher") == 0) {
        o->job.cipher = value;
    } else if (strcmp(argument, "decrypting") == 0) {
        o->job.decrypting = (int)number(value, 1);
    } else if (strcmp(argument, "hide") == 0) {
        o->job.hide = number(value, UINT64_MAX);
    } else if (strcmp(argument, "peer_hardware") == 0) {
        o->job.peer_hardware = (int)number(value, 1);
    } else if (strcmp(argument, "sizes") == 0) {
        read_sizes(o, value);
    } else if (strcmp(argument, "subjects") == 0) {
        read_subjects(o, value);
    } else if (strcmp(argument, "rounds") == 0) {
        o->rounds = (unsigned)number(value, 100000);
    } else if (strcmp(argument, "sample_us") == 0) {
        o->sample_ns = 1000 * number(value, 10000000);
    } else if (strcmp(argument, "cpu") == 0) {
        o->cpu = (int)number(value, 65535);
    } else if (strcmp(argument, "count") == 0) {
        o->count = (int)number(value, 1);
    } else if (strcmp(argument, "compare") == 0) {
        o->compare = (int)number(value, 1);
    } else if (strcmp(argument, "clock") == 0) {
        o->clock = read_clock(value);
    } else {
        bench_fail("an argument of the bench program has an unknown name");
    }
}

/* Bytes without meaning or pattern: no weak key, no counter about to wrap. */
static void fill(uint8_t *p, size_t len, uint64_t seed)
{
    uint64_t x = seed;
    for (size_t i = 0; i < len; i++) {
        x ^= x << 13; /* xorshift64, G. Marsaglia: Xorshift RNGs (2003) */
        x ^= x >> 7;
        x ^= x << 17;
        p[i] = (uint8_t)(x >> 32);
    }
}

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu < 0) {
        return;
    }
    if (cpu < CPU_SETSIZE) {
        CPU_SET((unsigned)cpu, &set);
    }
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        bench_fail("this process may not be pinned to that CPU; choose another with --cpu");
    }
}

/* ---- subjects ---- */

static void open_subject(struct bench_subject *s, const struct bench_job *job, const char **version)
{
    for (const struct bench_library *l = bench_libraries; l->name != NULL; l++) {
        if (strcmp(l->name, s->name) == 0) {
            s->self = l->open(job);
            s->message = l->message;
            s->answer = s->self == NULL ? BENCH_UNSUPPORTED : BENCH_READY;
            *version = l->version();
            return;
        }
    }
    bench_open_own(s, job);
}

static void open_subjects(struct options *o)
{
    static const char *const answers[] = {"ready", "declined", "unsupported", "unknown"};
    static struct bench_job encrypting;
    encrypting = o->job;
    encrypting.decrypting = 0;
    for (unsigned i = 0; i < o->num_subjects; i++) {
        const char *version = "";
        open_subject(&o->subjects[i], &o->job, &version);
        o->makers[i].name = o->subjects[i].name;
        if (o->job.decrypting && o->job.tag_len != 0 && o->subjects[i].answer == BENCH_READY) {
            open_subject(&o->makers[i], &encrypting, &version);
        }
        printf("subject %u %s %s %s\n", i, o->subjects[i].name, answers[o->subjects[i].answer], version);
    }
}

/* ---- measuring ---- */

static uint8_t *plain, *source, *result, *expected;
static uint8_t tag[64], first_tag[64];

static int one_message(const struct options *o, unsigned i, size_t len)
{
    return o->subjects[i].message(o->subjects[i].self, result, source, len, tag);
}

/* Prepares what subjects of this size read, and sees to it that all of them compute the same unless they are of
 * different ciphers: else the numbers would compare unlike things. Returns a bit set of the subjects that take part. */
static unsigned agree(const struct options *o, size_t len)
{
    unsigned taking_part = 0;
    for (unsigned i = 0; i < o->num_subjects; i++) {
        if (o->subjects[i].answer != BENCH_READY) {
            continue;
        }
        int status = 0;
        memcpy(source, plain, len);
        if (o->makers[i].message != NULL) {
            status = o->makers[i].message(o->makers[i].self, source, plain, len, tag);
        }
        memset(result, 0, len);
        status = status != 0 ? status : one_message(o, i, len);
        if (status != 0) {
            printf("refused %u %zu %d\n", i, len, status);
            continue;
        }
        if (taking_part == 0) {
            memcpy(expected, result, len);
            memcpy(first_tag, tag, sizeof tag);
        } else if (o->compare && (memcmp(expected, result, len) != 0 || memcmp(first_tag, tag, sizeof tag) != 0)) {
            char text[256];
            (void)snprintf(text, sizeof text,
                           "%s does not compute what the first subject computes, for %zu bytes; run crosslane check",
                           o->subjects[i].name, len);
            bench_fail(text);
        }
        taking_part |= 1u << i;
    }
    return taking_part;
}

static struct bench_time run_messages(const struct options *o, unsigned i, size_t len, uint64_t messages)
{
    struct bench_time a = bench_clock_now();
    for (uint64_t n = 0; n < messages; n++) {
        (void)one_message(o, i, len);
    }
    struct bench_time b = bench_clock_now();
    return (struct bench_time){b.ns - a.ns, b.cycles - a.cycles};
}

/* Doubles until a sample is long enough; this is also the warm-up. */
static uint64_t messages_per_sample(const struct options *o, unsigned i, size_t len)
{
    uint64_t messages = 1;
    while (messages < MAX_MESSAGES) {
        uint64_t ns = run_messages(o, i, len, messages).ns;
        if (ns >= o->sample_ns) {
            break;
        }
        messages = ns < o->sample_ns / 16 ? 8 * messages : 2 * messages;
    }
    return messages;
}

static long interruptions(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

static struct bench_time sample(const struct options *o, unsigned i, size_t len, uint64_t messages)
{
    struct bench_time t = {0, 0};
    for (unsigned attempt = 0; attempt <= MAX_RETAKES_PER_SAMPLE; attempt++) {
        long before = interruptions();
        t = run_messages(o, i, len, messages);
        if (interruptions() == before) {
            break;
        }
        retaken++;
    }
    return t;
}

static void measure(const struct options *o, size_t len)
{
    unsigned taking_part = agree(o, len);
    uint64_t messages[BENCH_MAX_SUBJECTS] = {0};
    for (unsigned i = 0; i < o->num_subjects; i++) {
        if ((taking_part >> i) & 1u) {
            messages[i] = messages_per_sample(o, i, len);
        }
    }
    for (unsigned round = 0; round < o->rounds; round++) {
        for (unsigned k = 0; k < o->num_subjects; k++) {
            /* Each round goes the other way, so that a steady drift favours nobody. */
            unsigned i = (round & 1u) == 0 ? k : o->num_subjects - 1 - k;
            if ((taking_part >> i) & 1u) {
                struct bench_time t = sample(o, i, len, messages[i]);
                printf("sample %zu %u %llu %llu %llu\n", len, i, (unsigned long long)messages[i],
                       (unsigned long long)t.ns, (unsigned long long)t.cycles);
            }
        }
    }
}

/* ---- counting ---- */

static void mark(void)
{
    (void)syscall(MARK_CALL);
}

static void count(const struct options *o, size_t len)
{
    unsigned taking_part = agree(o, len);
    for (unsigned i = 0; i < o->num_subjects; i++) {
        if ((taking_part >> i) & 1u) {
            mark();
            (void)one_message(o, i, len);
            mark();
            printf("counted %zu %u 1\n", len, i);
        }
    }
}

int main(int argc, char **argv)
{
    static struct options o;
    o.cpu = -1;
    o.compare = 1;
    o.rounds = 30;
    o.sample_ns = 200000;
    for (int i = 1; i < argc; i++) {
        read_argument(&o, argv[i]);
    }
    if (o.job.mode == NULL || o.job.cipher == NULL || o.num_sizes == 0 || o.num_subjects == 0) {
        bench_fail("the bench program needs mode, cipher, sizes and subjects");
    }
    plain = aligned_alloc(4096, BENCH_MAX_LEN);
    source = aligned_alloc(4096, BENCH_MAX_LEN);
    result = aligned_alloc(4096, BENCH_MAX_LEN + 4096);
    expected = aligned_alloc(4096, BENCH_MAX_LEN);
    if (plain == NULL || source == NULL || result == NULL || expected == NULL) {
        bench_fail("there are no 4 MiB of memory for the messages; free some");
    }
    result += RESULT_OFFSET;
    fill(o.job.key, o.job.key_len, UINT64_C(0x9e3779b97f4a7c15));
    fill(o.job.iv, o.job.iv_len, UINT64_C(0xd1b54a32d192ed03));
    fill(plain, BENCH_MAX_LEN, UINT64_C(0x2545f4914f6cdd1d));
    pin(o.cpu);
    if (!o.count) {
        bench_clock_open(o.clock);
    }
    open_subjects(&o);
    if (o.count) {
        struct bench_subject nothing;
        bench_open_nothing(&nothing, &o.job);
        mark(); /* the first pair encloses nothing: its count is what the marks themselves cost */
        mark();
        mark(); /* the second one a message that does nothing: it costs what is not the mode's of any message */
        (void)nothing.message(nothing.self, result, source, o.sizes[0], tag);
        mark();
    }
    for (unsigned s = 0; s < o.num_sizes; s++) {
        (o.count ? count : measure)(&o, o.sizes[s]);
    }
    printf("retaken %llu\nend\n", (unsigned long long)retaken);
    return 0;
}
