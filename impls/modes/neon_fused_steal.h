/* SPDX-License-Identifier: Apache-2.0
 *
 * xts, xts_gb and cts_cbc over a cipher in NEON registers, as neon_fused.h has it.
 *
 * Paths, which impl.toml lists: xts:steal, xts_gb:steal, cts_cbc:steal.
 */
#ifndef CROSSLANE_NEON_FUSED_STEAL_H
#define CROSSLANE_NEON_FUSED_STEAL_H

#include "neon_fused.h"

/* ---- xts ----------------------------------------------------------------------------------------------------- */

NEON_INLINE void xts_step(const struct neon_keys *k, const uint8x16_t t[WAYS], uint8_t *dst, const uint8_t *src,
                          size_t width, size_t num_blocks, int decrypting)
{
    uint8x16_t x[WAYS];

    load_blocks(x, src, width, num_blocks);
    xor_blocks(x, t, width);
    crypt_blocks(k, x, width, num_blocks, decrypting);
    xor_blocks(x, t, width);
    store_blocks(dst, x, width, num_blocks);
}

NEON_INLINE uint8x16_t xts_block(const struct neon_keys *k, uint8x16_t t, uint8x16_t x, int decrypting)
{
    return veorq_u8(crypt_1(k, veorq_u8(x, t), decrypting), t);
}

/* The tweaks of the blocks behind that of t[0]. */
NEON_INLINE void xts_tweaks(uint8x16_t t[WAYS], size_t width, enum neon_xts_order order)
{
    t[1] = neon_xts_double(t[0], order);
    t[2] = neon_xts_double(t[1], order);
    t[3] = neon_xts_double(t[2], order);
    if (width == WAYS) {
        t[4] = neon_xts_double(t[3], order);
        t[5] = neon_xts_double(t[4], order);
        t[6] = neon_xts_double(t[5], order);
        t[7] = neon_xts_double(t[6], order);
    }
}

NEON_INLINE void xts_advance(uint8x16_t t[WAYS], enum neon_xts_order order)
{
    const poly8x8_t modulus = neon_xts_modulus(order);

    t[0] = neon_xts_times_256(t[0], modulus, order);
    t[1] = neon_xts_times_256(t[1], modulus, order);
    t[2] = neon_xts_times_256(t[2], modulus, order);
    t[3] = neon_xts_times_256(t[3], modulus, order);
    t[4] = neon_xts_times_256(t[4], modulus, order);
    t[5] = neon_xts_times_256(t[5], modulus, order);
    t[6] = neon_xts_times_256(t[6], modulus, order);
    t[7] = neon_xts_times_256(t[7], modulus, order);
}

/* Up to HALF whole blocks; returns the tweak of the one behind them. */
NEON_INLINE uint8x16_t xts_few(const struct neon_keys *k, uint8x16_t tweak, uint8_t *dst, const uint8_t *src,
                               size_t num_blocks, int decrypting, enum neon_xts_order order)
{
    uint8x16_t t[WAYS];

    t[0] = tweak;
    if (num_blocks == 1) {
        SUBJECT_PATH("1way");
        vst1q_u8(dst, xts_block(k, tweak, vld1q_u8(src), decrypting));
        return neon_xts_double(tweak, order);
    }
    xts_tweaks(t, HALF, order);
    xts_step(k, t, dst, src, HALF, num_blocks, decrypting);
    return num_blocks == HALF ? neon_xts_double(t[3], order) : num_blocks == 3 ? t[3] : t[2];
}

/* The last whole block and the tail_len bytes behind it. What comes of the block under the one tweak fills the tail up to
 * a block, which takes the other tweak and the block's place; its first bytes become the tail. Both ends are moved
 * as the message's last 16 bytes, of which the block then covers what is not the tail's. */
NEON_INLINE void xts_steal(const struct neon_keys *k, uint8x16_t tweak, uint8_t *dst, const uint8_t *src,
                           size_t tail_len, int decrypting, enum neon_xts_order order)
{
    uint8x16_t next = neon_xts_double(tweak, order);
    uint8x16_t x = xts_block(k, decrypting ? next : tweak, vld1q_u8(src), decrypting);
    uint8x16_t filled = vqtbx1q_u8(x, vld1q_u8(src + tail_len), neon_tail_indices(tail_len));

    SUBJECT_PATH("steal");
    vst1q_u8(dst + tail_len, vqtbl1q_u8(x, neon_head_indices(tail_len)));
    vst1q_u8(dst, xts_block(k, decrypting ? tweak : next, filled, decrypting));
}

NEON_INLINE void xts_crypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                           const uint8_t *iv, int decrypting, enum neon_xts_order order)
{
    const struct neon_keys tweak_keys = encrypt_keys(tweak_ctx);
    const struct neon_keys k = keys_for(ctx, decrypting);
    size_t tail_len = len % BLOCK_LEN, num_blocks = len / BLOCK_LEN - (tail_len != 0);
    uint8x16_t tweak;

    if (len < BLOCK_LEN) {
        return;
    }
    tweak = crypt_1(&tweak_keys, vld1q_u8(iv), 0);
    if (len == BLOCK_LEN) {
        SUBJECT_PATH("1way");
        vst1q_u8(dst, xts_block(&k, tweak, vld1q_u8(src), decrypting));
        return;
    }
    if (num_blocks >= WAYS) {
        uint8x16_t t[WAYS];
        t[0] = tweak;
        xts_tweaks(t, WAYS, order);
        for (; num_blocks >= WAYS; num_blocks -= WAYS) {
            xts_step(&k, t, dst, src, WAYS, WAYS, decrypting);
            xts_advance(t, order);
            dst += WIDE_LEN;
            src += WIDE_LEN;
        }
        tweak = t[0];
    }
    while (num_blocks > 0) {
        size_t n = at_most(num_blocks, HALF);
        tweak = xts_few(&k, tweak, dst, src, n, decrypting, order);
        dst += n * BLOCK_LEN;
        src += n * BLOCK_LEN;
        num_blocks -= n;
    }
    if (tail_len != 0) {
        xts_steal(&k, tweak, dst, src, tail_len, decrypting, order);
    }
}

static inline void xts_encrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                               const uint8_t *iv)
{
    xts_crypt(ctx, tweak_ctx, dst, src, len, iv, 0, NEON_XTS);
}

static inline void xts_decrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                               const uint8_t *iv)
{
    xts_crypt(ctx, tweak_ctx, dst, src, len, iv, 1, NEON_XTS);
}

static inline void xts_gb_encrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                                  const uint8_t *iv)
{
    xts_crypt(ctx, tweak_ctx, dst, src, len, iv, 0, NEON_XTS_GB);
}

static inline void xts_gb_decrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                                  const uint8_t *iv)
{
    xts_crypt(ctx, tweak_ctx, dst, src, len, iv, 1, NEON_XTS_GB);
}

/* ---- cts_cbc ------------------------------------------------------------------------------------------------- */

/* CS3 of the addendum to SP 800-38A: cbc over what is before the last block, of 1 to 16 bytes; that one is filled up with
 * zeros, and what comes of it changes places with the block before it. */
static inline void cts_cbc_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct neon_keys k = encrypt_keys(ctx);
    size_t tail_len = (len - 1) % BLOCK_LEN + 1, head_len = len - tail_len;
    uint8x16_t chain, last;

    if (len < BLOCK_LEN) {
        return;
    }
    last = vqtbl1q_u8(vld1q_u8(src + len - BLOCK_LEN), neon_tail_indices(tail_len));
    chain = cbc_chain(&k, vld1q_u8(iv), dst, src, head_len / BLOCK_LEN);
    last = crypt_1(&k, veorq_u8(last, chain), 0);
    if (head_len == 0) {
        vst1q_u8(dst, last);
        return;
    }
    SUBJECT_PATH("steal");
    vst1q_u8(dst + len - BLOCK_LEN, vqtbl1q_u8(chain, neon_head_indices(tail_len)));
    vst1q_u8(dst + head_len - BLOCK_LEN, last);
}

static inline void cts_cbc_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct neon_keys k = decrypt_keys(ctx);
    size_t tail_len = (len - 1) % BLOCK_LEN + 1, head_len = len - tail_len;
    uint8x16_t opened, last, filled, chain;

    if (len < BLOCK_LEN) {
        return;
    }
    chain = vld1q_u8(iv);
    if (head_len == 0) {
        (void)cbc_open(&k, chain, dst, src, 1);
        return;
    }
    SUBJECT_PATH("steal");
    head_len -= BLOCK_LEN;
    last = vld1q_u8(src + len - BLOCK_LEN);
    opened = crypt_1(&k, vld1q_u8(src + head_len), 1);
    /* Behind the tail the padding was zero, so what was opened there is the ciphertext of the block before. */
    filled = vqtbx1q_u8(opened, last, neon_tail_indices(tail_len));
    chain = cbc_open(&k, chain, dst, src, head_len / BLOCK_LEN);
    vst1q_u8(dst + len - BLOCK_LEN, vqtbl1q_u8(veorq_u8(opened, filled), neon_head_indices(tail_len)));
    vst1q_u8(dst + head_len, veorq_u8(crypt_1(&k, filled, 1), chain));
}

#endif
