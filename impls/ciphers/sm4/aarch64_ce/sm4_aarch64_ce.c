/* SPDX-License-Identifier: Apache-2.0
 *
 * SM4 with the SM4 instructions, eight blocks side by side: the SM4E of a block waits for the one before it, so that as many
 * blocks as its latency has cycles fill the unit.
 */
#include "neon_ghash.h"
#include "sm4_ce.h"

#define NEEDED (SUBJECT_ARM_NEON | SUBJECT_ARM_PMULL | SUBJECT_ARM_SM4)

#define ROUNDS_4(x, k)              \
    do {                            \
        x[0] = vsm4eq_u32(x[0], k); \
        x[1] = vsm4eq_u32(x[1], k); \
        x[2] = vsm4eq_u32(x[2], k); \
        x[3] = vsm4eq_u32(x[3], k); \
    } while (0)

#define ROUNDS_8(x, k)              \
    do {                            \
        ROUNDS_4(x, k);             \
        x[4] = vsm4eq_u32(x[4], k); \
        x[5] = vsm4eq_u32(x[5], k); \
        x[6] = vsm4eq_u32(x[6], k); \
        x[7] = vsm4eq_u32(x[7], k); \
    } while (0)

NEON_INLINE void crypt_4(const struct neon_keys *k, uint8x16_t blocks[4], int decrypting)
{
    uint32x4_t x[4] = {block_words(blocks[0]), block_words(blocks[1]), block_words(blocks[2]), block_words(blocks[3])};

    (void)decrypting;
    ROUNDS_4(x, k->rk[0]);
    ROUNDS_4(x, k->rk[1]);
    ROUNDS_4(x, k->rk[2]);
    ROUNDS_4(x, k->rk[3]);
    ROUNDS_4(x, k->rk[4]);
    ROUNDS_4(x, k->rk[5]);
    ROUNDS_4(x, k->rk[6]);
    ROUNDS_4(x, k->rk[7]);
    blocks[0] = words_block(k, x[0]);
    blocks[1] = words_block(k, x[1]);
    blocks[2] = words_block(k, x[2]);
    blocks[3] = words_block(k, x[3]);
}

NEON_INLINE void crypt_8(const struct neon_keys *k, uint8x16_t blocks[8], int decrypting)
{
    uint32x4_t x[8] = {block_words(blocks[0]), block_words(blocks[1]), block_words(blocks[2]), block_words(blocks[3]),
                       block_words(blocks[4]), block_words(blocks[5]), block_words(blocks[6]), block_words(blocks[7])};

    (void)decrypting;
    ROUNDS_8(x, k->rk[0]);
    ROUNDS_8(x, k->rk[1]);
    ROUNDS_8(x, k->rk[2]);
    ROUNDS_8(x, k->rk[3]);
    ROUNDS_8(x, k->rk[4]);
    ROUNDS_8(x, k->rk[5]);
    ROUNDS_8(x, k->rk[6]);
    ROUNDS_8(x, k->rk[7]);
    blocks[0] = words_block(k, x[0]);
    blocks[1] = words_block(k, x[1]);
    blocks[2] = words_block(k, x[2]);
    blocks[3] = words_block(k, x[3]);
    blocks[4] = words_block(k, x[4]);
    blocks[5] = words_block(k, x[5]);
    blocks[6] = words_block(k, x[6]);
    blocks[7] = words_block(k, x[7]);
}

#include "neon_fused.h"
#include "neon_fused_steal.h"

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = WAYS,
    .ctx_len = sizeof(struct sm4_keys),
    .ctx_align = _Alignof(struct sm4_keys),
    .setkey = setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
    .ecb = {ecb_encrypt, ecb_decrypt},
    .cbc = {cbc_encrypt, cbc_decrypt},
    .cfb = {cfb_encrypt, cfb_decrypt},
    .ctr = {ctr_crypt, ctr_crypt},
    .cts_cbc = {cts_cbc_encrypt, cts_cbc_decrypt},
    .xts_encrypt = xts_encrypt,
    .xts_decrypt = xts_decrypt,
    .xts_gb_encrypt = xts_gb_encrypt,
    .xts_gb_decrypt = xts_gb_decrypt,
    .mac_update = mac_update,
    .ghash = neon_ghash,
};

const struct subject_leaf *sm4_aarch64_ce(uint64_t features);

const struct subject_leaf *sm4_aarch64_ce(uint64_t features)
{
    return (features & NEEDED) == NEEDED ? &leaf : NULL;
}
