/* SPDX-License-Identifier: Apache-2.0
 *
 * The vectors of aes_x86_wide.h with 128-bit registers: a block each.
 */
#ifndef AES_X86_VECTOR_XMM_H
#define AES_X86_VECTOR_XMM_H

#include "aes_x86_block.h"

#define VEC_BLOCKS 1u

typedef __m128i vec;

/* A single vector is a block, which goes by itself. */
#define EACH_LAST_STEP(num_blocks, STEP)

ALWAYS_INLINE vec vec_load(const uint8_t *p)
{
    return block_load(p);
}

ALWAYS_INLINE void vec_store(uint8_t *p, vec v)
{
    block_store(p, v);
}

/* `first`, and behind it what fits of the blocks at `rest`. */
ALWAYS_INLINE vec vec_load_after(__m128i first, const uint8_t *rest)
{
    (void)rest;
    return first;
}

/* The same block everywhere. */
ALWAYS_INLINE vec vec_broadcast(__m128i block)
{
    return block;
}

ALWAYS_INLINE vec vec_broadcast_from(const __m128i *block)
{
    return *block;
}

/* The first block. */
ALWAYS_INLINE __m128i vec_first(vec v)
{
    return v;
}

/* The xor of all blocks. */
ALWAYS_INLINE __m128i vec_fold(vec v)
{
    return v;
}

/* `block` as the first block, zeros in the others. */
ALWAYS_INLINE vec vec_alone(__m128i block)
{
    return block;
}

/* The first block of `first`, the others of `later`. */
ALWAYS_INLINE vec vec_spread(vec first, vec later)
{
    (void)later;
    return first;
}

/* The same 128-bit number everywhere. */
ALWAYS_INLINE vec vec_number(uint64_t high, uint64_t low)
{
    return _mm_set_epi64x((int64_t)high, (int64_t)low);
}

/* 0, 1 .. times a number, as long as no half of it carries. */
ALWAYS_INLINE vec vec_multiples(uint64_t high, uint64_t low)
{
    (void)high;
    (void)low;
    return _mm_setzero_si128();
}

#define vec_xor(a, b) _mm_xor_si128(a, b)
#define vec_and(a, b) _mm_and_si128(a, b)
#define vec_or(a, b) _mm_or_si128(a, b)
#define vec_add64(a, b) _mm_add_epi64(a, b)
#define vec_shuffle8(v, order) _mm_shuffle_epi8(v, order)
#define vec_shuffle32(v, order) _mm_shuffle_epi32(v, order)
#define vec_low_halves(low, high) _mm_unpacklo_epi64(low, high)
#define vec_shl_bytes(v, n) _mm_slli_si128(v, n)
#define vec_shr_bytes(v, n) _mm_srli_si128(v, n)
#define vec_shl64(v, n) _mm_slli_epi64(v, n)
#define vec_shr64(v, n) _mm_srli_epi64(v, n)
#define vec_clmul(a, b, halves) _mm_clmulepi64_si128(a, b, halves)
#define vec_aesenc(v, k) _mm_aesenc_si128(v, k)
#define vec_aesenclast(v, k) _mm_aesenclast_si128(v, k)
#define vec_aesdec(v, k) _mm_aesdec_si128(v, k)
#define vec_aesdeclast(v, k) _mm_aesdeclast_si128(v, k)

#endif
