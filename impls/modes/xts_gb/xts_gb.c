/* SPDX-License-Identifier: Apache-2.0
 * XTS as GB/T 17964-2021 defines it: IEEE 1619's, but for the bit order in which the tweak is doubled. */
#include "xts_unit.h"

extern const struct subject_mode subject_mode_xts_gb;

/* Byte 0 holds the lowest coefficients, bit 7 the lowest of a byte, so that x^7 + x^2 + x + 1 is 0xE1 there. */
static void double_tweak(uint8_t *tweak)
{
    uint64_t low = load_be64(tweak), high = load_be64(tweak + 8);
    uint64_t carry = high & 1;
    store_be64(tweak, (low >> 1) ^ ((UINT64_C(0xE1) << 56) & (0 - carry)));
    store_be64(tweak + 8, (high >> 1) | (low << 63));
}

static int xts_gb_update(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    subject_xts_fn *fused = m->state->decrypting ? m->leaf->xts_gb_decrypt : m->leaf->xts_gb_encrypt;
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

const struct subject_mode subject_mode_xts_gb = {
    .name = "xts_gb",
    .num_ctx = 2,
    .has_output = 1,
    .needs_data = 1,
    .keeps_iv = 1,
    .setkey = xts_setkey,
    .setiv = mode_setiv_block,
    .update = xts_gb_update,
    .final = mode_final_nothing,
    .iv_out_len = mode_iv_out_none,
};
