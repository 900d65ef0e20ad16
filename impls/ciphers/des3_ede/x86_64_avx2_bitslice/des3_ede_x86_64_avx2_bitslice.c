/* SPDX-License-Identifier: Apache-2.0
 *
 * Triple DES with AVX2: 256 blocks bitsliced; few blocks, and modes that take one after the other, as des3_ede-x86_64.
 */
#include "des3_ede_vector_avx2.h"

#include "des3_ede_interleaved.h"

#define PAYS 24u

#include "des3_ede_bitslice.h"

/* Fewer blocks than pay take the modes of des3_ede-x86_64, whose context lies first. */
#define FEW (PAYS * BLOCK_LEN)

static void few_or_cbc_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    if (len < FEW) {
        cbc_decrypt(ctx, dst, src, len, iv);
    } else {
        bitslice_cbc_decrypt(ctx, dst, src, len, iv);
    }
}

static void few_or_cfb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    if (len < FEW) {
        cfb_decrypt(ctx, dst, src, len, iv);
    } else {
        bitslice_cfb_decrypt(ctx, dst, src, len, iv);
    }
}

static void few_or_ctr_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    if (len < FEW) {
        ctr_crypt(ctx, dst, src, len, iv);
    } else {
        bitslice_ctr_crypt(ctx, dst, src, len, iv);
    }
}

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = WAYS,
    .ctx_len = sizeof(struct bitslice_ctx),
    .ctx_align = _Alignof(struct bitslice_ctx),
    .setkey = bitslice_setkey,
    .encrypt_blocks = bitslice_encrypt_blocks,
    .decrypt_blocks = bitslice_decrypt_blocks,
    .ecb = {bitslice_ecb_encrypt, bitslice_ecb_decrypt},
    .cbc = {cbc_encrypt, few_or_cbc_decrypt},
    .cfb = {cfb_encrypt, few_or_cfb_decrypt},
    .ofb = {ofb_crypt, ofb_crypt},
    .ctr = {few_or_ctr_crypt, few_or_ctr_crypt},
    .cts_cbc = {NULL, bitslice_cts_cbc_decrypt},
};

const struct subject_leaf *des3_ede_x86_64_avx2_bitslice(uint64_t features);

const struct subject_leaf *des3_ede_x86_64_avx2_bitslice(uint64_t features)
{
    return (features & SUBJECT_X86_AVX2) != 0 ? &leaf : NULL;
}
