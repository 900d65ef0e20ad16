/* SPDX-License-Identifier: Apache-2.0
 *
 * The vectors of serpent_bitslice.h with NEON.
 */
#ifndef SERPENT_VECTOR_NEON_H
#define SERPENT_VECTOR_NEON_H

#include <arm_neon.h>

#include "subject.h"

#define VEC_BLOCKS 1

typedef uint32x4_t vec;

/* Bytes, so that the address may be any. */
static inline vec vec_load(const uint8_t *p)
{
    return vreinterpretq_u32_u8(vld1q_u8(p));
}

static inline vec vec_load_after(const uint8_t *first, const uint8_t *rest)
{
    (void)rest;
    return vec_load(first);
}

static inline void vec_store(uint8_t *p, vec v)
{
    vst1q_u8(p, vreinterpretq_u8_u32(v));
}

static inline vec vec_xor(vec a, vec b)
{
    return veorq_u32(a, b);
}

static inline vec vec_and(vec a, vec b)
{
    return vandq_u32(a, b);
}

static inline vec vec_or(vec a, vec b)
{
    return vorrq_u32(a, b);
}

static inline vec vec_and_not(vec a, vec b)
{
    return vbicq_u32(a, b);
}

static inline vec vec_add32(vec a, vec b)
{
    return vaddq_u32(a, b);
}

#define vec_shl(v, n) vshlq_n_u32(v, n)
#define vec_shr(v, n) vshrq_n_u32(v, n)
/* A shift that keeps the bits that it does not fill. */
#define vec_rotl(v, n) vsriq_n_u32(vshlq_n_u32(v, n), v, 32 - (n))
#define vec_rotr(v, n) vec_rotl(v, 32 - (n))

static inline vec vec_broadcast(uint32_t word)
{
    return vdupq_n_u32(word);
}

static inline void vec_broadcast_words(vec v[4], const uint32_t words[4])
{
    uint32x4x4_t all = vld4q_dup_u32(words);
    v[0] = all.val[0];
    v[1] = all.val[1];
    v[2] = all.val[2];
    v[3] = all.val[3];
}

static inline vec vec_indices(void)
{
    const uint32_t indices[4] = {0, 1, 2, 3};
    return vld1q_u32(indices);
}

static inline vec vec_bswap32(vec v)
{
    return vreinterpretq_u32_u8(vrev32q_u8(vreinterpretq_u8_u32(v)));
}

static inline vec vec_zip1_64(vec a, vec b)
{
    return vreinterpretq_u32_u64(vzip1q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
}

static inline vec vec_zip2_64(vec a, vec b)
{
    return vreinterpretq_u32_u64(vzip2q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
}

static inline void vec_transpose(vec v[4])
{
    vec a = vzip1q_u32(v[0], v[1]);
    vec b = vzip2q_u32(v[0], v[1]);
    vec c = vzip1q_u32(v[2], v[3]);
    vec d = vzip2q_u32(v[2], v[3]);
    v[0] = vec_zip1_64(a, c);
    v[1] = vec_zip2_64(a, c);
    v[2] = vec_zip1_64(b, d);
    v[3] = vec_zip2_64(b, d);
}

#endif
