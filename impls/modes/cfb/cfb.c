/* SPDX-License-Identifier: Apache-2.0
 * CFB with full-block feedback, SP 800-38A section 6.3 with s = b: C_j = P_j xor E(C_{j-1}), C_0 = IV. While a block is
 * only partly there, its ciphertext gathers in m->iv and the keystream for the rest of it waits in the state. */
#include "mode.h"
#include "mode_overlap.h"

extern const struct subject_mode subject_mode_cfb;

static void encrypt_chain(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    size_t bs = m->leaf->block_len;
    for (size_t i = 0; i < num_blocks; i++) {
        m->leaf->encrypt_blocks(m->ctx, m->iv, m->iv, 1);
        xor_bytes(m->iv, m->iv, src + i * bs, bs);
        memcpy(dst + i * bs, m->iv, bs);
    }
}

/* All that decryption feeds back is there beforehand, so it goes in runs. num_blocks is at least 1. */
static void decrypt_run(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    size_t bs = m->leaf->block_len, len = num_blocks * bs;
    uint8_t keystream[MODE_MAX_RUN * SUBJECT_MAX_BLOCK_LEN];
    memcpy(keystream, m->iv, bs);
    memcpy(keystream + bs, src, len - bs);
    memcpy(m->iv, src + len - bs, bs);
    m->leaf->encrypt_blocks(m->ctx, keystream, keystream, num_blocks);
    xor_bytes(dst, src, keystream, len);
}

static void cfb_whole(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    if (!m->state->decrypting) {
        encrypt_chain(m, dst, src, num_blocks);
        return;
    }
    for (unsigned step = 0; num_blocks > 0; step++) {
        size_t run = mode_run_len(m->leaf, step, num_blocks);
        decrypt_run(m, dst, src, run);
        dst += run * m->leaf->block_len;
        src += run * m->leaf->block_len;
        num_blocks -= run;
    }
}

/* Bytes of the block begun, at most to its end. */
static void cfb_bytes(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len)
{
    struct subject_state *s = m->state;
    for (size_t i = 0; i < len; i++) {
        uint8_t in = src[i], out = in ^ s->keystream[s->used];
        m->iv[s->used++] = s->decrypting ? in : out;
        dst[i] = out;
    }
    s->used %= m->leaf->block_len;
}

static int cfb_update(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    const struct subject_leaf *leaf = m->leaf;
    struct subject_state *s = m->state;
    size_t bs = leaf->block_len, left = s->used == 0 ? 0 : bs - s->used;
    subject_crypt_fn *fused = s->decrypting ? leaf->cfb.decrypt : leaf->cfb.encrypt;
    size_t done = len < left ? len : left;
    if (mode_overlaps(dst, src, len)) {
        return SUBJECT_OVERLAP;
    }
    cfb_bytes(m, dst, src, done);
    size_t rest = len - done, whole = rest / bs * bs;
    if (fused != NULL && rest > 0) {
        /* The leaf sees a partial block only where nothing follows: the rest of its keystream is lost. */
        size_t given = last ? rest : whole;
        fused(m->ctx, dst + done, src + done, given, m->iv);
        s->used = (uint32_t)(given - whole);
        done += given;
    } else if (rest > 0) {
        cfb_whole(m, dst + done, src + done, rest / bs);
        done += whole;
    }
    if (done < len) {
        leaf->encrypt_blocks(m->ctx, s->keystream, m->iv, 1);
        cfb_bytes(m, dst + done, src + done, len - done);
    }
    return SUBJECT_OK;
}

const struct subject_mode subject_mode_cfb = {
    .name = "cfb",
    .num_ctx = 1,
    .has_output = 1,
    .setkey = mode_setkey_one,
    .setiv = mode_setiv_block,
    .update = cfb_update,
    .final = mode_final_nothing,
    .iv_out_len = mode_iv_out_whole,
};
