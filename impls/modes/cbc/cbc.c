/* SPDX-License-Identifier: Apache-2.0
 * CBC, SP 800-38A section 6.2: C_j = E(P_j xor C_{j-1}), P_j = D(C_j) xor C_{j-1}, C_0 = IV. */
#include "mode.h"

extern const struct subject_mode subject_mode_cbc;

static void encrypt_chain(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    size_t bs = m->leaf->block_len;
    for (size_t i = 0; i < num_blocks; i++) {
        uint8_t block[SUBJECT_MAX_BLOCK_LEN];
        xor_bytes(block, src + i * bs, m->iv, bs);
        m->leaf->encrypt_blocks(m->ctx, dst + i * bs, block, 1);
        memcpy(m->iv, dst + i * bs, bs);
    }
}

/* Decryption has no chain between the block calls, so it goes in runs; a copy of the ciphertext serves in place. */
static void decrypt_run(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    size_t bs = m->leaf->block_len, len = num_blocks * bs;
    uint8_t before[(MODE_MAX_RUN + 1) * SUBJECT_MAX_BLOCK_LEN];
    memcpy(before, m->iv, bs);
    memcpy(before + bs, src, len);
    m->leaf->decrypt_blocks(m->ctx, dst, src, num_blocks);
    xor_bytes(dst, dst, before, len);
    memcpy(m->iv, before + len, bs);
}

static int cbc_update(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    const struct subject_leaf *leaf = m->leaf;
    (void)last;
    if (len % leaf->block_len != 0) {
        return SUBJECT_BAD_DATA_LEN;
    }
    subject_crypt_fn *fused = m->state->decrypting ? leaf->cbc.decrypt : leaf->cbc.encrypt;
    if (fused != NULL) {
        fused(m->ctx, dst, src, len, m->iv);
    } else if (!m->state->decrypting) {
        encrypt_chain(m, dst, src, len / leaf->block_len);
    } else {
        size_t num_blocks = len / leaf->block_len;
        for (unsigned step = 0; num_blocks > 0; step++) {
            size_t run = mode_run_len(leaf, step, num_blocks);
            decrypt_run(m, dst, src, run);
            dst += run * leaf->block_len;
            src += run * leaf->block_len;
            num_blocks -= run;
        }
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
