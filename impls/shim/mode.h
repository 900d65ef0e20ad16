/* SPDX-License-Identifier: Apache-2.0
 * What the portable modes share. */
#ifndef CROSSLANE_MODE_H
#define CROSSLANE_MODE_H

#include "subject.h"

#define MODE_MAX_RUN 64u

/* Blocks of the next call of a block function: runs of 1, ways - 1, ways and 2 * ways + 1 in turn, so that a mode composed
 * over a leaf reaches its narrow and wide paths, and the borders between them, within one message. */
static inline size_t mode_run_len(const struct subject_leaf *leaf, unsigned step, size_t num_blocks)
{
    size_t ways = leaf->ways;
    size_t runs[4] = {1, ways - 1, ways, 2 * ways + 1};
    size_t run = runs[step % 4];
    run = run == 0 ? 1 : run;
    run = run > MODE_MAX_RUN ? MODE_MAX_RUN : run;
    return run < num_blocks ? run : num_blocks;
}

static inline void mode_blocks_in_runs(const struct subject_message *m, uint8_t *dst, const uint8_t *src,
                                       size_t num_blocks, int decrypting)
{
    subject_blocks_fn *blocks = decrypting ? m->leaf->decrypt_blocks : m->leaf->encrypt_blocks;
    for (unsigned step = 0; num_blocks > 0; step++) {
        size_t run = mode_run_len(m->leaf, step, num_blocks);
        blocks(m->ctx, dst, src, run);
        dst += run * m->leaf->block_len;
        src += run * m->leaf->block_len;
        num_blocks -= run;
    }
}

/* Each block masked before and after: dst = E(src xor masks) xor masks, or D likewise. masks may not be dst. */
static inline void mode_blocks_masked(const struct subject_message *m, uint8_t *dst, const uint8_t *src,
                                      const uint8_t *masks, size_t num_blocks)
{
    subject_blocks_fn *blocks = m->state->decrypting ? m->leaf->decrypt_blocks : m->leaf->encrypt_blocks;
    size_t len = num_blocks * m->leaf->block_len;
    xor_bytes(dst, src, masks, len);
    blocks(m->ctx, dst, dst, num_blocks);
    xor_bytes(dst, dst, masks, len);
}

/* A block's bytes: of either length that blocks have it is a move or two, where any length is a call. */
static inline void mode_copy_block(uint8_t *dst, const uint8_t *src, size_t bs)
{
    memcpy(dst, src, 8);
    if (bs > 8) {
        memcpy(dst + 8, src + 8, 8);
    }
}

static inline int mode_setkey_one(struct subject_message *m, const uint8_t *key, size_t key_len, uint32_t policy)
{
    return m->leaf->setkey(m->ctx, key, key_len, policy);
}

static inline int mode_setiv_block(struct subject_message *m, const uint8_t *iv, size_t iv_len)
{
    if (iv_len != m->leaf->block_len) {
        return SUBJECT_BAD_IV_LEN;
    }
    mode_copy_block(m->iv, iv, iv_len);
    return SUBJECT_OK;
}

static inline int mode_final_nothing(struct subject_message *m)
{
    (void)m;
    return SUBJECT_OK;
}

static inline uint32_t mode_iv_out_block(const struct subject_message *m)
{
    return m->leaf->block_len;
}

/* For modes that leave the iv undefined after a partial block. */
static inline uint32_t mode_iv_out_whole(const struct subject_message *m)
{
    return m->state->used == 0 ? m->leaf->block_len : 0;
}

static inline uint32_t mode_iv_out_none(const struct subject_message *m)
{
    (void)m;
    return 0;
}

/* Spends what is left of a keystream block that an earlier update began; returns the bytes done. */
static inline size_t mode_spend_keystream(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len)
{
    struct subject_state *s = m->state;
    size_t left = s->used == 0 ? 0 : m->leaf->block_len - s->used;
    size_t n = len < left ? len : left;
    xor_bytes(dst, src, s->keystream + s->used, n);
    s->used = (uint32_t)((s->used + n) % m->leaf->block_len);
    return n;
}

#endif
