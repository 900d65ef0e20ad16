/* SPDX-License-Identifier: Apache-2.0
 * CBC, SP 800-38A section 6.2. */
#include "cbc_chain.h"
#include "mode_overlap.h"

extern const struct subject_mode subject_mode_cbc;

static int cbc_update(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    const struct subject_leaf *leaf = m->leaf;
    (void)last;
    if (mode_overlaps(dst, src, len)) {
        return SUBJECT_OVERLAP;
    }
    if (len % leaf->block_len != 0) {
        return SUBJECT_BAD_DATA_LEN;
    }
    subject_crypt_fn *fused = m->state->decrypting ? leaf->cbc.decrypt : leaf->cbc.encrypt;
    if (fused != NULL) {
        fused(m->ctx, dst, src, len, m->iv);
    } else if (m->state->decrypting) {
        cbc_decrypt_chain(m, dst, src, len / leaf->block_len);
    } else {
        cbc_encrypt_chain(m, dst, src, len / leaf->block_len);
    }
    return SUBJECT_OK;
}

const struct subject_mode subject_mode_cbc = {
    .name = "cbc",
    .num_ctx = 1,
    .has_output = 1,
    .setkey = mode_setkey_one,
    .setiv = mode_setiv_block,
    .update = cbc_update,
    .final = mode_final_nothing,
    .iv_out_len = mode_iv_out_block,
};
