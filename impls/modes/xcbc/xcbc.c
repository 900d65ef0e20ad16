/* SPDX-License-Identifier: Apache-2.0
 * XCBC, RFC 3566 section 4, without its truncation to 96 bits: CBC-MAC under K1 whose last block is masked with K2 where
 * it is complete; else it is padded with 10* and masked with K3. ctx holds K, ctx2 holds K1. */
#include "mode_auth.h"

extern const struct subject_mode subject_mode_xcbc;

struct xcbc_extra {
    struct mode_pending pending;
    uint8_t k2[16];
    uint8_t k3[16];
};
MODE_EXTRA_FITS(struct xcbc_extra);

static struct xcbc_extra *extra_of(const struct subject_message *m)
{
    return (struct xcbc_extra *)(void *)m->state->extra;
}

/* Section 4, step 1: K1, K2, K3 = E_K(0x0101..), E_K(0x0202..), E_K(0x0303..). K1 is a key of 16 bytes whatever the
 * length of K, and no policy on the caller's keys concerns it. */
static int xcbc_setkey(struct subject_message *m, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct xcbc_extra *x = extra_of(m);
    int status = m->leaf->setkey(m->ctx, key, key_len, policy);
    if (status != SUBJECT_OK) {
        return status;
    }
    uint8_t k[48];
    for (int i = 0; i < 3; i++) {
        memset(k + 16 * i, i + 1, 16);
    }
    m->leaf->encrypt_blocks(m->ctx, k, k, 3);
    memcpy(x->k2, k + 16, 16);
    memcpy(x->k3, k + 32, 16);
    return m->leaf->setkey(m->ctx2, k, 16, 0);
}

static int xcbc_setiv(struct subject_message *m, const uint8_t *iv, size_t iv_len)
{
    (void)iv;
    int status = mode_mac_check_lengths(m, iv_len);
    if (status == SUBJECT_OK) {
        mode_mac_start(m, &extra_of(m)->pending);
    }
    return status;
}

static int xcbc_update(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    (void)dst;
    (void)last;
    return mode_mac_update(m, m->ctx2, &extra_of(m)->pending, src, len);
}

static int xcbc_final(struct subject_message *m)
{
    struct xcbc_extra *x = extra_of(m);
    mode_mac_final(m, m->ctx2, &x->pending, x->k2, x->k3);
    return SUBJECT_OK;
}

const struct subject_mode subject_mode_xcbc = {
    .name = "xcbc",
    .num_ctx = 2,
    .has_output = 0,
    .setkey = xcbc_setkey,
    .setiv = xcbc_setiv,
    .update = xcbc_update,
    .final = xcbc_final,
    .tag = mode_mac_tag,
    .iv_out_len = mode_auth_iv_out_len,
};
