/* SPDX-License-Identifier: Apache-2.0
 * CCM, SP 800-38C section 6 with the formatting of its appendix A: CBC-MAC over the lengths, the associated data and the
 * plaintext, and counter mode over the plaintext and the tag. All lengths are known before the first byte. */
#include "mode_auth.h"
#include "mode_overlap.h"

extern const struct subject_mode subject_mode_ccm;

struct ccm_extra {
    struct mode_pending pending;
    uint64_t aad_left;
    uint64_t data_left;
    uint64_t data_begun;
    uint8_t counter[16];
    uint8_t tag[16]; /* S_0; from final on T xor S_0 */
};
MODE_EXTRA_FITS(struct ccm_extra);

static struct ccm_extra *extra_of(const struct subject_message *m)
{
    return (struct ccm_extra *)(void *)m->state->extra;
}

static int check_lengths(const struct subject_lengths *lengths, size_t iv_len)
{
    if (iv_len < 7 || iv_len > 13) {
        return SUBJECT_BAD_IV_LEN;
    }
    if (lengths->tag_len < 4 || lengths->tag_len > 16 || lengths->tag_len % 2 != 0) {
        return SUBJECT_BAD_TAG_LEN;
    }
    size_t q = 15 - iv_len;
    return q < 8 && lengths->data_len >> (8 * q) != 0 ? SUBJECT_BAD_DATA_LEN : SUBJECT_OK;
}

/* Appendix A.2.2: the length of the associated data, as it stands before it. Returns its own length: 0, 2, 6 or 10. */
static size_t encode_aad_len(uint8_t *to, uint64_t aad_len)
{
    if (aad_len == 0) {
        return 0;
    }
    if (aad_len < 0xff00) {
        to[0] = (uint8_t)(aad_len >> 8);
        to[1] = (uint8_t)aad_len;
        return 2;
    }
    to[0] = 0xff;
    if (aad_len >> 32 == 0) {
        to[1] = 0xfe;
        store_be32(to + 2, (uint32_t)aad_len);
        return 6;
    }
    to[1] = 0xff;
    store_be64(to + 2, aad_len);
    return 10;
}

static int ccm_setiv(struct subject_message *m, const uint8_t *iv, size_t iv_len)
{
    struct ccm_extra *x = extra_of(m);
    const struct subject_lengths *lengths = &m->state->lengths;
    int status = check_lengths(lengths, iv_len);
    if (status != SUBJECT_OK) {
        return status;
    }
    size_t q = 15 - iv_len;
    x->aad_left = lengths->aad_len;
    x->data_left = lengths->data_len;
    x->data_begun = 0;

    /* Appendix A.3: Ctr_i = (q - 1) || N || i. */
    memset(x->counter, 0, 16);
    x->counter[0] = (uint8_t)(q - 1);
    memcpy(x->counter + 1, iv, iv_len);

    /* Appendix A.2.1: B_0 = flags || N || Q, the flags being Adata, (t - 2) / 2 and q - 1. */
    uint8_t header[16 + 10], data_len[8];
    store_be64(data_len, lengths->data_len);
    memset(header, 0, 8);
    memcpy(header + 8, data_len, 8);
    header[0] = (uint8_t)((lengths->aad_len > 0 ? 0x40u : 0u) | (lengths->tag_len - 2) / 2 << 3 | (q - 1));
    memcpy(header + 1, iv, iv_len);
    size_t header_len = 16 + encode_aad_len(header + 16, lengths->aad_len);
    mode_mac_start(m, &x->pending);
    (void)mode_mac_update(m, m->ctx, &x->pending, header, header_len);

    memset(x->tag, 0, 16);
    mode_counter_blocks(m, x->counter, q, x->tag, x->tag, 1);
    return SUBJECT_OK;
}

static int ccm_aad(struct subject_message *m, const uint8_t *aad, size_t aad_len)
{
    struct ccm_extra *x = extra_of(m);
    if (aad_len > x->aad_left) {
        return SUBJECT_BAD_AAD_LEN;
    }
    x->aad_left -= aad_len;
    (void)mode_mac_update(m, m->ctx, &x->pending, aad, aad_len);
    return SUBJECT_OK;
}

static int ccm_update(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    struct ccm_extra *x = extra_of(m);
    (void)last;
    if (mode_overlaps(dst, src, len)) {
        return SUBJECT_OVERLAP;
    }
    if (x->aad_left > 0) {
        return SUBJECT_BAD_AAD_LEN;
    }
    if (len > x->data_left) {
        return SUBJECT_BAD_DATA_LEN;
    }
    x->data_left -= len;
    if (!x->data_begun) {
        mode_mac_pad(m, m->ctx, &x->pending);
        x->data_begun = 1;
    }
    size_t q = (size_t)x->counter[0] + 1;
    if (m->state->decrypting) {
        mode_counter_crypt(m, x->counter, q, m->leaf->ctr.decrypt, dst, src, len);
        (void)mode_mac_update(m, m->ctx, &x->pending, dst, len);
    } else {
        (void)mode_mac_update(m, m->ctx, &x->pending, src, len);
        mode_counter_crypt(m, x->counter, q, m->leaf->ctr.encrypt, dst, src, len);
    }
    return SUBJECT_OK;
}

static int ccm_final(struct subject_message *m)
{
    struct ccm_extra *x = extra_of(m);
    if (x->aad_left > 0) {
        return SUBJECT_BAD_AAD_LEN;
    }
    if (x->data_left > 0) {
        return SUBJECT_BAD_DATA_LEN;
    }
    mode_mac_pad(m, m->ctx, &x->pending);
    xor_bytes(x->tag, x->tag, m->iv, 16);
    return SUBJECT_OK;
}

static int ccm_tag(struct subject_message *m, uint8_t *tag, size_t tag_len)
{
    return mode_aead_tag(m, extra_of(m)->tag, tag, tag_len);
}

const struct subject_mode subject_mode_ccm = {
    .name = "ccm",
    .num_ctx = 1,
    .has_output = 1,
    .setkey = mode_setkey_one,
    .setiv = ccm_setiv,
    .aad = ccm_aad,
    .update = ccm_update,
    .final = ccm_final,
    .tag = ccm_tag,
    .iv_out_len = mode_auth_iv_out_len,
};
