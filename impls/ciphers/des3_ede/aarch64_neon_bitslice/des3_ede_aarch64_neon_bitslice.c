/* SPDX-License-Identifier: Apache-2.0
 *
 * Triple DES with NEON: 128 blocks bitsliced; few blocks as des3_ede-generic.
 */
#include "des3_ede_vector_neon.h"

#include "des3_ede_block.h"

#define PAYS 18u

#include "des3_ede_bitslice.h"

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
    .cbc = {NULL, bitslice_cbc_decrypt}, /* encryption is one block at a time, fused or not */
    .cfb = {NULL, bitslice_cfb_decrypt},
    .ctr = {bitslice_ctr_crypt, bitslice_ctr_crypt},
};

const struct subject_leaf *des3_ede_aarch64_neon_bitslice(uint64_t features);

const struct subject_leaf *des3_ede_aarch64_neon_bitslice(uint64_t features)
{
    return (features & SUBJECT_ARM_NEON) != 0 ? &leaf : NULL;
}
