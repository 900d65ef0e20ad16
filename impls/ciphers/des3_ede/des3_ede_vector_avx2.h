/* SPDX-License-Identifier: Apache-2.0
 *
 * The vectors of des3_ede_bitslice.h with the 256-bit registers of AVX2.
 */
#ifndef DES3_EDE_VECTOR_AVX2_H
#define DES3_EDE_VECTOR_AVX2_H

#include <immintrin.h>

#include "subject.h"

#define VEC_LEN 32u

typedef __m256i vec;

static inline vec vec_load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
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

static inline vec vec_broadcast(uint64_t word)
{
    return _mm256_set1_epi64x((long long)word);
}

/* Bit n of its number among the blocks of a vector, in all bits of each block. */
#define VEC_NUMBER_BITS 2u

static inline vec vec_number_bit(unsigned n)
{
    return n == 0 ? _mm256_setr_epi64x(0, -1, 0, -1) : _mm256_setr_epi64x(0, 0, -1, -1);
}

/* The bit of a key in a word, which is spread as it is loaded; its complement has a word of its own. */
typedef uint64_t key_word;

#define KEY_COMPLEMENTS 1
#define vec_key(k, place) vec_broadcast((k)[place])
#define vec_key_not(k, place) vec_broadcast((k)[KEY_PLACES + (place)])

static inline key_word key_word_of(unsigned bit)
{
    return 0 - (uint64_t)bit;
}

/* Of each block, exchanges the odd pieces of n bits in a with the even ones in b, counted from the low end. */
#define EXCHANGE_BITS(a, b, n, mask)                                                      \
    do {                                                                                  \
        vec moved = vec_and(vec_xor(_mm256_srli_epi64(a, n), b), _mm256_set1_epi8(mask)); \
        b = vec_xor(b, moved);                                                            \
        a = vec_xor(a, _mm256_slli_epi64(moved, n));                                      \
    } while (0)

static inline void vec_exchange_1(vec *a, vec *b)
{
    EXCHANGE_BITS(*a, *b, 1, 0x55);
}

static inline void vec_exchange_2(vec *a, vec *b)
{
    EXCHANGE_BITS(*a, *b, 2, 0x33);
}

static inline void vec_exchange_4(vec *a, vec *b)
{
    EXCHANGE_BITS(*a, *b, 4, 0x0f);
}

static inline void vec_exchange_8(vec *a, vec *b)
{
    const vec odd = _mm256_set1_epi16((short)0xff00);
    vec to_a = _mm256_slli_epi16(*b, 8), to_b = _mm256_srli_epi16(*a, 8);
    *a = _mm256_blendv_epi8(*a, to_a, odd);
    *b = _mm256_blendv_epi8(to_b, *b, odd);
}

static inline void vec_exchange_16(vec *a, vec *b)
{
    vec to_a = _mm256_slli_epi32(*b, 16), to_b = _mm256_srli_epi32(*a, 16);
    *a = _mm256_blend_epi16(*a, to_a, 0xaa);
    *b = _mm256_blend_epi16(to_b, *b, 0xaa);
}

static inline void vec_exchange_32(vec *a, vec *b)
{
    vec to_a = _mm256_slli_epi64(*b, 32), to_b = _mm256_srli_epi64(*a, 32);
    *a = _mm256_blend_epi32(*a, to_a, 0xaa);
    *b = _mm256_blend_epi32(to_b, *b, 0xaa);
}

#endif
