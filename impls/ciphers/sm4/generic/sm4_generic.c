/* SPDX-License-Identifier: Apache-2.0
 *
 * SM4 (GB/T 32907-2016; in English draft-ribose-cfrg-sm4) in portable C: any byte order, any word size.
 *
 * Rounds and key schedule are those of sm4_block.h. A block alone waits for its own look-ups, so blocks go in pairs
 * where there are two.
 */
#include "sm4_block.h"

static int setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    (void)policy; /* SM4 has no weak keys */
    if (key_len != 16) {
        return SUBJECT_BAD_KEY_LEN;
    }
    expand_key(ctx, key);
    return SUBJECT_OK;
}

static void crypt_pair(const uint32_t *rk, uint8_t *dst, const uint8_t *src)
{
    uint32_t x[4], y[4];
    unsigned i;

    SUBJECT_PATH("2way");
    load_words(x, src);
    load_words(y, src + 16);
    for (i = 0; i < ROUNDS; i += 4) {
        x[0] ^= transform_word(x[1] ^ x[2] ^ x[3] ^ rk[i]);
        y[0] ^= transform_word(y[1] ^ y[2] ^ y[3] ^ rk[i]);
        x[1] ^= transform_word(x[2] ^ x[3] ^ x[0] ^ rk[i + 1]);
        y[1] ^= transform_word(y[2] ^ y[3] ^ y[0] ^ rk[i + 1]);
        x[2] ^= transform_word(x[3] ^ x[0] ^ x[1] ^ rk[i + 2]);
        y[2] ^= transform_word(y[3] ^ y[0] ^ y[1] ^ rk[i + 2]);
        x[3] ^= transform_word(x[0] ^ x[1] ^ x[2] ^ rk[i + 3]);
        y[3] ^= transform_word(y[0] ^ y[1] ^ y[2] ^ rk[i + 3]);
    }
    store_words(dst, x);
    store_words(dst + 16, y);
}

static void crypt_blocks(const uint32_t *rk, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks >= 2; num_blocks -= 2) {
        crypt_pair(rk, dst, src);
        dst += 32;
        src += 32;
    }
    if (num_blocks > 0) {
        SUBJECT_PATH("1way");
        crypt_block(rk, dst, src);
    }
}

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    const struct sm4_keys *keys = ctx;
    crypt_blocks(keys->encrypt, dst, src, num_blocks);
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    const struct sm4_keys *keys = ctx;
    crypt_blocks(keys->decrypt, dst, src, num_blocks);
}

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = 16,
    .ways = 2,
    .ctx_len = sizeof(struct sm4_keys),
    .ctx_align = _Alignof(struct sm4_keys),
    .setkey = setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
};

const struct subject_leaf *sm4_generic(uint64_t features);

const struct subject_leaf *sm4_generic(uint64_t features)
{
    (void)features;
    return &leaf;
}
