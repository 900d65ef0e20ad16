/* SPDX-License-Identifier: Apache-2.0
 *
 * Serpent with SSE2: two groups of four blocks.
 */
#include "serpent_vector_sse2.h"

#include "serpent_bitslice.h"
#include "serpent_modes.h"

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = WAYS,
    .ctx_len = sizeof(struct serpent_ctx),
    .ctx_align = _Alignof(struct serpent_ctx),
    .setkey = setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
    .ecb = {ecb_encrypt, ecb_decrypt},
    .cbc = {NULL, cbc_decrypt}, /* encryption is one block at a time, fused or not */
    .cfb = {NULL, cfb_decrypt},
    .ctr = {ctr_crypt, ctr_crypt},
    .xts_encrypt = xts_encrypt,
    .xts_decrypt = xts_decrypt,
    .lrw_encrypt = lrw_encrypt,
    .lrw_decrypt = lrw_decrypt,
};

const struct subject_leaf *serpent_x86_64_sse2_8way(uint64_t features);

const struct subject_leaf *serpent_x86_64_sse2_8way(uint64_t features)
{
    (void)features; /* SSE2 belongs to x86-64 */
    return &leaf;
}
