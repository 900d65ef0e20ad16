/* SPDX-License-Identifier: Apache-2.0
 * XTS, IEEE Std 1619-2018 section 5: the tweak of block j is E_K2(i) * alpha^j, with ciphertext stealing. */
#include "xts_unit.h"

extern const struct subject_mode subject_mode_xts;

/* Section 5.2: byte 0 holds the lowest coefficients, bit 0 the lowest of a byte; modulo x^128 + x^7 + x^2 + x + 1. */
static void double_tweak(uint8_t *tweak)
{
    uint64_t low = load_le64(tweak), high = load_le64(tweak + 8);
    uint64_t carry = high >> 63;
    store_le64(tweak, (low << 1) ^ (UINT64_C(0x87) & (0 - carry)));
    store_le64(tweak + 8, (high << 1) | (low >> 63));
}

static int xts_update(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    subject_xts_fn *fused = m->state->decrypting ? m->leaf->xts_decrypt : m->leaf->xts_encrypt;
    int status = xts_admit(m, dst, src, len);
    (void)last;
    if (status != SUBJECT_OK) {
        return status;
    }
    if (fused != NULL) {
        fused(m->ctx, m->ctx2, dst, src, len, m->iv);
    } else {
        xts_unit(m, double_tweak, dst, src, len);
    }
    return SUBJECT_OK;
}

const struct subject_mode subject_mode_xts = {
    .name = "xts",
    .num_ctx = 2,
    .has_output = 1,
    .needs_data = 1,
    .keeps_iv = 1,
    .setkey = xts_setkey,
    .setiv = mode_setiv_block,
    .update = xts_update,
    .final = mode_final_nothing,
    .iv_out_len = mode_iv_out_none,
};
