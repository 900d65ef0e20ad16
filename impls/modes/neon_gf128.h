/* SPDX-License-Identifier: Apache-2.0
 *
 * Products in GF(2^128) modulo x^128 + x^7 + x^2 + x + 1 with the 8-bit PMULL that all of NEON has, in a time that depends on
 * neither factor. Byte 0 of a vector has the lowest coefficients, bit 0 the lowest of
 * a byte: GHASH (SP 800-38D section 6.4) has the bits of each byte in the other order, LRW the bytes of a block.
 */
#ifndef CROSSLANE_NEON_GF128_H
#define CROSSLANE_NEON_GF128_H

#include "neon_modes.h"

/* sum x^8 + (byte i of a) b. The 16-bit products of bytes are split into lower bytes, and upper ones that belong one place
 * further up: these take part in the multiplication by x^8. */
#define NEON_GF128_STEP(sum, a, b, i)                                                               \
    do {                                                                                            \
        const poly8x16_t byte = vreinterpretq_p8_u8(vdupq_laneq_u8(a, i));                          \
        const uint8x16_t first = vreinterpretq_u8_p16(vmull_p8(vget_low_p8(byte), vget_low_p8(b))); \
        const uint8x16_t second = vreinterpretq_u8_p16(vmull_high_p8(byte, b));                     \
        sum = neon_xts_times_256(veorq_u8(sum, vuzp2q_u8(first, second)), modulus, NEON_XTS);       \
        sum = veorq_u8(sum, vuzp1q_u8(first, second));                                              \
    } while (0)

NEON_INLINE uint8x16_t neon_gf128_multiply(uint8x16_t a, uint8x16_t factor)
{
    const poly8x8_t modulus = neon_xts_modulus(NEON_XTS);
    const poly8x16_t b = vreinterpretq_p8_u8(factor);
    uint8x16_t sum = vdupq_n_u8(0);

    NEON_GF128_STEP(sum, a, b, 15);
    NEON_GF128_STEP(sum, a, b, 14);
    NEON_GF128_STEP(sum, a, b, 13);
    NEON_GF128_STEP(sum, a, b, 12);
    NEON_GF128_STEP(sum, a, b, 11);
    NEON_GF128_STEP(sum, a, b, 10);
    NEON_GF128_STEP(sum, a, b, 9);
    NEON_GF128_STEP(sum, a, b, 8);
    NEON_GF128_STEP(sum, a, b, 7);
    NEON_GF128_STEP(sum, a, b, 6);
    NEON_GF128_STEP(sum, a, b, 5);
    NEON_GF128_STEP(sum, a, b, 4);
    NEON_GF128_STEP(sum, a, b, 3);
    NEON_GF128_STEP(sum, a, b, 2);
    NEON_GF128_STEP(sum, a, b, 1);
    NEON_GF128_STEP(sum, a, b, 0);
    return sum;
}

#endif
