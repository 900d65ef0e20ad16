/* SPDX-License-Identifier: Apache-2.0
 *
 * The vectors of serpent_bitslice.h with the 256-bit registers of AVX2: two blocks in each.
 */
#ifndef SERPENT_VECTOR_AVX2_H
#define SERPENT_VECTOR_AVX2_H

#include <immintrin.h>

#include "subject.h"

#define VEC_BLOCKS 2

typedef __m256i vec;

static inline vec vec_load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

static inline vec vec_load_after(const uint8_t *first, const uint8_t *rest)
{
    __m128i low = _mm_loadu_si128((const __m128i *)(const void *)first);
    __m128i high = _mm_loadu_si128((const __m128i *)(const void *)rest);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

static inline void vec_store(uint8_t *p, vec v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v);
}

static inline vec vec_xor(vec a, vec b)
{
    return _mm256_xor_si256(a, b);
}

static inline vec vec_and(vec a, vec b)
{
    return _mm256_and_si256(a, b);
}

static inline vec vec_or(vec a, vec b)
{
    return _mm256_or_si256(a, b);
}

static inline vec vec_and_not(vec a, vec b)
{
    return _mm256_andnot_si256(b, a);
}

static inline vec vec_add32(vec a, vec b)
{
    return _mm256_add_epi32(a, b);
}

#define vec_shl(v, n) _mm256_slli_epi32(v, n)
#define vec_shr(v, n) _mm256_srli_epi32(v, n)

static inline vec vec_broadcast(uint32_t word)
{
    return _mm256_set1_epi32((int)word);
}

static inline void vec_broadcast_words(vec v[4], const uint32_t words[4])
{
    v[0] = vec_broadcast(words[0]);
    v[1] = vec_broadcast(words[1]);
    v[2] = vec_broadcast(words[2]);
    v[3] = vec_broadcast(words[3]);
}

/* The shuffles keep to their 128-bit half, so that even blocks stand in the lower one. */
static inline vec vec_indices(void)
{
    return _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
}

static inline vec vec_bswap32(vec v)
{
    const __m128i order = _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(order));
}

static inline void vec_transpose(vec v[4])
{
    vec a = _mm256_unpacklo_epi32(v[0], v[1]);
    vec b = _mm256_unpackhi_epi32(v[0], v[1]);
    vec c = _mm256_unpacklo_epi32(v[2], v[3]);
    vec d = _mm256_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm256_unpacklo_epi64(a, c);
    v[1] = _mm256_unpackhi_epi64(a, c);
    v[2] = _mm256_unpacklo_epi64(b, d);
    v[3] = _mm256_unpackhi_epi64(b, d);
}

#endif
