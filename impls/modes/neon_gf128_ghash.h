/* SPDX-License-Identifier: Apache-2.0
 *
 * GHASH (SP 800-38D section 6.4) over the products of neon_gf128.h, for CPUs without the 64-bit PMULL.
 *
 * Paths, which impl.toml lists: gcm:ghash.
 */
#ifndef CROSSLANE_NEON_GF128_GHASH_H
#define CROSSLANE_NEON_GF128_GHASH_H

#include "neon_gf128.h"

/* A leaf's member `ghash`. */
static inline void neon_gf128_ghash(const uint8_t *h, uint8_t *y, const uint8_t *src, size_t num_blocks)
{
    const uint8x16_t factor = vrbitq_u8(vld1q_u8(h));
    uint8x16_t sum = vrbitq_u8(vld1q_u8(y));

    SUBJECT_PATH("ghash");
    for (; num_blocks > 0; num_blocks--) {
        sum = neon_gf128_multiply(veorq_u8(sum, vrbitq_u8(vld1q_u8(src))), factor);
        src += NEON_BLOCK_LEN;
    }
    vst1q_u8(y, vrbitq_u8(sum));
}

#endif
