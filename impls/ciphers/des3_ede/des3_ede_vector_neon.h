/* SPDX-License-Identifier: Apache-2.0
 *
 * The vectors of des3_ede_bitslice.h with NEON.
 */
#ifndef DES3_EDE_VECTOR_NEON_H
#define DES3_EDE_VECTOR_NEON_H

#include <arm_neon.h>

#include "subject.h"

#define VEC_LEN 16u

typedef uint64x2_t vec;

/* Bytes, so that the address may be any. */
static inline vec vec_load(const uint8_t *p)
{
    return vreinterpretq_u64_u8(vld1q_u8(p));
}

static inline void vec_store(uint8_t *p, vec v)
{
    vst1q_u8(p, vreinterpretq_u8_u64(v));
}

static inline vec vec_xor(vec a, vec b)
{
    return veorq_u64(a, b);
}

static inline vec vec_and(vec a, vec b)
{
    return vandq_u64(a, b);
}

static inline vec vec_or(vec a, vec b)
{
    return vorrq_u64(a, b);
}

static inline vec vec_and_not(vec a, vec b)
{
    return vbicq_u64(a, b);
}

static inline vec vec_broadcast(uint64_t word)
{
    return vdupq_n_u64(word);
}

/* Bit n of its number among the blocks of a vector, in all bits of each block. */
#define VEC_NUMBER_BITS 1u

static inline vec vec_number_bit(unsigned n)
{
    (void)n;
    return vcombine_u64(vdup_n_u64(0), vdup_n_u64(UINT64_MAX));
}

/* The bit of a key in a whole vector: a load that spreads a word takes no offset, and so one instruction more. Few places
 * want a complement. */
typedef uint64x2_t key_word;

#define KEY_COMPLEMENTS 0
#define vec_key(k, place) ((k)[place])
#define vec_key_not(k, place) vreinterpretq_u64_u8(vmvnq_u8(vreinterpretq_u8_u64((k)[place])))

static inline key_word key_word_of(unsigned bit)
{
    return vdupq_n_u64(0 - (uint64_t)bit);
}

/* Of each block, exchanges the odd pieces of n bits in a with the even ones in b, counted from the low end. */
#define EXCHANGE_BITS(a, b, n, even)                                               \
    do {                                                                           \
        const uint8x16_t mask = vdupq_n_u8(even), old_a = vreinterpretq_u8_u64(a); \
        const uint8x16_t old_b = vreinterpretq_u8_u64(b);                          \
        a = vreinterpretq_u64_u8(vbslq_u8(mask, old_a, vshlq_n_u8(old_b, n)));     \
        b = vreinterpretq_u64_u8(vbslq_u8(mask, vshrq_n_u8(old_a, n), old_b));     \
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
    uint8x16_t old_a = vreinterpretq_u8_u64(*a), old_b = vreinterpretq_u8_u64(*b);
    *a = vreinterpretq_u64_u8(vtrn1q_u8(old_a, old_b));
    *b = vreinterpretq_u64_u8(vtrn2q_u8(old_a, old_b));
}

static inline void vec_exchange_16(vec *a, vec *b)
{
    uint16x8_t old_a = vreinterpretq_u16_u64(*a), old_b = vreinterpretq_u16_u64(*b);
    *a = vreinterpretq_u64_u16(vtrn1q_u16(old_a, old_b));
    *b = vreinterpretq_u64_u16(vtrn2q_u16(old_a, old_b));
}

static inline void vec_exchange_32(vec *a, vec *b)
{
    uint32x4_t old_a = vreinterpretq_u32_u64(*a), old_b = vreinterpretq_u32_u64(*b);
    *a = vreinterpretq_u64_u32(vtrn1q_u32(old_a, old_b));
    *b = vreinterpretq_u64_u32(vtrn2q_u32(old_a, old_b));
}

#endif
