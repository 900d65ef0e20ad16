/* SPDX-License-Identifier: Apache-2.0
 *
 * The vectors of serpent_bitslice.h with SSE2, which every x86-64 processor has.
 */
#ifndef SERPENT_VECTOR_SSE2_H
#define SERPENT_VECTOR_SSE2_H

#include "serpent_vector_xmm.h"

/* One load and four shuffles: SSE2 has no load that broadcasts. */
static inline void vec_broadcast_words(vec v[4], const uint32_t words[4])
{
    vec all = vec_load((const uint8_t *)words);
    v[0] = _mm_shuffle_epi32(all, 0x00);
    v[1] = _mm_shuffle_epi32(all, 0x55);
    v[2] = _mm_shuffle_epi32(all, 0xaa);
    v[3] = _mm_shuffle_epi32(all, 0xff);
}

static inline vec vec_bswap32(vec v)
{
    v = _mm_or_si128(_mm_slli_epi16(v, 8), _mm_srli_epi16(v, 8));
    return _mm_shufflehi_epi16(_mm_shufflelo_epi16(v, 0xb1), 0xb1);
}

#endif
