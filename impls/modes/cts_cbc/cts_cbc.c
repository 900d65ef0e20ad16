/* SPDX-License-Identifier: Apache-2.0
 * CBC with ciphertext stealing, variant CS3 of the addendum to SP 800-38A, which is that of RFC 3962: the last two
 * blocks change places whatever the length, except that a single block is plain CBC. */
#include "cbc_chain.h"
#include "mode_overlap.h"

extern const struct subject_mode subject_mode_cts_cbc;

/* Bytes before the last block, which has 1 to block_len bytes. */
static size_t head_len(const struct subject_message *m, size_t len)
{
    return (len - 1) / m->leaf->block_len * m->leaf->block_len;
}

static void cts_encrypt(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len)
{
    size_t bs = m->leaf->block_len, head = head_len(m, len), tail = len - head;
    uint8_t padded[SUBJECT_MAX_BLOCK_LEN] = {0};
    memcpy(padded, src + head, tail);
    cbc_encrypt_chain(m, dst, src, head / bs);
    xor_bytes(padded, padded, m->iv, bs);
    if (head == 0) {
        m->leaf->encrypt_blocks(m->ctx, dst, padded, 1);
        return;
    }
    memcpy(dst + head, m->iv, tail);
    m->leaf->encrypt_blocks(m->ctx, dst + head - bs, padded, 1);
}

static void cts_decrypt(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len)
{
    size_t bs = m->leaf->block_len, head = head_len(m, len), tail = len - head;
    if (head == 0) {
        cbc_decrypt_chain(m, dst, src, 1);
        return;
    }
    size_t before = head - bs;
    uint8_t opened[SUBJECT_MAX_BLOCK_LEN], stolen[SUBJECT_MAX_BLOCK_LEN];
    cbc_decrypt_chain(m, dst, src, before / bs);
    m->leaf->decrypt_blocks(m->ctx, opened, src + before, 1);
    /* Behind the tail the padding was zero, so what was opened there is the previous block's ciphertext itself. */
    memcpy(stolen, src + head, tail);
    memcpy(stolen + tail, opened + tail, bs - tail);
    xor_bytes(dst + head, opened, stolen, tail);
    m->leaf->decrypt_blocks(m->ctx, stolen, stolen, 1);
    xor_bytes(dst + before, stolen, m->iv, bs);
}

static int cts_update(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    const struct subject_leaf *leaf = m->leaf;
    (void)last;
    if (mode_overlaps(dst, src, len)) {
        return SUBJECT_OVERLAP;
    }
    /* A message is one call: `used` remembers that it came. */
    if (m->state->used != 0) {
        return SUBJECT_BAD_ORDER;
    }
    if (len < leaf->block_len) {
        return SUBJECT_BAD_DATA_LEN;
    }
    m->state->used = 1;
    subject_crypt_fn *fused = m->state->decrypting ? leaf->cts_cbc.decrypt : leaf->cts_cbc.encrypt;
    if (fused != NULL) {
        fused(m->ctx, dst, src, len, m->iv);
    } else if (m->state->decrypting) {
        cts_decrypt(m, dst, src, len);
    } else {
        cts_encrypt(m, dst, src, len);
    }
    return SUBJECT_OK;
}

const struct subject_mode subject_mode_cts_cbc = {
    .name = "cts_cbc",
    .num_ctx = 1,
    .has_output = 1,
    .needs_data = 1,
    .setkey = mode_setkey_one,
    .setiv = mode_setiv_block,
    .update = cts_update,
    .final = mode_final_nothing,
    .iv_out_len = mode_iv_out_none,
};
