/* SPDX-License-Identifier: Apache-2.0
 *
 * Triple DES (FIPS 46-3, NIST SP 800-67) for x86-64: one block, or three side by side. */
#include "des3_ede_interleaved.h"

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
