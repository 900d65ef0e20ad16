/* SPDX-License-Identifier: Apache-2.0
 *
 * Serpent with NEON: two groups of four blocks.
 */
#include "serpent_vector_neon.h"

#include "serpent_bitslice.h"
#include "serpent_modes.h"
#include "serpent_wiped.h"

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = WAYS,
    .ctx_len = sizeof(struct serpent_ctx),
    .ctx_align = _Alignof(struct serpent_ctx),
    .setkey = wiped_setkey,
    .encrypt_blocks = wiped_encrypt_blocks,
    .decrypt_blocks = wiped_decrypt_blocks,
    .ecb = {wiped_ecb_encrypt, wiped_ecb_decrypt},
    .cbc = {NULL, wiped_cbc_decrypt}, /* encryption is one block at a time, fused or not */
    .cfb = {NULL, wiped_cfb_decrypt},
    .ctr = {wiped_ctr_crypt, wiped_ctr_crypt},
    .xts_encrypt = wiped_xts_encrypt,
    .xts_decrypt = wiped_xts_decrypt,
    .lrw_encrypt = wiped_lrw_encrypt,
    .lrw_decrypt = wiped_lrw_decrypt,
};

const struct subject_leaf *serpent_aarch64_neon_8way(uint64_t features);

const struct subject_leaf *serpent_aarch64_neon_8way(uint64_t features)
{
    return (features & SUBJECT_ARM_NEON) != 0 ? &leaf : NULL;
}
