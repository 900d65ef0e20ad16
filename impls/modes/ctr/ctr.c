/* SPDX-License-Identifier: Apache-2.0
 * CTR, SP 800-38A section 6.5, with the standard incrementing function of appendix B.1 over the whole block: big-endian
 * modulo 2^(8 * block_len). The counter moves on when its block is begun, so after a partial block it is already next.
 */
#include "mode.h"
#include "mode_overlap.h"

extern const struct subject_mode subject_mode_ctr;

static void ctr_run(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    size_t bs = m->leaf->block_len;
    uint8_t keystream[MODE_MAX_RUN * SUBJECT_MAX_BLOCK_LEN];
    if (num_blocks == 0) {
        return;
    }
    for (size_t i = 0; i < num_blocks; i++) {
        memcpy(keystream + i * bs, m->iv, bs);
        increment_be(m->iv, bs);
    }
    m->leaf->encrypt_blocks(m->ctx, keystream, keystream, num_blocks);
    xor_bytes(dst, src, keystream, num_blocks * bs);
}

static void ctr_whole(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    size_t bs = m->leaf->block_len;
    for (unsigned step = 0; num_blocks > 0; step++) {
        size_t run = mode_run_len(m->leaf, step, num_blocks);
        ctr_run(m, dst, src, run);
        dst += run * bs;
        src += run * bs;
        num_blocks -= run;
    }
}

static void ctr_partial(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len)
{
    struct subject_state *s = m->state;
    memcpy(s->keystream, m->iv, m->leaf->block_len);
    increment_be(m->iv, m->leaf->block_len);
    m->leaf->encrypt_blocks(m->ctx, s->keystream, s->keystream, 1);
    xor_bytes(dst, src, s->keystream, len);
    s->used = (uint32_t)len;
}

static int ctr_update(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    const struct subject_leaf *leaf = m->leaf;
    size_t bs = leaf->block_len;
    if (mode_overlaps(dst, src, len)) {
        return SUBJECT_OVERLAP;
    }
    size_t spent = mode_spend_keystream(m, dst, src, len);
    dst += spent;
    src += spent;
    len -= spent;
    subject_crypt_fn *fused = m->state->decrypting ? leaf->ctr.decrypt : leaf->ctr.encrypt;
    if (fused != NULL && len > 0) {
        /* The leaf sees a partial block only where nothing follows: the rest of its keystream is lost. */
        size_t whole = last ? len : len / bs * bs;
        fused(m->ctx, dst, src, whole, m->iv);
        dst += whole;
        src += whole;
        len -= whole;
    } else if (fused == NULL) {
        ctr_whole(m, dst, src, len / bs);
        dst += len / bs * bs;
        src += len / bs * bs;
        len %= bs;
    }
    if (len > 0) {
        ctr_partial(m, dst, src, len);
    }
    return SUBJECT_OK;
}

const struct subject_mode subject_mode_ctr = {
    .name = "ctr",
    .num_ctx = 1,
    .has_output = 1,
    .setkey = mode_setkey_one,
    .setiv = mode_setiv_block,
    .update = ctr_update,
    .final = mode_final_nothing,
    .iv_out_len = mode_iv_out_block,
};
