/* SPDX-License-Identifier: Apache-2.0
 * One function a fault, called before and after setkey and ctr of leaf.c; a program has one of them. */
#ifndef PLANTED_FAULTS_H
#define PLANTED_FAULTS_H

#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sm4.h"

enum stage { BEFORE_SETKEY, AFTER_SETKEY, BEFORE_CTR, AFTER_CTR };

struct call {
    enum stage stage;
    uint8_t *ctx;
    uint8_t *dst;
    const uint8_t *src; /* setkey: the key */
    size_t len;
    uint8_t *iv;
    uint8_t iv_before[16];
    uint64_t policy_register;
    int status;
};

#define PLANT(name) __attribute__((unused)) static void name(struct call *c)
#define BEFORE_DATA (c->stage == BEFORE_CTR && c->len > 0)
#define AFTER_DATA (c->stage == AFTER_CTR && c->len > 0)

PLANT(honest)
{
    (void)c;
}

/* ---- wrong answers ---- */

PLANT(wrong_at_one_len)
{
    if (AFTER_DATA && c->len == 53) {
        c->dst[52] ^= 1;
    }
}

/* Takes the carry for one of 64 bits where too few blocks are left for the wide path. */
PLANT(short_wrap)
{
    if (AFTER_DATA && c->len >= 17 && c->len <= 31 &&
        memcmp(c->iv_before + 8, "\xff\xff\xff\xff\xff\xff\xff\xff", 8) == 0) {
        c->dst[16] ^= 1;
    }
}

PLANT(iv_not_written_back)
{
    if (AFTER_DATA) {
        memcpy(c->iv, c->iv_before, 16);
    }
}

PLANT(refuses_a_good_key)
{
    if (c->stage == BEFORE_SETKEY && c->len == 16 && (c->src[0] & 3) == 1) {
        c->status = SUBJECT_WEAK_KEY;
    }
}

/* Forgets that its context may be a copy, keyed long ago: right alone, wrong behind forty others. */
PLANT(wrong_at_the_fortieth_call)
{
    static unsigned calls;
    if (AFTER_DATA && ++calls == 40) {
        c->dst[0] ^= 1;
    }
}

/* Takes all 64 bits of a register for the 32-bit policy: only the low ones are an argument. */
PLANT(upper_bits)
{
    if (c->stage == BEFORE_SETKEY && c->len == 16 && c->policy_register != 0) {
        c->status = SUBJECT_WEAK_KEY;
    }
}

/* Keeps what a call needs in a buffer that all calls share. */
PLANT(static_scratch)
{
    static uint8_t scratch[16];
    if (BEFORE_DATA) {
        memcpy(scratch, c->iv_before, 16);
    }
    if (AFTER_DATA && memcmp(scratch, c->iv_before, 16) != 0) {
        c->dst[0] ^= 1;
    }
}

/* The same, and the shared thing is a pointer. */
PLANT(static_pointer)
{
    static const uint8_t *volatile at;
    if (BEFORE_DATA) {
        at = c->src;
    }
    if (AFTER_DATA) {
        (void)*(volatile const uint8_t *)at;
        at = NULL;
    }
}

/* Lengths kept where they do not fit: what is beyond is not processed. */
PLANT(cut_to_16_bits)
{
    c->len = c->stage == BEFORE_CTR ? c->len & 0xffffu : c->len;
}

PLANT(cut_to_20_bits)
{
    c->len = c->stage == BEFORE_CTR ? c->len & 0xfffffu : c->len;
}

PLANT(cut_to_32_bits)
{
    c->len = c->stage == BEFORE_CTR ? c->len & 0xffffffffu : c->len;
}

PLANT(crashes_beyond_1_mib)
{
    if (BEFORE_DATA && c->len > 1 << 20) {
        abort();
    }
}

/* ---- ends the process, or never returns ---- */

PLANT(null_deref)
{
    if (BEFORE_DATA) {
        uintptr_t nowhere = 0;
        __asm__("" : "+r"(nowhere));
        *(volatile int *)nowhere = 1;
    }
}

PLANT(illegal_instruction)
{
    if (BEFORE_DATA) {
#if defined(__x86_64__)
        __asm__ volatile("ud2");
#else
        __asm__ volatile(".inst 0");
#endif
    }
}

PLANT(breakpoint)
{
    if (BEFORE_DATA) {
#if defined(__x86_64__)
        __asm__ volatile("int3");
#else
        __asm__ volatile("brk #0");
#endif
    }
}

PLANT(stack_overflow)
{
    volatile uint8_t room[65536];
    room[0] = 1;
    if (BEFORE_DATA) {
        stack_overflow(c);
    }
    room[1] = room[0];
}

PLANT(spins)
{
    while (BEFORE_DATA) {
        __asm__ volatile("" ::: "memory");
    }
}

/* Takes no CPU time: only the engine can notice. */
PLANT(sleeps)
{
    while (BEFORE_DATA) {
        pause();
    }
}

PLANT(exits)
{
    if (BEFORE_DATA) {
        _exit(0);
    }
}

PLANT(aborts)
{
    if (BEFORE_DATA) {
        abort();
    }
}

PLANT(kills_itself)
{
    if (BEFORE_DATA) {
        kill(getpid(), SIGKILL);
    }
}

/* ---- touches what it should not ---- */

PLANT(reads_behind_the_input)
{
    if (BEFORE_DATA) {
        (void)*(volatile const uint8_t *)(c->src + c->len);
    }
}

PLANT(reads_far_behind_the_input)
{
    if (BEFORE_DATA) {
        (void)*(volatile const uint8_t *)(c->src + (2 << 20));
    }
}

PLANT(reads_before_the_input)
{
    if (BEFORE_DATA) {
        (void)*(volatile const uint8_t *)(c->src - 1);
    }
}

PLANT(writes_behind_the_output)
{
    if (AFTER_DATA) {
        c->dst[c->len] = 0x5c;
    }
}

PLANT(writes_before_the_output)
{
    if (AFTER_DATA) {
        c->dst[-1] = 0x5c;
    }
}

PLANT(writes_behind_the_iv)
{
    if (AFTER_DATA) {
        c->iv[16] = 0x5c;
    }
}

PLANT(changes_the_input)
{
    if (AFTER_DATA && c->src != c->dst) {
        ((uint8_t *)c->src)[c->len - 1] ^= 1;
    }
}

PLANT(changes_the_key)
{
    if (c->stage == AFTER_SETKEY && c->len == 16) {
        ((uint8_t *)c->src)[15] ^= 1;
    }
}

PLANT(changes_the_context)
{
    if (AFTER_DATA) {
        c->ctx[offsetof(struct sm4, spare)] ^= 1;
    }
}

PLANT(writes_behind_the_context)
{
    if (c->stage == AFTER_SETKEY && c->status == SUBJECT_OK) {
        c->ctx[sizeof(struct sm4)] = 0x5c;
    }
}

PLANT(refuses_and_writes)
{
    if (c->stage == AFTER_SETKEY && c->status != SUBJECT_OK) {
        c->ctx[3] ^= 1;
    }
}

#if defined(__x86_64__)
PLANT(misaligned_load)
{
    if (BEFORE_DATA && c->len >= 16) {
        __asm__ volatile("movdqa (%0), %%xmm0" ::"r"(c->src) : "xmm0", "memory");
    }
}
#endif

/* ---- wild writes: what a lost pointer could do at its worst ---- */

#define SEARCHED_PAGES 131072u

/* Whether a page can be read, without touching it: qemu-user looks at the buffer of a write before its descriptor and
 * dies of an unreadable name, Linux looks at the descriptor first and at a name in any case. */
static int readable(const uint8_t *page)
{
    if (write(-1, page, 1) != 0 && errno == EFAULT) {
        return 0;
    }
    return syscall(SYS_faccessat, -1, page, 0) == 0 || errno != EFAULT;
}

/* Finds what the shim maps by its magic. */
static uint8_t *find_mapping(const char *magic)
{
    uint8_t *probe = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 1; i < SEARCHED_PAGES; i++) {
        for (int down = 0; down < 2; down++) {
            uint8_t *page = down ? probe - 4096 * i : probe + 4096 * i;
            if (readable(page) && memcmp(page, magic, 8) == 0) {
                return page;
            }
        }
    }
    abort();
}

/* Few cases of a batch: the rest are innocents. */
#define CULPRIT (AFTER_DATA && c->len > 16 && c->src != c->dst && c->src[0] == 0x5a && c->src[1] < 0x60)

PLANT(writes_over_the_batch)
{
    if (CULPRIT) {
        find_mapping("XLBATCH1")[100] = 0x77;
    }
}

PLANT(unlocks_and_writes_over_the_batch)
{
    if (CULPRIT) {
        uint8_t *batch = find_mapping("XLBATCH1");
        (void)mprotect(batch, 4096, PROT_READ | PROT_WRITE);
        batch[100] = 0x77;
    }
}

static size_t aligned(size_t v)
{
    return (v + 63) & ~(size_t)63;
}

static size_t number(const uint8_t *p, unsigned len)
{
    size_t v = 0;
    while (len-- > 0) {
        v = v << 8 | p[len];
    }
    return v;
}

/* The outputs of the batch's first case. */
PLANT(writes_over_an_earlier_output)
{
    if (CULPRIT) {
        const uint8_t *batch = find_mapping("XLBATCH1");
        uint8_t *results = find_mapping("XLRESLT1");
        uint8_t *out = results + 64 + aligned(32 * number(batch + 8, 4)) + aligned(number(batch + 16, 8));
        memset(out, 0x77, 64);
    }
}

/* Verdict, symptom and buffer of the batch's first case, with numbers that mean nothing. */
PLANT(writes_over_an_earlier_verdict)
{
    if (CULPRIT) {
        memset(find_mapping("XLRESLT1") + 64, 0xee, 32);
    }
}

PLANT(clears_an_earlier_verdict)
{
    if (CULPRIT) {
        memset(find_mapping("XLRESLT1") + 64, 0, 32);
    }
}

/* ---- controls: unusual, and allowed ---- */

PLANT(prefetches_beyond)
{
    if (BEFORE_DATA) {
        __builtin_prefetch(c->src - 1);
        __builtin_prefetch(c->src + c->len);
        __builtin_prefetch(c->src + c->len + (1 << 20));
        __builtin_prefetch(NULL);
    }
}

/* Neither reaches the protocol. */
PLANT(talks_on_stdout)
{
    if (BEFORE_DATA && write(STDOUT_FILENO, "debug: here we are\n", 19) != 19 && errno != EAGAIN) {
        abort();
    }
}

PLANT(reads_stdin)
{
    char byte;
    if (BEFORE_DATA && read(STDIN_FILENO, &byte, 1) != -1) {
        abort();
    }
}

/* More than a pipe holds, and nobody reads it. */
PLANT(talks_on_stderr)
{
    static const char word[1024];
    for (unsigned i = 0; BEFORE_DATA && i < 128; i++) {
        (void)!write(STDERR_FILENO, word, sizeof word);
    }
}

#endif
