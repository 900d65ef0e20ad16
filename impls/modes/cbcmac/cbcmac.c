/* SPDX-License-Identifier: Apache-2.0
 * CBC-MAC, ISO/IEC 9797-1 MAC algorithm 1 with padding method 1 (zeros to a whole block), the tag a whole block. The
 * empty message gets no padding: its tag is zeros, as in Linux. */
#include "mode_auth.h"

extern const struct subject_mode subject_mode_cbcmac;

struct cbcmac_extra {
    struct mode_pending pending;
};
MODE_EXTRA_FITS(struct cbcmac_extra);

static struct cbcmac_extra *extra_of(const struct subject_message *m)
{
    return (struct cbcmac_extra *)(void *)m->state->extra;
}

static int cbcmac_setiv(struct subject_message *m, const uint8_t *iv, size_t iv_len)
{
    (void)iv;
    int status = mode_mac_check_lengths(m, iv_len);
    if (status == SUBJECT_OK) {
        mode_mac_start(m, &extra_of(m)->pending);
    }
    return status;
}

static int cbcmac_update(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    (void)dst;
    (void)last;
    return mode_mac_update(m, m->ctx, &extra_of(m)->pending, src, len);
}

static int cbcmac_final(struct subject_message *m)
{
    mode_mac_pad(m, m->ctx, &extra_of(m)->pending);
    return SUBJECT_OK;
}

const struct subject_mode subject_mode_cbcmac = {
    .name = "cbcmac",
    .num_ctx = 1,
    .has_output = 0,
    .setkey = mode_setkey_one,
    .setiv = cbcmac_setiv,
    .update = cbcmac_update,
    .final = cbcmac_final,
    .tag = mode_mac_tag,
    .iv_out_len = mode_auth_iv_out_len,
};
