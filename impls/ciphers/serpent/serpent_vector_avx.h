/* SPDX-License-Identifier: Apache-2.0
 *
 * The vectors of serpent_bitslice.h with 128-bit registers and AVX: instructions with three operands, loads that
 * broadcast, byte shuffles.
 */
#ifndef SERPENT_VECTOR_AVX_H
#define SERPENT_VECTOR_AVX_H

#include "serpent_vector_xmm.h"

/* AVX has this load for floats alone; the bits are the same. */
static inline vec vec_load_word(const uint32_t *word)
{
    return _mm_castps_si128(_mm_broadcast_ss((const float *)(const void *)word));
}

static inline void vec_broadcast_words(vec v[4], const uint32_t words[4])
{
    v[0] = vec_load_word(words);
    v[1] = vec_load_word(words + 1);
    v[2] = vec_load_word(words + 2);
    v[3] = vec_load_word(words + 3);
}

static inline vec vec_bswap32(vec v)
{
    return _mm_shuffle_epi8(v, _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12));
}

#endif
