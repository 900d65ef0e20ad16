/* SPDX-License-Identifier: Apache-2.0
 * ccm and gcm of nettle. It computes tags; comparing them is its caller's. */
#include "nettle_session.h"

/* A call of nettle_gcm_aes128 and the like, which may have code of their own, or of the general functions. */
static void gcm_add(struct session *s, size_t len, const uint8_t *data)
{
    if (s->row->gcm != NULL) {
        s->row->gcm->update(&s->of.gcm, len, data);
    } else {
        GCM_UPDATE(&s->of.gcm.any, len, data);
    }
}

void nettle_gcm_setkey(struct session *s, const uint8_t *key, size_t key_len)
{
    if (s->row->gcm != NULL) {
        s->row->gcm->set_encrypt_key(&s->of.gcm, key);
        return;
    }
    (void)s->row->expand(&s->of.gcm.any.cipher, key_len, key, 0);
    gcm_set_key(&s->of.gcm.any.key, &s->of.gcm.any.cipher, s->row->encrypt);
}

static int ccm_setiv(struct session *s, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths)
{
    /* Lengths that it does not take it asserts not to be given. */
    if (iv_len < CCM_MIN_NONCE_SIZE || iv_len > CCM_MAX_NONCE_SIZE || lengths->tag_len < 4 ||
        lengths->tag_len > CCM_DIGEST_SIZE || lengths->tag_len % 2 != 0 ||
        lengths->data_len > CCM_MAX_MSG_SIZE(iv_len)) {
        return SUBJECT_UNSUPPORTED;
    }
    ccm_set_nonce(&s->of.ccm, &s->key, s->row->encrypt, iv_len, iv, (size_t)lengths->aad_len, (size_t)lengths->data_len,
                  lengths->tag_len);
    return SUBJECT_OK;
}

/* nettle_gcm_aes128 has a function for ivs of 12 bytes alone; those of other lengths are in no table. */
static void gcm_setiv(struct session *s, const uint8_t *iv, size_t iv_len)
{
    size_t key_len = s->row->least_len;
    s->num_pending = 0;
    if (s->row->gcm == NULL) {
        GCM_SET_IV(&s->of.gcm.any, iv_len, iv);
#if NETTLE_HAS_SM4
    } else if (s->row->gcm == &nettle_gcm_sm4) {
        gcm_sm4_set_iv(&s->of.gcm.sm4, iv_len, iv);
#endif
    } else if (key_len == AES128_KEY_SIZE) {
        gcm_aes128_set_iv(&s->of.gcm.aes128, iv_len, iv);
    } else if (key_len == AES192_KEY_SIZE) {
        gcm_aes192_set_iv(&s->of.gcm.aes192, iv_len, iv);
    } else {
        gcm_aes256_set_iv(&s->of.gcm.aes256, iv_len, iv);
    }
}

int nettle_aead_setiv(struct session *s, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths)
{
    if (s->mode == MODE_CCM) {
        return ccm_setiv(s, iv, iv_len, lengths);
    }
    if (iv_len == 0) {
        return SUBJECT_UNSUPPORTED; /* it takes none as a hash of nothing */
    }
    gcm_setiv(s, iv, iv_len);
    return SUBJECT_OK;
}

static void gcm_flush(struct session *s)
{
    if (s->num_pending > 0) {
        gcm_add(s, s->num_pending, s->pending);
        s->num_pending = 0;
    }
}

int nettle_aead_aad(void *session, const uint8_t *data, size_t len)
{
    struct session *s = session;
    if (s->mode == MODE_CCM) {
        ccm_update(&s->of.ccm, &s->key, s->row->encrypt, len, data);
        return SUBJECT_OK;
    }
    while (len > 0) {
        size_t n = GCM_BLOCK_SIZE - s->num_pending;
        if (s->num_pending == 0 && len >= GCM_BLOCK_SIZE) {
            n = len - len % GCM_BLOCK_SIZE;
            gcm_add(s, n, data);
        } else {
            n = len < n ? len : n;
            memcpy(s->pending + s->num_pending, data, n);
            s->num_pending += n;
        }
        if (s->num_pending == GCM_BLOCK_SIZE) {
            gcm_flush(s);
        }
        data += n;
        len -= n;
    }
    return SUBJECT_OK;
}

int nettle_aead_update(struct session *s, uint8_t *dst, const uint8_t *src, size_t len)
{
    if (s->mode == MODE_CCM) {
        (s->decrypting ? ccm_decrypt : ccm_encrypt)(&s->of.ccm, &s->key, s->row->encrypt, len, dst, src);
        return SUBJECT_OK;
    }
    gcm_flush(s);
    if (s->row->gcm != NULL) {
        (s->decrypting ? s->row->gcm->decrypt : s->row->gcm->encrypt)(&s->of.gcm, len, dst, src);
    } else if (s->decrypting) {
        GCM_DECRYPT(&s->of.gcm.any, s->row->encrypt, len, dst, src);
    } else {
        GCM_ENCRYPT(&s->of.gcm.any, s->row->encrypt, len, dst, src);
    }
    return SUBJECT_OK;
}

void nettle_aead_final(struct session *s)
{
    if (s->mode == MODE_GCM) {
        gcm_flush(s);
    }
}

void nettle_aead_tag(struct session *s, uint8_t *computed, size_t len)
{
    if (s->mode == MODE_CCM) {
        ccm_digest(&s->of.ccm, &s->key, s->row->encrypt, len, computed);
    } else if (s->row->gcm != NULL) {
        s->row->gcm->digest(&s->of.gcm, len, computed);
    } else {
        GCM_DIGEST(&s->of.gcm.any, s->row->encrypt, len, computed);
    }
}
