/* SPDX-License-Identifier: Apache-2.0
 *
 * Triple DES in portable C: everything is in des3_ede_block.h. */
#include "des3_ede_block.h"

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = 1,
    .ctx_len = sizeof(struct des3_ede_ctx),
    .ctx_align = _Alignof(struct des3_ede_ctx),
    .setkey = setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
};

const struct subject_leaf *des3_ede_generic(uint64_t features);

const struct subject_leaf *des3_ede_generic(uint64_t features)
{
    (void)features;
    return &leaf;
}
