/* SPDX-License-Identifier: Apache-2.0
 * One data unit of XTS, IEEE Std 1619 section 5.3 and 5.4, whatever the field element's bit order: the standards differ
 * in how the tweak is multiplied by the primitive element alone. */
#ifndef CROSSLANE_XTS_UNIT_H
#define CROSSLANE_XTS_UNIT_H

#include "mode.h"
#include "mode_overlap.h"

#define XTS_BLOCK_LEN 16u

typedef void xts_double_fn(uint8_t *tweak);

/* Key = Key1 | Key2 of equal length: data under Key1, tweak under Key2. */
static inline int xts_setkey(struct subject_message *m, const uint8_t *key, size_t key_len, uint32_t policy)
{
    size_t half = key_len / 2;
    if (key_len % 2 != 0) {
        return SUBJECT_BAD_KEY_LEN;
    }
    int status = m->leaf->setkey(m->ctx, key, half, policy);
    return status == SUBJECT_OK ? m->leaf->setkey(m->ctx2, key + half, half, policy) : status;
}

/* A message is one data unit in one call: `used` remembers that it came. */
static inline int xts_admit(struct subject_message *m, const uint8_t *dst, const uint8_t *src, size_t len)
{
    if (mode_overlaps(dst, src, len)) {
        return SUBJECT_OVERLAP;
    }
    if (m->state->used != 0) {
        return SUBJECT_BAD_ORDER;
    }
    if (len < XTS_BLOCK_LEN) {
        return SUBJECT_BAD_DATA_LEN;
    }
    m->state->used = 1;
    return SUBJECT_OK;
}

static inline void xts_run(struct subject_message *m, xts_double_fn *double_tweak, uint8_t *tweak, uint8_t *dst,
                           const uint8_t *src, size_t num_blocks)
{
    uint8_t masks[MODE_MAX_RUN * XTS_BLOCK_LEN];
    for (size_t i = 0; i < num_blocks; i++) {
        memcpy(masks + i * XTS_BLOCK_LEN, tweak, XTS_BLOCK_LEN);
        double_tweak(tweak);
    }
    mode_blocks_masked(m, dst, src, masks, num_blocks);
}

/* The last whole block and the tail_len bytes behind it. The block takes the earlier of the last two tweaks when
 * encrypting and the later when decrypting; what it gives fills the tail up, and that takes the other tweak. Everything
 * of src is read before the same place of dst is written. */
static inline void xts_steal(struct subject_message *m, xts_double_fn *double_tweak, const uint8_t *tweak, uint8_t *dst,
                             const uint8_t *src, size_t tail_len)
{
    uint8_t masks[2][XTS_BLOCK_LEN], first[XTS_BLOCK_LEN], second[XTS_BLOCK_LEN];
    int decrypting = m->state->decrypting != 0;
    memcpy(masks[0], tweak, XTS_BLOCK_LEN);
    memcpy(masks[1], tweak, XTS_BLOCK_LEN);
    double_tweak(masks[1]);
    mode_blocks_masked(m, first, src, masks[decrypting], 1);
    memcpy(second, src + XTS_BLOCK_LEN, tail_len);
    memcpy(second + tail_len, first + tail_len, XTS_BLOCK_LEN - tail_len);
    memcpy(dst + XTS_BLOCK_LEN, first, tail_len);
    mode_blocks_masked(m, dst, second, masks[!decrypting], 1);
}

/* len is at least a block; m->iv holds the tweak of the data unit and keeps it. */
static inline void xts_unit(struct subject_message *m, xts_double_fn *double_tweak, uint8_t *dst, const uint8_t *src,
                            size_t len)
{
    uint8_t tweak[XTS_BLOCK_LEN];
    size_t tail_len = len % XTS_BLOCK_LEN;
    size_t num_blocks = len / XTS_BLOCK_LEN - (tail_len != 0);
    m->leaf->encrypt_blocks(m->ctx2, tweak, m->iv, 1);
    for (unsigned step = 0; num_blocks > 0; step++) {
        size_t run = mode_run_len(m->leaf, step, num_blocks);
        xts_run(m, double_tweak, tweak, dst, src, run);
        dst += run * XTS_BLOCK_LEN;
        src += run * XTS_BLOCK_LEN;
        num_blocks -= run;
    }
    if (tail_len != 0) {
        xts_steal(m, double_tweak, tweak, dst, src, tail_len);
    }
}

#endif
