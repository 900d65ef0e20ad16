/* SPDX-License-Identifier: Apache-2.0
 *
 * Twofish by tables for x86-64: one block at a time in C, and three side by side in assembly. What bounds a table cipher here is
 * the number of instructions that take bytes out of words, so the three blocks' rounds are written for few of them: the
 * words that go through g stay in registers, the other two of each block lie in memory, where the additions read them.
 */
#ifndef TWOFISH_TABLED_H
#define TWOFISH_TABLED_H

#include <emmintrin.h>

#include "twofish_single.h"

/* Assembly of three blocks. %rdi: tables; %rsi: the blocks, words a b c d of each; %rbx: this iteration's round keys.
 *
 * The tables T0 to T3 (displacements) of the bytes of word x go to r, the lowest byte's first. */
#define TF3_G(x, r, t0, t1, t2, t3)                                                      \
    "movl %%" x ", %%eax\n\t"                                                            \
    "movzbl %%al, %%ecx\n\t"                                                             \
    "movzbl %%ah, %%edx\n\t"                                                             \
    "shrl $16, %%eax\n\t"                                                                \
    "movl " t0 "(%%rdi, %%rcx, 4), %%" r "\n\txorl " t1 "(%%rdi, %%rdx, 4), %%" r "\n\t" \
    "movzbl %%al, %%ecx\n\t"                                                             \
    "movzbl %%ah, %%edx\n\t"                                                             \
    "xorl " t2 "(%%rdi, %%rcx, 4), %%" r "\n\txorl " t3 "(%%rdi, %%rdx, 4), %%" r "\n\t"

/* F of (a, b) in (r, s), key included; k0 and k1 are displacements of the two round keys. */
#define TF3_F(a, b, r, s, k0, k1)            \
    TF3_G(b, s, "1024", "2048", "3072", "0") \
    TF3_G(a, r, "0", "1024", "2048", "3072") \
    "addl %%" s ", %%" r "\n\t"              \
    "addl %%" r ", %%" s "\n\t"              \
    "addl " k0 "(%%rbx), %%" r "\n\t"        \
    "addl " k1 "(%%rbx), %%" s "\n\t"

/* A round of one block, whose halves are swapped by names: (a, b) goes to memory, the new words are left in (r, s). The
 * word that the next round but one rotates before it adds is stored rotated: the later d, or c when decrypting. */
#define TF3_ENCRYPT(a, b, r, s, c, d, k0, k1) \
    TF3_F(a, b, r, s, k0, k1)                 \
    "xorl " c "(%%rsi), %%" r "\n\t"          \
    "rorl $1, %%" r "\n\t"                    \
    "xorl " d "(%%rsi), %%" s "\n\t"          \
    "movl %%" a ", " c "(%%rsi)\n\t"          \
    "roll $1, %%" b "\n\t"                    \
    "movl %%" b ", " d "(%%rsi)\n\t"

#define TF3_DECRYPT(a, b, r, s, c, d, k0, k1) \
    TF3_F(a, b, r, s, k0, k1)                 \
    "xorl " d "(%%rsi), %%" s "\n\t"          \
    "rorl $1, %%" s "\n\t"                    \
    "xorl " c "(%%rsi), %%" r "\n\t"          \
    "roll $1, %%" a "\n\t"                    \
    "movl %%" a ", " c "(%%rsi)\n\t"          \
    "movl %%" b ", " d "(%%rsi)\n\t"

/* Four pairs of registers for three blocks: each round writes into the pair that the block before gave up, so that after
 * four rounds every block is back in its own. */
#define TF3_ROUND(step, p0, p1, q0, q1, r0, r1, s0, s1, k0, k1)                      \
    step(p0, p1, s0, s1, "8", "12", k0, k1) step(q0, q1, p0, p1, "24", "28", k0, k1) \
        step(r0, r1, q0, q1, "40", "44", k0, k1)

#define TF3_FOUR_ROUNDS(step, k0, k1, k2, k3, k4, k5, k6, k7)                             \
    TF3_ROUND(step, "r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d", "r15d", k0, k1) \
    TF3_ROUND(step, "r14d", "r15d", "r8d", "r9d", "r10d", "r11d", "r12d", "r13d", k2, k3) \
    TF3_ROUND(step, "r12d", "r13d", "r14d", "r15d", "r8d", "r9d", "r10d", "r11d", k4, k5) \
    TF3_ROUND(step, "r10d", "r11d", "r12d", "r13d", "r14d", "r15d", "r8d", "r9d", k6, k7)

/* 16 rounds. `rotated` is the displacement of the word kept rotated; round keys go from first to end by step bytes. */
#define TF3_ALL(rounds, rotated, step)                                                                    \
    "roll $1, " rotated "(%%rsi)\n\troll $1, 16+" rotated "(%%rsi)\n\troll $1, 32+" rotated "(%%rsi)\n\t" \
    "movl (%%rsi), %%r8d\n\tmovl 4(%%rsi), %%r9d\n\t"                                                     \
    "movl 16(%%rsi), %%r10d\n\tmovl 20(%%rsi), %%r11d\n\t"                                                \
    "movl 32(%%rsi), %%r12d\n\tmovl 36(%%rsi), %%r13d\n\t"                                                \
    "1:\n\t" rounds "addq $" step ", %%rbx\n\t"                                                           \
    "cmpq 48(%%rsi), %%rbx\n\t"                                                                           \
    "jne 1b\n\t"                                                                                          \
    "movl %%r8d, (%%rsi)\n\tmovl %%r9d, 4(%%rsi)\n\t"                                                     \
    "movl %%r10d, 16(%%rsi)\n\tmovl %%r11d, 20(%%rsi)\n\t"                                                \
    "movl %%r12d, 32(%%rsi)\n\tmovl %%r13d, 36(%%rsi)\n\t"                                                \
    "rorl $1, " rotated "(%%rsi)\n\trorl $1, 16+" rotated "(%%rsi)\n\trorl $1, 32+" rotated "(%%rsi)\n\t"

#define TF3_CLOBBERS "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc", "memory"

static inline __m128i load_words(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

/* In and out with whitening keys; out, the halves change places, which undoes the last round's swap. */
static inline void whiten_three(uint32_t words[3][4], const uint8_t *src, const uint32_t *k)
{
    for (unsigned i = 0; i < 3; i++) {
        _mm_storeu_si128((__m128i *)(void *)words[i], _mm_xor_si128(load_words(src + 16 * i), load_words(k)));
    }
}

static inline void unwhiten_three(uint8_t *dst, uint32_t words[3][4], const uint32_t *k)
{
    for (unsigned i = 0; i < 3; i++) {
        const __m128i swapped = _mm_shuffle_epi32(load_words(words[i]), _MM_SHUFFLE(1, 0, 3, 2));
        _mm_storeu_si128((__m128i *)(void *)(dst + 16 * i), _mm_xor_si128(swapped, load_words(k)));
    }
}

/* What the rounds have no registers for. */
struct three_blocks {
    uint32_t words[3][4];
    const uint32_t *end; /* of the round keys, 48 bytes from the beginning */
};

/* Four rounds of three blocks are a longer string than C promises; every compiler with this assembly takes it. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings"

static void encrypt_three(const struct tabled_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    const uint32_t *rk = ctx->subkey + 8;
    struct three_blocks t = {.end = ctx->subkey + NUM_SUBKEYS};

    SUBJECT_PATH("3way");
    whiten_three(t.words, src, ctx->subkey);
    __asm__ volatile(TF3_ALL(TF3_FOUR_ROUNDS(TF3_ENCRYPT, "0", "4", "8", "12", "16", "20", "24", "28"), "12", "32")
                     : "+b"(rk)
                     : "D"(ctx), "S"(&t)
                     : TF3_CLOBBERS);
    unwhiten_three(dst, t.words, ctx->subkey + 4);
}

static void decrypt_three(const struct tabled_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    const uint32_t *rk = ctx->subkey + NUM_SUBKEYS - 2;
    struct three_blocks t = {.end = ctx->subkey + 6};

    SUBJECT_PATH("3way");
    whiten_three(t.words, src, ctx->subkey + 4);
    __asm__ volatile(TF3_ALL(TF3_FOUR_ROUNDS(TF3_DECRYPT, "0", "4", "-8", "-4", "-16", "-12", "-24", "-20"), "8", "-32")
                     : "+b"(rk)
                     : "D"(ctx), "S"(&t)
                     : TF3_CLOBBERS);
    unwhiten_three(dst, t.words, ctx->subkey);
}

#pragma GCC diagnostic pop

/* Any number of blocks, by threes and then one by one: what wider code leaves over. */
static inline void encrypt_few(const struct tabled_ctx *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks >= 3; num_blocks -= 3, dst += 48, src += 48) {
        encrypt_three(ctx, dst, src);
    }
    for (; num_blocks > 0; num_blocks--, dst += 16, src += 16) {
        encrypt_one(ctx, dst, src);
    }
}

static inline void decrypt_few(const struct tabled_ctx *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks >= 3; num_blocks -= 3, dst += 48, src += 48) {
        decrypt_three(ctx, dst, src);
    }
    for (; num_blocks > 0; num_blocks--, dst += 16, src += 16) {
        decrypt_one(ctx, dst, src);
    }
}

#endif
