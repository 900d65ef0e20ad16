/* SPDX-License-Identifier: Apache-2.0
 *
 * What modes fused with NEON code need of vectors, whatever the cipher. A block is a vector of its bytes in memory order.
 */
#ifndef CROSSLANE_NEON_MODES_H
#define CROSSLANE_NEON_MODES_H

#include <arm_neon.h>

#include "subject.h"

#define NEON_INLINE static inline __attribute__((always_inline))
#define NEON_BLOCK_LEN 16u

/* ---- a partial block ----------------------------------------------------------------------------------------- */

/* Indices for TBL and TBX: 16 bytes from `16 + n` on move a vector's bytes down by n, from `16 - n` on up by n. What comes
 * in from outside is zero with TBL, and the destination's own byte with TBX. */
static const uint8_t neon_shifts[48] = {
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, /* below */
    0,   1,   2,   3,   4,   5,   6,   7,   8,   9,   10,  11,  12,  13,  14,  15,  /* the vector */
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, /* above */
};

/* Takes the last tail_len bytes (1 to 16) of v to its front. */
NEON_INLINE uint8x16_t neon_tail_indices(size_t tail_len)
{
    return vld1q_u8(neon_shifts + 32 - tail_len);
}

/* Takes the first tail_len bytes (1 to 16) of v to its end. */
NEON_INLINE uint8x16_t neon_head_indices(size_t tail_len)
{
    return vld1q_u8(neon_shifts + tail_len);
}

/* dst = src xor keystream, over len bytes, at most a block. */
NEON_INLINE void neon_xor_partial(uint8_t *dst, const uint8_t *src, uint8x16_t keystream, size_t len)
{
    uint8_t bytes[NEON_BLOCK_LEN];

    vst1q_u8(bytes, keystream);
    xor_bytes(dst, src, bytes, len);
}

/* ---- counters ------------------------------------------------------------------------------------------------ */

/* A counter of 128 bits as two integers, and as a vector of its words, first one first; `one` is what counts the last word. */
struct neon_counter {
    uint64_t high, low;
    uint32x4_t words, one;
};

NEON_INLINE uint32x4_t neon_counter_words(uint64_t high, uint64_t low)
{
    uint64x2_t halves = vcombine_u64(vcreate_u64(high), vcreate_u64(low));
    return vrev64q_u32(vreinterpretq_u32_u64(halves));
}

/* What a step by n adds to the words. */
NEON_INLINE uint32x4_t neon_counter_step(uint32_t n)
{
    return vsetq_lane_u32(n, vdupq_n_u32(0), 3);
}

NEON_INLINE struct neon_counter neon_counter_load(const uint8_t *iv)
{
    uint64_t high = load_be64(iv), low = load_be64(iv + 8);
    uint32x4_t one = neon_counter_step(1);

    /* One register that counts: the compiler would make it one for each of the sums. */
    __asm__("" : "+w"(one));
    return (struct neon_counter){high, low, neon_counter_words(high, low), one};
}

NEON_INLINE void neon_counter_store(uint8_t *iv, const struct neon_counter *c)
{
    vst1q_u8(iv, vrev32q_u8(vreinterpretq_u8_u32(c->words)));
}

/* Whether the counter and the n behind it differ in their last words alone. */
NEON_INLINE int neon_counter_is_plain(const struct neon_counter *c, uint32_t n)
{
    return (uint32_t)c->low <= UINT32_MAX - n;
}

/* The counter n blocks on, by the way that is always right. It is seldom gone: the compiler is kept from preparing it in each
 * round of a loop. */
NEON_INLINE struct neon_counter neon_counter_after(const struct neon_counter *c, uint64_t n)
{
    uint64_t low = c->low, high = c->high;

    __asm__("" : "+r"(low));
    low += n;
    high += low < n;
    return (struct neon_counter){high, low, neon_counter_words(high, low), c->one};
}

/* ---- tweaks of xts ------------------------------------------------------------------------------------------- */

/* IEEE Std 1619, 5.2: byte 0 holds the lowest coefficients, bit 0 the lowest of a byte; x^128 = x^7 + x^2 + x + 1.
 * GB/T 17964 has bit 7 as the lowest of a byte. */
enum neon_xts_order { NEON_XTS, NEON_XTS_GB };

/* x times the tweak in the order of NEON_XTS: bits that leave a half come in at the bottom of the other one, or as the
 * modulus below. */
NEON_INLINE uint8x16_t neon_double(uint8x16_t t)
{
    const uint64x2_t back = vcombine_u64(vcreate_u64(0x87), vcreate_u64(1));
    int64x2_t halves = vreinterpretq_s64_u8(t);
    uint64x2_t out = vreinterpretq_u64_s64(vshrq_n_s64(halves, 63));
    out = vandq_u64(vextq_u64(out, out, 1), back);
    return veorq_u8(vreinterpretq_u8_s64(vaddq_s64(halves, halves)), vreinterpretq_u8_u64(out));
}

NEON_INLINE uint8x16_t neon_xts_double(uint8x16_t t, enum neon_xts_order order)
{
    return order == NEON_XTS ? neon_double(t) : vrbitq_u8(neon_double(vrbitq_u8(t)));
}

/* x^8 times the tweak: each byte moves up by one place, and the last comes back as its product with the modulus below,
 * of which the rotation has added the coefficient of x^0 already. The constant is that of neon_xts_modulus. */
NEON_INLINE uint8x16_t neon_xts_times_256(uint8x16_t t, poly8x8_t modulus, enum neon_xts_order order)
{
    uint8x16_t turned = vextq_u8(t, t, 15);
    uint8x16_t back = vreinterpretq_u8_p16(vmull_p8(vreinterpret_p8_u8(vget_low_u8(turned)), modulus));

    if (order == NEON_XTS_GB) {
        /* Reversed, the 15 bits of the product lie at the top of 16, and the lower byte is the second. */
        back = vrev16q_u8(back);
    }
    return veorq_u8(turned, back);
}

/* x^7 + x^2 + x; in reverse, and moved up by the bit by which a reversed product is too short. */
NEON_INLINE poly8x8_t neon_xts_modulus(enum neon_xts_order order)
{
    return vcreate_p8(order == NEON_XTS ? 0x86 : 0xc2);
}

#endif
