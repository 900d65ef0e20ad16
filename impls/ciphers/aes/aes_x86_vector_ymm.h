/* SPDX-License-Identifier: Apache-2.0
 *
 * The vectors of aes_x86_wide.h with 256-bit registers: two blocks each.
 */
#ifndef AES_X86_VECTOR_YMM_H
#define AES_X86_VECTOR_YMM_H

#include "aes_x86_block.h"

#define VEC_BLOCKS 2u

typedef __m256i vec;

/* STEP(1) with a single vector: what EACH_NARROW_STEP ends with. */
#define EACH_LAST_STEP(num_blocks, STEP) \
    if ((num_blocks) >= VEC_BLOCKS) {    \
        SUBJECT_PATH("eighth");          \
        STEP(1u);                        \
        (num_blocks) -= VEC_BLOCKS;      \
    }

ALWAYS_INLINE vec vec_load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

ALWAYS_INLINE void vec_store(uint8_t *p, vec v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v);
}

/* `first`, and behind it what fits of the blocks at `rest`. */
ALWAYS_INLINE vec vec_load_after(__m128i first, const uint8_t *rest)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(first), block_load(rest), 1);
}

/* The same block everywhere. */
ALWAYS_INLINE vec vec_broadcast(__m128i block)
{
    return _mm256_broadcastsi128_si256(block);
}

ALWAYS_INLINE vec vec_broadcast_from(const __m128i *block)
{
    return _mm256_broadcastsi128_si256(*block);
}

/* The first block. */
ALWAYS_INLINE __m128i vec_first(vec v)
{
    return _mm256_castsi256_si128(v);
}

/* The xor of all blocks. */
ALWAYS_INLINE __m128i vec_fold(vec v)
{
    return _mm_xor_si128(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

/* `block` as the first block, zeros in the others. */
ALWAYS_INLINE vec vec_alone(__m128i block)
{
    return _mm256_inserti128_si256(_mm256_setzero_si256(), block, 0);
}

/* The first block of `first`, the others of `later`. */
ALWAYS_INLINE vec vec_spread(vec first, vec later)
{
    return _mm256_blend_epi32(first, later, 0xf0);
}

/* The same 128-bit number everywhere. */
ALWAYS_INLINE vec vec_number(uint64_t high, uint64_t low)
{
    return _mm256_set_epi64x((int64_t)high, (int64_t)low, (int64_t)high, (int64_t)low);
}

/* 0, 1 .. times a number, as long as no half of it carries. */
ALWAYS_INLINE vec vec_multiples(uint64_t high, uint64_t low)
{
    return _mm256_set_epi64x((int64_t)high, (int64_t)low, 0, 0);
}

#define vec_xor(a, b) _mm256_xor_si256(a, b)
#define vec_and(a, b) _mm256_and_si256(a, b)
#define vec_or(a, b) _mm256_or_si256(a, b)
#define vec_add64(a, b) _mm256_add_epi64(a, b)
#define vec_shuffle8(v, order) _mm256_shuffle_epi8(v, order)
#define vec_shuffle32(v, order) _mm256_shuffle_epi32(v, order)
#define vec_low_halves(low, high) _mm256_unpacklo_epi64(low, high)
#define vec_shl_bytes(v, n) _mm256_slli_si256(v, n)
#define vec_shr_bytes(v, n) _mm256_srli_si256(v, n)
#define vec_shl64(v, n) _mm256_slli_epi64(v, n)
#define vec_shr64(v, n) _mm256_srli_epi64(v, n)
#define vec_clmul(a, b, halves) _mm256_clmulepi64_epi128(a, b, halves)
#define vec_aesenc(v, k) _mm256_aesenc_epi128(v, k)
#define vec_aesenclast(v, k) _mm256_aesenclast_epi128(v, k)
#define vec_aesdec(v, k) _mm256_aesdec_epi128(v, k)
#define vec_aesdeclast(v, k) _mm256_aesdeclast_epi128(v, k)

#endif
