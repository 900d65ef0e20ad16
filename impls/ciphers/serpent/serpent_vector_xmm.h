/* SPDX-License-Identifier: Apache-2.0
 *
 * The vectors of serpent_bitslice.h with 128-bit registers of x86-64: what SSE2 and AVX share.
 */
#ifndef SERPENT_VECTOR_XMM_H
#define SERPENT_VECTOR_XMM_H

#include <immintrin.h>

#include "subject.h"

#define VEC_BLOCKS 1

typedef __m128i vec;

static inline vec vec_load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline vec vec_load_after(const uint8_t *first, const uint8_t *rest)
{
    (void)rest;
    return vec_load(first);
}

static inline void vec_store(uint8_t *p, vec v)
{
    _mm_storeu_si128((__m128i *)(void *)p, v);
}

static inline vec vec_xor(vec a, vec b)
{
    return _mm_xor_si128(a, b);
}

static inline vec vec_and(vec a, vec b)
{
    return _mm_and_si128(a, b);
}

static inline vec vec_or(vec a, vec b)
{
    return _mm_or_si128(a, b);
}

static inline vec vec_and_not(vec a, vec b)
{
    return _mm_andnot_si128(b, a);
}

static inline vec vec_add32(vec a, vec b)
{
    return _mm_add_epi32(a, b);
}

#define vec_shl(v, n) _mm_slli_epi32(v, n)
#define vec_shr(v, n) _mm_srli_epi32(v, n)

static inline vec vec_broadcast(uint32_t word)
{
    return _mm_set1_epi32((int)word);
}

static inline vec vec_indices(void)
{
    return _mm_setr_epi32(0, 1, 2, 3);
}

static inline void vec_transpose(vec v[4])
{
    vec a = _mm_unpacklo_epi32(v[0], v[1]);
    vec b = _mm_unpackhi_epi32(v[0], v[1]);
    vec c = _mm_unpacklo_epi32(v[2], v[3]);
    vec d = _mm_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm_unpacklo_epi64(a, c);
    v[1] = _mm_unpackhi_epi64(a, c);
    v[2] = _mm_unpacklo_epi64(b, d);
    v[3] = _mm_unpackhi_epi64(b, d);
}

#endif
