/* SPDX-License-Identifier: Apache-2.0
 *
 * CAST-128 by 16, 4 and single blocks, and the modes fused with it, for the file that includes this one and defines before
 *   one_round                            to ^ f(from) in round i, of integers
 *   encrypt_pairs, decrypt_pairs         of WAYS or CHUNK blocks, given as pairs
 *   pair                                 a vector of two blocks as they lie in memory
 *   load, store, xor_pairs               of pairs
 *   chain_from_iv                        a pair whose second block is the iv
 *   blocks_before                        the two blocks that stand before each block of a pair, of which the first is the
 *                                        second of the pair before
 *   second_block                         of a pair, as an integer
 *   counters_from, next_counters         two counters as a vector: c and c + 1, and the two behind them
 *   pair_from_counters                   those as blocks
 * Section numbers are those of RFC 2144. */
#ifndef CAST5_FUSED_H
#define CAST5_FUSED_H

#include "cast5_keys.h"

/* One block at a time. */

/* 2: the halves l and r take the part of Ri in turn, and come out exchanged. */
static void encrypt_block(const struct cast5_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    uint64_t block = swap_block(load_block(src));
    uint32_t l = (uint32_t)(block >> 32);
    uint32_t r = (uint32_t)block;

    SUBJECT_PATH("block");
    l = one_round(TYPE_1, l, r, ctx, 0);
    r = one_round(TYPE_2, r, l, ctx, 1);
    l = one_round(TYPE_3, l, r, ctx, 2);
    r = one_round(TYPE_1, r, l, ctx, 3);
    l = one_round(TYPE_2, l, r, ctx, 4);
    r = one_round(TYPE_3, r, l, ctx, 5);
    l = one_round(TYPE_1, l, r, ctx, 6);
    r = one_round(TYPE_2, r, l, ctx, 7);
    l = one_round(TYPE_3, l, r, ctx, 8);
    r = one_round(TYPE_1, r, l, ctx, 9);
    l = one_round(TYPE_2, l, r, ctx, 10);
    r = one_round(TYPE_3, r, l, ctx, 11);
    if (ctx->num_rounds == 16) {
        l = one_round(TYPE_1, l, r, ctx, 12);
        r = one_round(TYPE_2, r, l, ctx, 13);
        l = one_round(TYPE_3, l, r, ctx, 14);
        r = one_round(TYPE_1, r, l, ctx, 15);
    }
    store_block(dst, swap_block(((uint64_t)r << 32) | l));
}

/* 2: the same rounds in reverse order. */
static void decrypt_block(const struct cast5_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    uint64_t block = swap_block(load_block(src));
    uint32_t r = (uint32_t)(block >> 32);
    uint32_t l = (uint32_t)block;

    SUBJECT_PATH("block");
    if (ctx->num_rounds == 16) {
        r = one_round(TYPE_1, r, l, ctx, 15);
        l = one_round(TYPE_3, l, r, ctx, 14);
        r = one_round(TYPE_2, r, l, ctx, 13);
        l = one_round(TYPE_1, l, r, ctx, 12);
    }
    r = one_round(TYPE_3, r, l, ctx, 11);
    l = one_round(TYPE_2, l, r, ctx, 10);
    r = one_round(TYPE_1, r, l, ctx, 9);
    l = one_round(TYPE_3, l, r, ctx, 8);
    r = one_round(TYPE_2, r, l, ctx, 7);
    l = one_round(TYPE_1, l, r, ctx, 6);
    r = one_round(TYPE_3, r, l, ctx, 5);
    l = one_round(TYPE_2, l, r, ctx, 4);
    r = one_round(TYPE_1, r, l, ctx, 3);
    l = one_round(TYPE_3, l, r, ctx, 2);
    r = one_round(TYPE_2, r, l, ctx, 1);
    l = one_round(TYPE_1, l, r, ctx, 0);
    store_block(dst, swap_block(((uint64_t)l << 32) | r));
}

/* Many blocks. */

/* How many pairs of blocks go next side by side: those of 16 blocks, of 4, or none. */
ALWAYS_INLINE size_t next_pairs(size_t num_blocks)
{
    return num_blocks >= WAYS ? WAYS / 2 : num_blocks >= CHUNK ? CHUNK / 2 : 0;
}

typedef void crypt_pairs_fn(const struct cast5_ctx *ctx, pair *pairs, size_t num_pairs);
typedef void crypt_block_fn(const struct cast5_ctx *ctx, uint8_t *dst, const uint8_t *src);

/* Inlined, so that neither function is called through a pointer. */
ALWAYS_INLINE void crypt_blocks(const struct cast5_ctx *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks,
                                crypt_pairs_fn *crypt_pairs, crypt_block_fn *crypt_block)
{
    for (size_t n = next_pairs(num_blocks); n > 0; n = next_pairs(num_blocks)) {
        pair pairs[WAYS / 2];
        for (size_t i = 0; i < n; i++) {
            pairs[i] = load(src + PAIR_LEN * i);
        }
        crypt_pairs(ctx, pairs, n);
        for (size_t i = 0; i < n; i++) {
            store(dst + PAIR_LEN * i, pairs[i]);
        }
        dst += PAIR_LEN * n;
        src += PAIR_LEN * n;
        num_blocks -= 2 * n;
    }
    for (; num_blocks > 0; num_blocks--) {
        crypt_block(ctx, dst, src);
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
}

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    crypt_blocks(ctx, dst, src, num_blocks, encrypt_pairs, encrypt_block);
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    crypt_blocks(ctx, dst, src, num_blocks, decrypt_pairs, decrypt_block);
}

/* Modes. Of each step all input is in registers or on the stack before its first output is written: in place the two
 * are the same bytes. */

static void ecb_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    (void)iv;
    encrypt_blocks(ctx, dst, src, len / BLOCK_LEN);
}

static void ecb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    (void)iv;
    decrypt_blocks(ctx, dst, src, len / BLOCK_LEN);
}

static void cbc_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    size_t num_blocks = len / BLOCK_LEN;
    uint64_t before;

    if (num_blocks == 0) {
        return;
    }
    before = load_block(iv);
    for (size_t n = next_pairs(num_blocks); n > 0; n = next_pairs(num_blocks)) {
        pair chain = chain_from_iv(before), in[WAYS / 2], out[WAYS / 2];
        for (size_t i = 0; i < n; i++) {
            in[i] = out[i] = load(src + PAIR_LEN * i);
        }
        decrypt_pairs(ctx, out, n);
        for (size_t i = 0; i < n; i++) {
            store(dst + PAIR_LEN * i, xor_pairs(out[i], blocks_before(in[i], chain)));
            chain = in[i];
        }
        before = second_block(chain);
        dst += PAIR_LEN * n;
        src += PAIR_LEN * n;
        num_blocks -= 2 * n;
    }
    for (; num_blocks > 0; num_blocks--) {
        uint64_t block = load_block(src);
        decrypt_block(ctx, dst, src);
        store_block(dst, load_block(dst) ^ before);
        before = block;
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
    store_block(iv, before);
}

static void cfb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    uint8_t keystream[BLOCK_LEN];

    for (size_t n = next_pairs(len / BLOCK_LEN); n > 0; n = next_pairs(len / BLOCK_LEN)) {
        pair chain = chain_from_iv(load_block(iv)), in[WAYS / 2], out[WAYS / 2];
        for (size_t i = 0; i < n; i++) {
            in[i] = load(src + PAIR_LEN * i);
            out[i] = blocks_before(in[i], chain);
            chain = in[i];
        }
        encrypt_pairs(ctx, out, n);
        for (size_t i = 0; i < n; i++) {
            store(dst + PAIR_LEN * i, xor_pairs(out[i], in[i]));
        }
        store_block(iv, second_block(chain));
        dst += PAIR_LEN * n;
        src += PAIR_LEN * n;
        len -= PAIR_LEN * n;
    }
    for (; len >= BLOCK_LEN; len -= BLOCK_LEN) {
        encrypt_block(ctx, keystream, iv);
        memcpy(iv, src, BLOCK_LEN);
        xor_bytes(dst, iv, keystream, BLOCK_LEN);
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
    if (len > 0) {
        encrypt_block(ctx, keystream, iv);
        xor_bytes(dst, src, keystream, len);
    }
}

static void ctr_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    uint64_t counter = load_be64(iv);
    uint8_t keystream[BLOCK_LEN];

    for (size_t n = next_pairs(len / BLOCK_LEN); n > 0; n = next_pairs(len / BLOCK_LEN)) {
        pair c = counters_from(counter), pairs[WAYS / 2];
        for (size_t i = 0; i < n; i++) {
            pairs[i] = pair_from_counters(c);
            c = next_counters(c);
        }
        encrypt_pairs(ctx, pairs, n);
        for (size_t i = 0; i < n; i++) {
            store(dst + PAIR_LEN * i, xor_pairs(pairs[i], load(src + PAIR_LEN * i)));
        }
        counter += 2 * n;
        dst += PAIR_LEN * n;
        src += PAIR_LEN * n;
        len -= PAIR_LEN * n;
    }
    while (len > 0) {
        size_t part = len < BLOCK_LEN ? len : BLOCK_LEN;
        store_be64(keystream, counter++);
        encrypt_block(ctx, keystream, keystream);
        xor_bytes(dst, src, keystream, part);
        dst += part;
        src += part;
        len -= part;
    }
    store_be64(iv, counter);
}

#endif
