/* SPDX-License-Identifier: Apache-2.0
 *
 * GHASH (SP 800-38D section 6.4) with the 64-bit PMULL, for leaves that may use it.
 *
 * With the bits of each byte reversed a block is a polynomial in the usual order: bit i of the 128-bit little-endian number
 * is the coefficient of x^i. A step of four blocks has a power of H for each and reduces their sum once; steps
 * of eight would save 6 % more and are not worth four more powers.
 *
 * Paths, which impl.toml lists: gcm:ghash_4way, gcm:ghash_1way.
 */
#ifndef CROSSLANE_NEON_GHASH_H
#define CROSSLANE_NEON_GHASH_H

#include <arm_neon.h>

#include "subject.h"

#define NEON_GHASH_WAYS 4u
#define NEON_GHASH_BLOCK_LEN 16u

/* From how many blocks on the powers cost less than they save. */
#define NEON_GHASH_FROM_4WAY 8u

/* A factor, and its halves the other way round for the two products in the middle. */
struct neon_ghash_factor {
    uint64x2_t straight, crossed;
};

/* low + middle x^64 + high x^128. */
struct neon_ghash_product {
    uint64x2_t low, middle, high;
};

static inline uint64x2_t neon_ghash_load(const uint8_t *block)
{
    return vreinterpretq_u64_u8(vrbitq_u8(vld1q_u8(block)));
}

/* Of the lower halves. For the intrinsic, which takes scalars, gcc copies the halves and runs out of registers. */
static inline uint64x2_t neon_ghash_multiply_low(uint64x2_t a, uint64x2_t b)
{
    uint64x2_t product;
    __asm__("pmull %0.1q, %1.1d, %2.1d" : "=w"(product) : "w"(a), "w"(b));
    return product;
}

/* Of the upper halves. */
static inline uint64x2_t neon_ghash_multiply_high(uint64x2_t a, uint64x2_t b)
{
    return vreinterpretq_u64_p128(vmull_high_p64(vreinterpretq_p64_u64(a), vreinterpretq_p64_u64(b)));
}

static inline struct neon_ghash_factor neon_ghash_factor_of(uint64x2_t a)
{
    return (struct neon_ghash_factor){a, vextq_u64(a, a, 1)};
}

/* sum += a * b. */
static inline void neon_ghash_add_product(struct neon_ghash_product *sum, uint64x2_t a, struct neon_ghash_factor b)
{
    sum->low = veorq_u64(sum->low, neon_ghash_multiply_low(a, b.straight));
    sum->high = veorq_u64(sum->high, neon_ghash_multiply_high(a, b.straight));
    sum->middle = veorq_u64(sum->middle, neon_ghash_multiply_low(a, b.crossed));
    sum->middle = veorq_u64(sum->middle, neon_ghash_multiply_high(a, b.crossed));
}

static inline struct neon_ghash_product neon_ghash_product_of(uint64x2_t a, struct neon_ghash_factor b)
{
    struct neon_ghash_product p;
    p.low = neon_ghash_multiply_low(a, b.straight);
    p.high = neon_ghash_multiply_high(a, b.straight);
    p.middle = veorq_u64(neon_ghash_multiply_low(a, b.crossed), neon_ghash_multiply_high(a, b.crossed));
    return p;
}

/* Modulo x^128 + x^7 + x^2 + x + 1: the uppermost 64 bits go to the middle, and what is then above x^128 to the bottom. */
static inline uint64x2_t neon_ghash_reduce(struct neon_ghash_product p)
{
    const uint64x2_t modulus = vdupq_n_u64(0x87), zero = vdupq_n_u64(0);
    const uint64x2_t middle = veorq_u64(p.middle, neon_ghash_multiply_high(p.high, modulus));
    const uint64x2_t above = veorq_u64(p.high, vextq_u64(middle, middle, 1));
    const uint64x2_t low = veorq_u64(p.low, vextq_u64(zero, middle, 1));
    return veorq_u64(low, neon_ghash_multiply_low(above, modulus));
}

static inline uint64x2_t neon_ghash_square(uint64x2_t a)
{
    const struct neon_ghash_product p = {neon_ghash_multiply_low(a, a), vdupq_n_u64(0), neon_ghash_multiply_high(a, a)};
    return neon_ghash_reduce(p);
}

/* y = (y + block 0) H^4 + block 1 H^3 + block 2 H^2 + block 3 H, powers[i] = H^(i + 1). */
static inline uint64x2_t neon_ghash_step(const struct neon_ghash_factor powers[NEON_GHASH_WAYS], uint64x2_t y,
                                         const uint8_t *src)
{
    struct neon_ghash_product sum = neon_ghash_product_of(veorq_u64(y, neon_ghash_load(src)), powers[3]);
    neon_ghash_add_product(&sum, neon_ghash_load(src + NEON_GHASH_BLOCK_LEN), powers[2]);
    neon_ghash_add_product(&sum, neon_ghash_load(src + 2 * NEON_GHASH_BLOCK_LEN), powers[1]);
    neon_ghash_add_product(&sum, neon_ghash_load(src + 3 * NEON_GHASH_BLOCK_LEN), powers[0]);
    return neon_ghash_reduce(sum);
}

/* The leaf's member `ghash`. */
static inline void neon_ghash(const uint8_t *h, uint8_t *y, const uint8_t *src, size_t num_blocks)
{
    struct neon_ghash_factor powers[NEON_GHASH_WAYS];
    uint64x2_t sum;

    if (num_blocks == 0) {
        return;
    }
    powers[0] = neon_ghash_factor_of(neon_ghash_load(h));
    sum = neon_ghash_load(y);
    if (num_blocks >= NEON_GHASH_FROM_4WAY) {
        SUBJECT_PATH("ghash_4way");
        const uint64x2_t square = neon_ghash_square(powers[0].straight);
        powers[1] = neon_ghash_factor_of(square);
        powers[2] = neon_ghash_factor_of(neon_ghash_reduce(neon_ghash_product_of(square, powers[0])));
        powers[3] = neon_ghash_factor_of(neon_ghash_square(square));
        for (; num_blocks >= NEON_GHASH_WAYS; num_blocks -= NEON_GHASH_WAYS) {
            sum = neon_ghash_step(powers, sum, src);
            src += NEON_GHASH_WAYS * NEON_GHASH_BLOCK_LEN;
        }
    }
    if (num_blocks > 0) {
        SUBJECT_PATH("ghash_1way");
        for (; num_blocks > 0; num_blocks--) {
            sum = neon_ghash_reduce(neon_ghash_product_of(veorq_u64(sum, neon_ghash_load(src)), powers[0]));
            src += NEON_GHASH_BLOCK_LEN;
        }
    }
    vst1q_u8(y, vrbitq_u8(vreinterpretq_u8_u64(sum)));
}

#endif
