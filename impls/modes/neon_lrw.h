/* SPDX-License-Identifier: Apache-2.0
 *
 * LRW (drafts of IEEE P1619) over a cipher in NEON registers, as neon_fused.h has it. The tweak of a block is key2 times its
 * index, and product and sum are linear: of an index 8 b + r it is key2 * 8 b, the base, plus key2 * r, one of eight
 * multiples. A message goes to the next multiple of eight by up to four blocks, then by steps of eight. The index is public,
 * the key is not.
 *
 * Paths, which impl.toml lists: lrw:lrw_wrap.
 */
#ifndef CROSSLANE_NEON_LRW_H
#define CROSSLANE_NEON_LRW_H

#include "neon_fused_steal.h"
#include "neon_gf128.h"

struct neon_lrw {
    uint8x16_t multiple[WAYS]; /* key2 * r, as bytes of a block */
    uint8x16_t key, key_8;     /* key2, and 8 times it, as numbers: byte 0 is the lowest */
    uint8x16_t base;           /* the same of the base */
    uint64_t high, low;        /* index of the next block */
};

NEON_INLINE uint8x16_t reverse_bytes(uint8x16_t v)
{
    v = vrev64q_u8(v);
    return vextq_u8(v, v, 8);
}

/* key2 times the multiple of eight that is not above the index. */
NEON_INLINE void lrw_set_base(struct neon_lrw *lrw)
{
    const uint64x2_t index = vcombine_u64(vcreate_u64(lrw->low & ~(uint64_t)(WAYS - 1)), vcreate_u64(lrw->high));
    lrw->base = neon_gf128_multiply(vreinterpretq_u8_u64(index), lrw->key);
}

NEON_INLINE void lrw_begin(struct neon_lrw *lrw, const uint8_t *key2, const uint8_t *index)
{
    uint8x16_t *m = lrw->multiple;

    lrw->key = reverse_bytes(vld1q_u8(key2));
    m[0] = vdupq_n_u8(0);
    m[1] = vld1q_u8(key2);
    lrw->key_8 = neon_double(lrw->key);
    m[2] = reverse_bytes(lrw->key_8);
    m[3] = veorq_u8(m[2], m[1]);
    lrw->key_8 = neon_double(lrw->key_8);
    m[4] = reverse_bytes(lrw->key_8);
    m[5] = veorq_u8(m[4], m[1]);
    m[6] = veorq_u8(m[4], m[2]);
    m[7] = veorq_u8(m[4], m[3]);
    lrw->key_8 = neon_double(lrw->key_8);
    lrw->high = load_be64(index);
    lrw->low = load_be64(index + 8);
    lrw_set_base(lrw);
}

/* From b to b + 1 the base changes by key2 * 8 (2^(k+1) - 1), k the trailing ones of b. */
NEON_INLINE void lrw_next_base(struct neon_lrw *lrw, uint64_t low_before)
{
    uint8x16_t power = lrw->key_8;

    lrw->base = veorq_u8(lrw->base, power);
    for (low_before /= WAYS; (low_before & 1) != 0; low_before /= 2) {
        power = neon_double(power);
        lrw->base = veorq_u8(lrw->base, power);
    }
}

NEON_INLINE void lrw_count(struct neon_lrw *lrw, size_t num_blocks)
{
    const uint64_t before = lrw->low;

    lrw->low += num_blocks;
    if (lrw->low < before) {
        SUBJECT_PATH("lrw_wrap");
        lrw->high++;
        lrw_set_base(lrw);
    } else if (lrw->low % WAYS == 0) {
        lrw_next_base(lrw, before);
    }
}

/* num_blocks as for crypt_blocks, from an index on of which the last bits are `from`; all under one base. */
NEON_INLINE void lrw_step(const struct neon_keys *k, struct neon_lrw *lrw, uint8_t *dst, const uint8_t *src,
                          size_t width, size_t num_blocks, size_t from, int decrypting)
{
    const uint8x16_t base = reverse_bytes(lrw->base), *m = lrw->multiple + from;
    uint8x16_t t[WAYS];

    t[0] = veorq_u8(m[0], base);
    t[1] = width == WAYS || num_blocks > 1 ? veorq_u8(m[1], base) : base;
    t[2] = width == WAYS || num_blocks > 2 ? veorq_u8(m[2], base) : base;
    t[3] = width == WAYS || num_blocks > 3 ? veorq_u8(m[3], base) : base;
    if (width == WAYS) {
        t[4] = veorq_u8(m[4], base);
        t[5] = veorq_u8(m[5], base);
        t[6] = veorq_u8(m[6], base);
        t[7] = veorq_u8(m[7], base);
    }
    xts_step(k, t, dst, src, width, num_blocks, decrypting);
    lrw_count(lrw, num_blocks);
}

NEON_INLINE void lrw_crypt(const void *ctx, const uint8_t *key2, uint8_t *dst, const uint8_t *src, size_t len,
                           uint8_t *index, int decrypting)
{
    const struct neon_keys k = keys_for(ctx, decrypting);
    size_t num_blocks = len / BLOCK_LEN;
    struct neon_lrw lrw;

    if (num_blocks == 0) {
        return;
    }
    lrw_begin(&lrw, key2, index);
    while (num_blocks > 0) {
        const size_t from = lrw.low % WAYS;
        const int whole = from == 0 && num_blocks >= WAYS;
        const size_t n = whole ? WAYS : at_most(at_most(num_blocks, WAYS - from), HALF);
        if (whole) {
            lrw_step(&k, &lrw, dst, src, WAYS, WAYS, 0, decrypting);
        } else {
            lrw_step(&k, &lrw, dst, src, HALF, n, from, decrypting);
        }
        dst += n * BLOCK_LEN;
        src += n * BLOCK_LEN;
        num_blocks -= n;
    }
    store_be64(index, lrw.high);
    store_be64(index + 8, lrw.low);
}

static inline void lrw_encrypt(const void *ctx, const uint8_t *key2, uint8_t *dst, const uint8_t *src, size_t len,
                               uint8_t *index)
{
    lrw_crypt(ctx, key2, dst, src, len, index, 0);
}

static inline void lrw_decrypt(const void *ctx, const uint8_t *key2, uint8_t *dst, const uint8_t *src, size_t len,
                               uint8_t *index)
{
    lrw_crypt(ctx, key2, dst, src, len, index, 1);
}

#endif
