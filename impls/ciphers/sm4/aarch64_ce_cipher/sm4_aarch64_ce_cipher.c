/* SPDX-License-Identifier: Apache-2.0
 *
 * SM4 with the SM4 instructions, the block alone: for what computes one block at a time, and as what modes are composed from.
 */
#include "sm4_ce.h"

#define BLOCK_LEN NEON_BLOCK_LEN
#define NEEDED (SUBJECT_ARM_NEON | SUBJECT_ARM_SM4)

NEON_INLINE void crypt_blocks(const struct neon_keys *k, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks > 0; num_blocks--) {
        SUBJECT_PATH("1way");
        vst1q_u8(dst, crypt_1(k, vld1q_u8(src), 0));
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
}

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    const struct neon_keys k = encrypt_keys(ctx);
    crypt_blocks(&k, dst, src, num_blocks);
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    const struct neon_keys k = decrypt_keys(ctx);
    crypt_blocks(&k, dst, src, num_blocks);
}

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = 1,
    .ctx_len = sizeof(struct sm4_keys),
    .ctx_align = _Alignof(struct sm4_keys),
    .setkey = setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
};

const struct subject_leaf *sm4_aarch64_ce_cipher(uint64_t features);

const struct subject_leaf *sm4_aarch64_ce_cipher(uint64_t features)
{
    return (features & NEEDED) == NEEDED ? &leaf : NULL;
}
