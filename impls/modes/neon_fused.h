/* SPDX-License-Identifier: Apache-2.0
 *
 * Modes over a cipher in NEON registers, 16-byte blocks, eight side by side. Before this header the cipher defines, all of it
 * NEON_INLINE:
 *     struct neon_keys                               what its rounds need, in registers as far as they go
 *     encrypt_keys(ctx), decrypt_keys(ctx)           that of a context
 *     crypt_1(keys, block, decrypting)               the block through the cipher; `decrypting` is a constant
 *     crypt_4(keys, blocks, decrypting), crypt_8     blocks side by side, in place
 * The functions fit struct subject_leaf; a leaf takes those that pay.
 *
 * A step takes eight blocks. What is left goes by up to four, of which those that are missing are zero, and a last one that
 * is alone by itself. All of a step is read before any of it is written: dst may be src.
 *
 * xts, xts_gb and cts_cbc are in neon_fused_steal.h.
 *
 * Paths, which impl.toml lists: 8way, 4way, 1way, ctr:ctr_wrap.
 */
#ifndef CROSSLANE_NEON_FUSED_H
#define CROSSLANE_NEON_FUSED_H

#include "neon_modes.h"

#define WAYS 8u
#define HALF 4u
#define BLOCK_LEN NEON_BLOCK_LEN
#define WIDE_LEN (WAYS * BLOCK_LEN)

/* ---- steps --------------------------------------------------------------------------------------------------- */

NEON_INLINE size_t at_most(size_t n, size_t most)
{
    return n < most ? n : most;
}

/* num_blocks blocks: 8 where width is 8, else 1 to 4. */
NEON_INLINE void load_blocks(uint8x16_t x[WAYS], const uint8_t *src, size_t width, size_t num_blocks)
{
    const uint8x16_t zero = vdupq_n_u8(0);

    x[0] = vld1q_u8(src);
    x[1] = width == WAYS || num_blocks > 1 ? vld1q_u8(src + 1 * BLOCK_LEN) : zero;
    x[2] = width == WAYS || num_blocks > 2 ? vld1q_u8(src + 2 * BLOCK_LEN) : zero;
    x[3] = width == WAYS || num_blocks > 3 ? vld1q_u8(src + 3 * BLOCK_LEN) : zero;
    if (width == WAYS) {
        x[4] = vld1q_u8(src + 4 * BLOCK_LEN);
        x[5] = vld1q_u8(src + 5 * BLOCK_LEN);
        x[6] = vld1q_u8(src + 6 * BLOCK_LEN);
        x[7] = vld1q_u8(src + 7 * BLOCK_LEN);
    }
}

NEON_INLINE void store_blocks(uint8_t *dst, const uint8x16_t x[WAYS], size_t width, size_t num_blocks)
{
    vst1q_u8(dst, x[0]);
    if (width == WAYS || num_blocks > 1) {
        vst1q_u8(dst + 1 * BLOCK_LEN, x[1]);
    }
    if (width == WAYS || num_blocks > 2) {
        vst1q_u8(dst + 2 * BLOCK_LEN, x[2]);
    }
    if (width == WAYS || num_blocks > 3) {
        vst1q_u8(dst + 3 * BLOCK_LEN, x[3]);
    }
    if (width == WAYS) {
        vst1q_u8(dst + 4 * BLOCK_LEN, x[4]);
        vst1q_u8(dst + 5 * BLOCK_LEN, x[5]);
        vst1q_u8(dst + 6 * BLOCK_LEN, x[6]);
        vst1q_u8(dst + 7 * BLOCK_LEN, x[7]);
    }
}

NEON_INLINE void xor_blocks(uint8x16_t x[WAYS], const uint8x16_t y[WAYS], size_t width)
{
    x[0] = veorq_u8(x[0], y[0]);
    x[1] = veorq_u8(x[1], y[1]);
    x[2] = veorq_u8(x[2], y[2]);
    x[3] = veorq_u8(x[3], y[3]);
    if (width == WAYS) {
        x[4] = veorq_u8(x[4], y[4]);
        x[5] = veorq_u8(x[5], y[5]);
        x[6] = veorq_u8(x[6], y[6]);
        x[7] = veorq_u8(x[7], y[7]);
    }
}

/* The blocks that come one before those of x: chain, then all of x but its last. */
NEON_INLINE void blocks_before(uint8x16_t y[WAYS], uint8x16_t chain, const uint8x16_t x[WAYS], size_t width)
{
    y[0] = chain;
    y[1] = x[0];
    y[2] = x[1];
    y[3] = x[2];
    if (width == WAYS) {
        y[4] = x[3];
        y[5] = x[4];
        y[6] = x[5];
        y[7] = x[6];
    }
}

NEON_INLINE void crypt_blocks(const struct neon_keys *k, uint8x16_t x[WAYS], size_t width, size_t num_blocks,
                              int decrypting)
{
    if (width == WAYS) {
        SUBJECT_PATH("8way");
        crypt_8(k, x, decrypting);
    } else if (num_blocks > 1) {
        SUBJECT_PATH("4way");
        crypt_4(k, x, decrypting);
    } else {
        SUBJECT_PATH("1way");
        x[0] = crypt_1(k, x[0], decrypting);
    }
}

NEON_INLINE struct neon_keys keys_for(const void *ctx, int decrypting)
{
    return decrypting ? decrypt_keys(ctx) : encrypt_keys(ctx);
}

/* ---- ecb ----------------------------------------------------------------------------------------------------- */

NEON_INLINE void ecb_step(const struct neon_keys *k, uint8_t *dst, const uint8_t *src, size_t width, size_t num_blocks,
                          int decrypting)
{
    uint8x16_t x[WAYS];

    load_blocks(x, src, width, num_blocks);
    crypt_blocks(k, x, width, num_blocks, decrypting);
    store_blocks(dst, x, width, num_blocks);
}

NEON_INLINE void ecb_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks, int decrypting)
{
    const struct neon_keys k = keys_for(ctx, decrypting);

    for (; num_blocks >= WAYS; num_blocks -= WAYS) {
        ecb_step(&k, dst, src, WAYS, WAYS, decrypting);
        dst += WIDE_LEN;
        src += WIDE_LEN;
    }
    while (num_blocks > 0) {
        size_t n = at_most(num_blocks, HALF);
        ecb_step(&k, dst, src, HALF, n, decrypting);
        dst += n * BLOCK_LEN;
        src += n * BLOCK_LEN;
        num_blocks -= n;
    }
}

static inline void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    ecb_crypt(ctx, dst, src, num_blocks, 0);
}

static inline void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    ecb_crypt(ctx, dst, src, num_blocks, 1);
}

static inline void ecb_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    (void)iv;
    encrypt_blocks(ctx, dst, src, len / BLOCK_LEN);
}

static inline void ecb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    (void)iv;
    decrypt_blocks(ctx, dst, src, len / BLOCK_LEN);
}

/* ---- one block after the other: cbc and cfb encryption, the MACs ----------------------------------------------- */

/* C_j = E(P_j xor C_{j-1}); returns the last one. Without a dst it is a MAC. */
NEON_INLINE uint8x16_t cbc_chain(const struct neon_keys *k, uint8x16_t chain, uint8_t *dst, const uint8_t *src,
                                 size_t num_blocks)
{
    for (; num_blocks >= HALF; num_blocks -= HALF) {
        uint8x16_t x[WAYS];
        load_blocks(x, src, HALF, HALF);
        x[0] = crypt_1(k, veorq_u8(x[0], chain), 0);
        x[1] = crypt_1(k, veorq_u8(x[1], x[0]), 0);
        x[2] = crypt_1(k, veorq_u8(x[2], x[1]), 0);
        x[3] = crypt_1(k, veorq_u8(x[3], x[2]), 0);
        chain = x[3];
        src += HALF * BLOCK_LEN;
        if (dst != NULL) {
            store_blocks(dst, x, HALF, HALF);
            dst += HALF * BLOCK_LEN;
        }
    }
    for (; num_blocks > 0; num_blocks--) {
        chain = crypt_1(k, veorq_u8(vld1q_u8(src), chain), 0);
        src += BLOCK_LEN;
        if (dst != NULL) {
            vst1q_u8(dst, chain);
            dst += BLOCK_LEN;
        }
    }
    return chain;
}

static inline void cbc_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct neon_keys k = encrypt_keys(ctx);
    vst1q_u8(iv, cbc_chain(&k, vld1q_u8(iv), dst, src, len / BLOCK_LEN));
}

static inline void mac_update(const void *ctx, uint8_t *mac, const uint8_t *src, size_t num_blocks)
{
    const struct neon_keys k = encrypt_keys(ctx);
    vst1q_u8(mac, cbc_chain(&k, vld1q_u8(mac), NULL, src, num_blocks));
}

/* C_j = P_j xor E(C_{j-1}). */
static inline void cfb_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct neon_keys k = encrypt_keys(ctx);
    uint8x16_t chain = vld1q_u8(iv);

    for (; len >= HALF * BLOCK_LEN; len -= HALF * BLOCK_LEN) {
        uint8x16_t x[WAYS];
        load_blocks(x, src, HALF, HALF);
        x[0] = veorq_u8(x[0], crypt_1(&k, chain, 0));
        x[1] = veorq_u8(x[1], crypt_1(&k, x[0], 0));
        x[2] = veorq_u8(x[2], crypt_1(&k, x[1], 0));
        x[3] = veorq_u8(x[3], crypt_1(&k, x[2], 0));
        chain = x[3];
        store_blocks(dst, x, HALF, HALF);
        dst += HALF * BLOCK_LEN;
        src += HALF * BLOCK_LEN;
    }
    for (; len >= BLOCK_LEN; len -= BLOCK_LEN) {
        chain = veorq_u8(vld1q_u8(src), crypt_1(&k, chain, 0));
        vst1q_u8(dst, chain);
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
    if (len > 0) {
        neon_xor_partial(dst, src, crypt_1(&k, chain, 0), len);
    }
    vst1q_u8(iv, chain);
}

/* O_j = E(O_{j-1}), C_j = P_j xor O_j, in both directions. */
static inline void ofb_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct neon_keys k = encrypt_keys(ctx);
    uint8x16_t chain = vld1q_u8(iv);

    for (; len >= BLOCK_LEN; len -= BLOCK_LEN) {
        chain = crypt_1(&k, chain, 0);
        vst1q_u8(dst, veorq_u8(vld1q_u8(src), chain));
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
    if (len > 0) {
        neon_xor_partial(dst, src, crypt_1(&k, chain, 0), len);
    }
    vst1q_u8(iv, chain);
}

/* ---- cbc and cfb decryption ---------------------------------------------------------------------------------- */

/* P_j = D(C_j) xor C_{j-1}; returns the last C_j. */
NEON_INLINE uint8x16_t cbc_step(const struct neon_keys *k, uint8x16_t chain, uint8_t *dst, const uint8_t *src,
                                size_t width, size_t num_blocks)
{
    uint8x16_t in[WAYS], x[WAYS], before[WAYS];

    load_blocks(in, src, width, num_blocks);
    load_blocks(x, src, width, num_blocks);
    crypt_blocks(k, x, width, num_blocks, 1);
    blocks_before(before, chain, in, width);
    xor_blocks(x, before, width);
    chain = vld1q_u8(src + (num_blocks - 1) * BLOCK_LEN);
    store_blocks(dst, x, width, num_blocks);
    return chain;
}

NEON_INLINE uint8x16_t cbc_open(const struct neon_keys *k, uint8x16_t chain, uint8_t *dst, const uint8_t *src,
                                size_t num_blocks)
{
    for (; num_blocks >= WAYS; num_blocks -= WAYS) {
        chain = cbc_step(k, chain, dst, src, WAYS, WAYS);
        dst += WIDE_LEN;
        src += WIDE_LEN;
    }
    while (num_blocks > 0) {
        size_t n = at_most(num_blocks, HALF);
        chain = cbc_step(k, chain, dst, src, HALF, n);
        dst += n * BLOCK_LEN;
        src += n * BLOCK_LEN;
        num_blocks -= n;
    }
    return chain;
}

static inline void cbc_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct neon_keys k = decrypt_keys(ctx);
    vst1q_u8(iv, cbc_open(&k, vld1q_u8(iv), dst, src, len / BLOCK_LEN));
}

/* P_j = C_j xor E(C_{j-1}); returns the last C_j. */
NEON_INLINE uint8x16_t cfb_step(const struct neon_keys *k, uint8x16_t chain, uint8_t *dst, const uint8_t *src,
                                size_t width, size_t num_blocks)
{
    uint8x16_t in[WAYS], x[WAYS];

    load_blocks(in, src, width, num_blocks);
    blocks_before(x, chain, in, width);
    crypt_blocks(k, x, width, num_blocks, 0);
    xor_blocks(x, in, width);
    chain = vld1q_u8(src + (num_blocks - 1) * BLOCK_LEN);
    store_blocks(dst, x, width, num_blocks);
    return chain;
}

static inline void cfb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct neon_keys k = encrypt_keys(ctx);
    uint8x16_t chain = vld1q_u8(iv);

    for (; len >= WIDE_LEN; len -= WIDE_LEN) {
        chain = cfb_step(&k, chain, dst, src, WAYS, WAYS);
        dst += WIDE_LEN;
        src += WIDE_LEN;
    }
    while (len >= BLOCK_LEN) {
        size_t n = at_most(len / BLOCK_LEN, HALF);
        chain = cfb_step(&k, chain, dst, src, HALF, n);
        dst += n * BLOCK_LEN;
        src += n * BLOCK_LEN;
        len -= n * BLOCK_LEN;
    }
    if (len > 0) {
        neon_xor_partial(dst, src, crypt_1(&k, chain, 0), len);
    }
    vst1q_u8(iv, chain);
}

/* ---- ctr ----------------------------------------------------------------------------------------------------- */

/* The next num_blocks counters, at most width, of which c becomes the one behind. Only the last words differ where those do
 * not wrap. */
NEON_INLINE void counter_blocks(uint8x16_t x[WAYS], struct neon_counter *c, size_t width, size_t num_blocks)
{
    uint32x4_t w[WAYS];

    w[0] = c->words;
    if (neon_counter_is_plain(c, (uint32_t)width)) {
        w[1] = vaddq_u32(w[0], c->one);
        w[2] = vaddq_u32(w[1], c->one);
        w[3] = vaddq_u32(w[2], c->one);
        if (width == WAYS) {
            w[4] = vaddq_u32(w[3], c->one);
            w[5] = vaddq_u32(w[4], c->one);
            w[6] = vaddq_u32(w[5], c->one);
            w[7] = vaddq_u32(w[6], c->one);
        }
        c->words = vaddq_u32(c->words, neon_counter_step((uint32_t)num_blocks));
        c->low += num_blocks;
    } else {
        SUBJECT_PATH("ctr_wrap");
        w[1] = neon_counter_after(c, 1).words;
        w[2] = neon_counter_after(c, 2).words;
        w[3] = neon_counter_after(c, 3).words;
        if (width == WAYS) {
            w[4] = neon_counter_after(c, 4).words;
            w[5] = neon_counter_after(c, 5).words;
            w[6] = neon_counter_after(c, 6).words;
            w[7] = neon_counter_after(c, 7).words;
        }
        *c = neon_counter_after(c, num_blocks);
    }
    x[0] = vrev32q_u8(vreinterpretq_u8_u32(w[0]));
    x[1] = vrev32q_u8(vreinterpretq_u8_u32(w[1]));
    x[2] = vrev32q_u8(vreinterpretq_u8_u32(w[2]));
    x[3] = vrev32q_u8(vreinterpretq_u8_u32(w[3]));
    if (width == WAYS) {
        x[4] = vrev32q_u8(vreinterpretq_u8_u32(w[4]));
        x[5] = vrev32q_u8(vreinterpretq_u8_u32(w[5]));
        x[6] = vrev32q_u8(vreinterpretq_u8_u32(w[6]));
        x[7] = vrev32q_u8(vreinterpretq_u8_u32(w[7]));
    }
}

NEON_INLINE void ctr_step(const struct neon_keys *k, struct neon_counter *c, uint8_t *dst, const uint8_t *src,
                          size_t width, size_t num_blocks)
{
    uint8x16_t x[WAYS], in[WAYS];

    counter_blocks(x, c, width, num_blocks);
    crypt_blocks(k, x, width, num_blocks, 0);
    load_blocks(in, src, width, num_blocks);
    xor_blocks(x, in, width);
    store_blocks(dst, x, width, num_blocks);
}

static inline void ctr_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct neon_keys k = encrypt_keys(ctx);
    struct neon_counter c = neon_counter_load(iv);

    for (; len >= WIDE_LEN; len -= WIDE_LEN) {
        ctr_step(&k, &c, dst, src, WAYS, WAYS);
        dst += WIDE_LEN;
        src += WIDE_LEN;
    }
    while (len >= HALF * BLOCK_LEN || (len > 0 && len % BLOCK_LEN == 0)) {
        size_t n = at_most(len / BLOCK_LEN, HALF);
        ctr_step(&k, &c, dst, src, HALF, n);
        dst += n * BLOCK_LEN;
        src += n * BLOCK_LEN;
        len -= n * BLOCK_LEN;
    }
    if (len > 0) {
        size_t n = len / BLOCK_LEN + 1;
        uint8_t keystream[HALF * BLOCK_LEN];
        uint8x16_t x[WAYS];
        counter_blocks(x, &c, HALF, n);
        crypt_blocks(&k, x, HALF, n, 0);
        store_blocks(keystream, x, HALF, HALF);
        xor_bytes(dst, src, keystream, len);
    }
    neon_counter_store(iv, &c);
}

#endif
