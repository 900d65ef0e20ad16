/* SPDX-License-Identifier: Apache-2.0
 * OFB, SP 800-38A section 6.4: O_j = E(O_{j-1}), O_0 = IV, C_j = P_j xor O_j. Both directions are the same. */
#include "mode.h"
#include "mode_overlap.h"

extern const struct subject_mode subject_mode_ofb;

static void ofb_whole(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    size_t bs = m->leaf->block_len;
    for (size_t i = 0; i < num_blocks; i++) {
        m->leaf->encrypt_blocks(m->ctx, m->iv, m->iv, 1);
        xor_bytes(dst + i * bs, src + i * bs, m->iv, bs);
    }
}

static void ofb_partial(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len)
{
    struct subject_state *s = m->state;
    m->leaf->encrypt_blocks(m->ctx, m->iv, m->iv, 1);
    memcpy(s->keystream, m->iv, m->leaf->block_len);
    xor_bytes(dst, src, s->keystream, len);
    s->used = (uint32_t)len;
}

static int ofb_update(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    const struct subject_leaf *leaf = m->leaf;
    size_t bs = leaf->block_len;
    subject_crypt_fn *fused = m->state->decrypting ? leaf->ofb.decrypt : leaf->ofb.encrypt;
    if (mode_overlaps(dst, src, len)) {
        return SUBJECT_OVERLAP;
    }
    size_t done = mode_spend_keystream(m, dst, src, len);
    size_t rest = len - done, whole = rest / bs * bs;
    if (fused != NULL && rest > 0) {
        /* The leaf sees a partial block only where nothing follows: the rest of its keystream is lost. */
        size_t given = last ? rest : whole;
        fused(m->ctx, dst + done, src + done, given, m->iv);
        m->state->used = (uint32_t)(given - whole);
        done += given;
    } else if (rest > 0) {
        ofb_whole(m, dst + done, src + done, rest / bs);
        done += whole;
    }
    if (done < len) {
        ofb_partial(m, dst + done, src + done, len - done);
    }
    return SUBJECT_OK;
}

const struct subject_mode subject_mode_ofb = {
    .name = "ofb",
    .num_ctx = 1,
    .has_output = 1,
    .setkey = mode_setkey_one,
    .setiv = mode_setiv_block,
    .update = ofb_update,
    .final = mode_final_nothing,
    .iv_out_len = mode_iv_out_whole,
};
