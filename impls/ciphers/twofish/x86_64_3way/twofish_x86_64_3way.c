/* SPDX-License-Identifier: Apache-2.0
 *
 * Twofish for any x86-64: three blocks side by side, and one by one what is left over. */
#include "twofish_tabled.h"

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    encrypt_few(ctx, dst, src, num_blocks);
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    decrypt_few(ctx, dst, src, num_blocks);
}

#define FUSED_RUN 48u
#include "twofish_fused.h"

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = 3,
    .ctx_len = sizeof(struct tabled_ctx),
    .ctx_align = _Alignof(struct tabled_ctx),
    .setkey = tabled_setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
    .ecb = {ecb_encrypt, ecb_decrypt},
    .cbc = {NULL, cbc_decrypt}, /* encryption is one block at a time, fused or not; cfb's too */
    .cfb = {NULL, cfb_decrypt},
    .ctr = {ctr_crypt, ctr_crypt},
    .xts_encrypt = xts_encrypt,
    .xts_decrypt = xts_decrypt,
    .lrw_encrypt = lrw_encrypt,
    .lrw_decrypt = lrw_decrypt,
};

const struct subject_leaf *twofish_x86_64_3way(uint64_t features);

const struct subject_leaf *twofish_x86_64_3way(uint64_t features)
{
    (void)features;
    return &leaf;
}
