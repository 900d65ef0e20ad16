/* SPDX-License-Identifier: Apache-2.0
 *
 * Triple DES (FIPS 46-3, NIST SP 800-67) for x86-64: one block, or three side by side. */
#include "des3_ede_interleaved.h"

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
    const uint64_t *keys = ((const struct des3_ede_ctx *)ctx)->decrypt_keys;
    uint64_t chain = load_block(iv);

    for (; len >= INTERLEAVED * BLOCK_LEN; len -= INTERLEAVED * BLOCK_LEN) {
        uint64_t in[INTERLEAVED], out[INTERLEAVED];
        memcpy(in, src, sizeof(in));
        memcpy(out, in, sizeof(out));
        crypt_3(keys, out);
        for (unsigned i = 0; i < INTERLEAVED; i++) {
            store_block(dst + BLOCK_LEN * i, out[i] ^ chain);
            chain = in[i];
        }
        dst += INTERLEAVED * BLOCK_LEN;
        src += INTERLEAVED * BLOCK_LEN;
    }
    for (; len >= BLOCK_LEN; len -= BLOCK_LEN) {
        uint64_t in = load_block(src);
        store_block(dst, crypt_1(keys, in) ^ chain);
        chain = in;
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
    store_block(iv, chain);
}

static void cfb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const uint64_t *keys = ((const struct des3_ede_ctx *)ctx)->encrypt_keys;
    uint64_t chain = load_block(iv);

    for (; len >= INTERLEAVED * BLOCK_LEN; len -= INTERLEAVED * BLOCK_LEN) {
        uint64_t in[INTERLEAVED], out[INTERLEAVED];
        memcpy(in, src, sizeof(in));
        out[0] = chain;
        out[1] = in[0];
        out[2] = in[1];
        chain = in[2];
        crypt_3(keys, out);
        for (unsigned i = 0; i < INTERLEAVED; i++) {
            store_block(dst + BLOCK_LEN * i, out[i] ^ in[i]);
        }
        dst += INTERLEAVED * BLOCK_LEN;
        src += INTERLEAVED * BLOCK_LEN;
    }
    for (; len >= BLOCK_LEN; len -= BLOCK_LEN) {
        uint64_t in = load_block(src);
        store_block(dst, crypt_1(keys, chain) ^ in);
        chain = in;
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
    store_block(iv, chain);
    if (len > 0) {
        xor_partial(dst, src, crypt_1(keys, chain), len);
    }
}

static void ctr_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const uint64_t *keys = ((const struct des3_ede_ctx *)ctx)->encrypt_keys;
    uint64_t counter = __builtin_bswap64(load_block(iv));

    for (; len >= INTERLEAVED * BLOCK_LEN; len -= INTERLEAVED * BLOCK_LEN) {
        uint64_t keystream[INTERLEAVED];
        for (unsigned i = 0; i < INTERLEAVED; i++) {
            keystream[i] = __builtin_bswap64(counter + i);
        }
        counter += INTERLEAVED;
        crypt_3(keys, keystream);
        for (unsigned i = 0; i < INTERLEAVED; i++) {
            store_block(dst + BLOCK_LEN * i, keystream[i] ^ load_block(src + BLOCK_LEN * i));
        }
        dst += INTERLEAVED * BLOCK_LEN;
        src += INTERLEAVED * BLOCK_LEN;
    }
    for (; len >= BLOCK_LEN; len -= BLOCK_LEN) {
        store_block(dst, crypt_1(keys, __builtin_bswap64(counter)) ^ load_block(src));
        counter++;
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
    if (len > 0) {
        xor_partial(dst, src, crypt_1(keys, __builtin_bswap64(counter)), len);
        counter++;
    }
    store_block(iv, __builtin_bswap64(counter));
}

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = INTERLEAVED,
    .ctx_len = sizeof(struct des3_ede_ctx),
    .ctx_align = _Alignof(struct des3_ede_ctx),
    .setkey = setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
    .ecb = {ecb_encrypt, ecb_decrypt},
    .cbc = {cbc_encrypt, cbc_decrypt},
    .cfb = {cfb_encrypt, cfb_decrypt},
    .ofb = {ofb_crypt, ofb_crypt},
    .ctr = {ctr_crypt, ctr_crypt},
};

const struct subject_leaf *des3_ede_x86_64(uint64_t features);

const struct subject_leaf *des3_ede_x86_64(uint64_t features)
{
    (void)features;
    return &leaf;
}
