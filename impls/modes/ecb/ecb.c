/* SPDX-License-Identifier: Apache-2.0
 * ECB, SP 800-38A section 6.1: each block by itself. */
#include "mode.h"
#include "mode_overlap.h"

extern const struct subject_mode subject_mode_ecb;

static int ecb_setiv(struct subject_message *m, const uint8_t *iv, size_t iv_len)
{
    (void)m;
    (void)iv;
    return iv_len == 0 ? SUBJECT_OK : SUBJECT_BAD_IV_LEN;
}

static int ecb_update(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    const struct subject_leaf *leaf = m->leaf;
    (void)last;
    if (mode_overlaps(dst, src, len)) {
        return SUBJECT_OVERLAP;
    }
    if (len % leaf->block_len != 0) {
        return SUBJECT_BAD_DATA_LEN;
    }
    subject_crypt_fn *fused = m->state->decrypting ? leaf->ecb.decrypt : leaf->ecb.encrypt;
    if (fused != NULL) {
        fused(m->ctx, dst, src, len, NULL);
    } else {
        mode_blocks_in_runs(m, dst, src, len / leaf->block_len, (int)m->state->decrypting);
    }
    return SUBJECT_OK;
}

static uint32_t ecb_iv_out_len(const struct subject_message *m)
{
    (void)m;
    return 0;
}

const struct subject_mode subject_mode_ecb = {
    .name = "ecb",
    .num_ctx = 1,
    .has_output = 1,
    .setkey = mode_setkey_one,
    .setiv = ecb_setiv,
    .update = ecb_update,
    .final = mode_final_nothing,
    .iv_out_len = ecb_iv_out_len,
};
