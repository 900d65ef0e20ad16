/* SPDX-License-Identifier: Apache-2.0
 *
 * g of four words in a vector, by look-ups that are addressed by bytes of general registers (AVX). Words leave the vector
 * by VMOVQ and VPEXTRQ, two at a time: through memory it would be fewer instructions, but a word loaded from a vector just
 * stored is late, and a round waits for nothing else.
 *
 * A round needs g twice, and each time comes by another way: joined in general registers, words go back by VMOVD and
 * VPINSRD; or what the tables hold is loaded straight into lanes and joined there. The first way fills the integer units
 * and the second one the vector units, so that both together take less than twice either.
 */
#ifndef TWOFISH_LOOKUP_H
#define TWOFISH_LOOKUP_H

#include <immintrin.h>

#include "twofish_tabled.h"

/* clang-format off */

#define WORDS_OUT                                                  \
    "vmovq %[x], %%rax\n\t"                                        \
    "vpextrq $1, %[x], %%rbx\n\t"

/* The two lowest bytes of %rax or %rbx (p = a or b) to %rcx and %rdx. */
#define TWO_BYTES(p)                                               \
    "movzbl %%" p "l, %%ecx\n\t"                                   \
    "movzbl %%" p "h, %%edx\n\t"

#define SHIFT(p) "shrq $16, %%r" p "x\n\t"

/* Joined in general registers: the next word of p to r. `next` brings the word behind it down. */
#define JOIN_WORD(p, r, next)                                      \
    TWO_BYTES(p)                                                   \
    SHIFT(p)                                                       \
    "movl (%[ctx], %%rcx, 4), %" r "\n\t"                          \
    "xorl 1024(%[ctx], %%rdx, 4), %" r "\n\t"                      \
    TWO_BYTES(p)                                                   \
    next                                                           \
    "xorl 2048(%[ctx], %%rcx, 4), %" r "\n\t"                      \
    "xorl 3072(%[ctx], %%rdx, 4), %" r "\n\t"

static inline __m128i four_g(const struct tabled_ctx *ctx, __m128i x)
{
    __m128i low, high;
    uint32_t even, odd;

    __asm__(WORDS_OUT
            JOIN_WORD("a", "[even]", SHIFT("a"))
            "vmovd %[even], %[low]\n\t"
            JOIN_WORD("a", "[odd]", "")
            "vpinsrd $1, %[odd], %[low], %[low]\n\t"
            JOIN_WORD("b", "[even]", SHIFT("b"))
            "vmovd %[even], %[high]\n\t"
            JOIN_WORD("b", "[odd]", "")
            "vpinsrd $1, %[odd], %[high], %[high]\n\t"
            "vpunpcklqdq %[high], %[low], %[low]"
            : [low] "=&x"(low), [high] "=&x"(high), [even] "=&r"(even), [odd] "=&r"(odd)
            : [ctx] "r"(ctx), [x] "x"(x), "m"(*ctx)
            : "rax", "rbx", "rcx", "rdx", "cc");
    return low;
}

/* Straight into lanes: of the next word of p, rotated left by 8 bits, what each table holds goes to lane i of its own
 * register. */
#define FIRST_LANE                                                 \
    TWO_BYTES("a")                                                 \
    SHIFT("a")                                                     \
    "vmovd 1024(%[ctx], %%rcx, 4), %[v0]\n\t"                      \
    "vmovd 2048(%[ctx], %%rdx, 4), %[v1]\n\t"                      \
    TWO_BYTES("a")                                                 \
    SHIFT("a")                                                     \
    "vmovd 3072(%[ctx], %%rcx, 4), %[v2]\n\t"                      \
    "vmovd (%[ctx], %%rdx, 4), %[v3]\n\t"

#define NEXT_LANE(i, p, next)                                      \
    TWO_BYTES(p)                                                   \
    SHIFT(p)                                                       \
    "vpinsrd $" i ", 1024(%[ctx], %%rcx, 4), %[v0], %[v0]\n\t"     \
    "vpinsrd $" i ", 2048(%[ctx], %%rdx, 4), %[v1], %[v1]\n\t"     \
    TWO_BYTES(p)                                                   \
    next                                                           \
    "vpinsrd $" i ", 3072(%[ctx], %%rcx, 4), %[v2], %[v2]\n\t"     \
    "vpinsrd $" i ", (%[ctx], %%rdx, 4), %[v3], %[v3]\n\t"

/* g of each word rotated left by 8 bits. */
static inline __m128i four_g_rotated(const struct tabled_ctx *ctx, __m128i x)
{
    __m128i v0, v1, v2, v3;

    __asm__(WORDS_OUT
            FIRST_LANE
            NEXT_LANE("1", "a", "")
            NEXT_LANE("2", "b", SHIFT("b"))
            NEXT_LANE("3", "b", "")
            "vpxor %[v1], %[v0], %[v0]\n\t"
            "vpxor %[v3], %[v2], %[v2]\n\t"
            "vpxor %[v2], %[v0], %[v0]"
            : [v0] "=&x"(v0), [v1] "=&x"(v1), [v2] "=&x"(v2), [v3] "=&x"(v3)
            : [ctx] "r"(ctx), [x] "x"(x), "m"(*ctx)
            : "rax", "rbx", "rcx", "rdx", "cc");
    return v0;
}

/* clang-format on */

#endif
