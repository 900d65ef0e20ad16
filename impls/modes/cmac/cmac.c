/* SPDX-License-Identifier: Apache-2.0
 * CMAC, SP 800-38B section 6: CBC-MAC whose last block is masked with K1 where it is complete; else it is padded with
 * 10* and masked with K2. */
#include "mode_auth.h"

extern const struct subject_mode subject_mode_cmac;

struct cmac_extra {
    struct mode_pending pending;
    uint8_t k1[SUBJECT_MAX_BLOCK_LEN];
    uint8_t k2[SUBJECT_MAX_BLOCK_LEN];
};
MODE_EXTRA_FITS(struct cmac_extra);

static struct cmac_extra *extra_of(const struct subject_message *m)
{
    return (struct cmac_extra *)(void *)m->state->extra;
}

/* Section 6.1: x << 1, and xor R_b where the bit shifted out was 1; R_64 = 0x1b, R_128 = 0x87 (section 5.3). */
static void double_block(uint8_t *dst, const uint8_t *src, size_t bs)
{
    uint64_t high = load_be64(src), out = 0 - (high >> 63);
    if (bs == 8) {
        store_be64(dst, high << 1 ^ (out & 0x1b));
        return;
    }
    uint64_t low = load_be64(src + 8);
    store_be64(dst, high << 1 | low >> 63);
    store_be64(dst + 8, low << 1 ^ (out & 0x87));
}

static int cmac_setkey(struct subject_message *m, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct cmac_extra *x = extra_of(m);
    int status = m->leaf->setkey(m->ctx, key, key_len, policy);
    if (status != SUBJECT_OK) {
        return status;
    }
    uint8_t l[SUBJECT_MAX_BLOCK_LEN] = {0};
    m->leaf->encrypt_blocks(m->ctx, l, l, 1);
    double_block(x->k1, l, m->leaf->block_len);
    double_block(x->k2, x->k1, m->leaf->block_len);
    return SUBJECT_OK;
}

static int cmac_setiv(struct subject_message *m, const uint8_t *iv, size_t iv_len)
{
    (void)iv;
    int status = mode_mac_check_lengths(m, iv_len);
    if (status == SUBJECT_OK) {
        mode_mac_start(m, &extra_of(m)->pending);
    }
    return status;
}

static int cmac_update(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    (void)dst;
    (void)last;
    return mode_mac_update(m, m->ctx, &extra_of(m)->pending, src, len);
}

static int cmac_final(struct subject_message *m)
{
    struct cmac_extra *x = extra_of(m);
    mode_mac_final(m, m->ctx, &x->pending, x->k1, x->k2);
    return SUBJECT_OK;
}

const struct subject_mode subject_mode_cmac = {
    .name = "cmac",
    .num_ctx = 1,
    .has_output = 0,
    .setkey = cmac_setkey,
    .setiv = cmac_setiv,
    .update = cmac_update,
    .final = cmac_final,
    .tag = mode_mac_tag,
    .iv_out_len = mode_auth_iv_out_len,
};
