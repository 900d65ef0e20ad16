/* SPDX-License-Identifier: Apache-2.0
 *
 * g of four words in a vector, by look-ups in general registers (AVX). Words leave the vector by VMOVQ and VPEXTRQ, two
 * at a time, and come back by VMOVD and VPINSRD: through memory it would be fewer instructions, but a word loaded from a
 * vector just stored is late, and a round waits for nothing else.
 */
#ifndef TWOFISH_LOOKUP_H
#define TWOFISH_LOOKUP_H

#include <immintrin.h>

#include "twofish_tabled.h"

/* The next word of %rax or %rbx (p = a or b): the tables at displacements t0 to t3, of its bytes from the lowest on, go
 * to r. `next` brings the word behind it down. */
#define LOOKUP_WORD(p, r, t0, t1, t2, t3, next)                                                                     \
    "movzbl %%" p "l, %%ecx\n\t"                                                                                    \
    "movzbl %%" p "h, %%edx\n\t"                                                                                    \
    "shrq $16, %%r" p "x\n\t"                                                                                       \
    "movl " t0 "(%[ctx], %%rcx, 4), %" r "\n\txorl " t1 "(%[ctx], %%rdx, 4), %" r "\n\t"                            \
    "movzbl %%" p "l, %%ecx\n\t"                                                                                    \
    "movzbl %%" p "h, %%edx\n\t" next "xorl " t2 "(%[ctx], %%rcx, 4), %" r "\n\txorl " t3 "(%[ctx], %%rdx, 4), %" r \
    "\n\t"

#define LOOKUP_FOUR(t0, t1, t2, t3)                                                                                                                                             \
    "vmovq %[x], %%rax\n\t"                                                                                                                                                     \
    "vpextrq $1, %[x], %%rbx\n\t" LOOKUP_WORD("a", "[even]", t0, t1, t2, t3, "shrq $16, %%rax\n\t") "vmovd %[even], %[low]\n\t" LOOKUP_WORD(                                    \
        "a", "[odd]", t0, t1, t2, t3,                                                                                                                                           \
        "") "vpinsrd $1, %[odd], %[low], %[low]\n\t" LOOKUP_WORD("b", "[even]", t0, t1, t2, t3,                                                                                 \
                                                                 "shrq $16, %%rbx\n\t") "vmovd %[even], %[high]\n\t" LOOKUP_WORD("b",                                           \
                                                                                                                                 "[odd]",                                       \
                                                                                                                                 t0,                                            \
                                                                                                                                 t1,                                            \
                                                                                                                                 t2,                                            \
                                                                                                                                 t3,                                            \
                                                                                                                                 "") "vpinsrd $1, %[odd], %[high], %[high]\n\t" \
                                                                                                                                     "vpunpcklqdq %[high], %[low], %[low]\n\t"

#define LOOKUP_OPERANDS                                                          \
    : [low] "=&x"(low), [high] "=&x"(high), [even] "=&r"(even), [odd] "=&r"(odd)                                  \
    : [ctx] "r"(ctx), [x] "x"(x), "m"(*ctx)                                                                       \
    : "rax", "rbx", "rcx", "rdx", "cc"

static inline __m128i four_g(const struct tabled_ctx *ctx, __m128i x)
{
    __m128i low, high;
    uint32_t even, odd;

    __asm__(LOOKUP_FOUR("0", "1024", "2048", "3072") LOOKUP_OPERANDS);
    return low;
}

/* g of each word rotated left by 8 bits. */
static inline __m128i four_g_rotated(const struct tabled_ctx *ctx, __m128i x)
{
    __m128i low, high;
    uint32_t even, odd;

    __asm__(LOOKUP_FOUR("1024", "2048", "3072", "0") LOOKUP_OPERANDS);
    return low;
}

#endif
