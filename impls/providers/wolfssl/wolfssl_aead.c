/* SPDX-License-Identifier: Apache-2.0
 * ccm and gcm of wolfCrypt: gcm by its functions for streams, ccm in its one call. */
#include "wolfssl_session.h"

#include <wolfssl/wolfcrypt/error-crypt.h>

int wolfssl_aead_setiv(struct session *s, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths)
{
    if (iv_len > sizeof s->iv) {
        return s->mode == MODE_GCM ? SUBJECT_BAD_IV_LEN : SUBJECT_UNSUPPORTED;
    }
    adapter_begin(&s->message, lengths);
    s->iv_len = iv_len;
    memcpy(s->iv, iv, iv_len);
    if (s->mode == MODE_CCM) {
        return SUBJECT_OK;
    }
    int error = s->decrypting ? wc_AesGcmDecryptInit(&s->keyed->aes, NULL, 0, iv, (word32)iv_len)
                              : wc_AesGcmEncryptInit(&s->keyed->aes, NULL, 0, iv, (word32)iv_len);
    return error == 0 ? SUBJECT_OK : SUBJECT_BAD_IV_LEN;
}

int wolfssl_aead_expect(void *session, const uint8_t *tag, size_t tag_len)
{
    return adapter_expect(&((struct session *)session)->message, tag, tag_len);
}

static int gcm_update(struct session *s, uint8_t *dst, const uint8_t *src, size_t len, const uint8_t *data,
                      size_t data_len)
{
    Aes *aes = &s->keyed->aes;
    return s->decrypting ? wc_AesGcmDecryptUpdate(aes, dst, src, (word32)len, data, (word32)data_len)
                         : wc_AesGcmEncryptUpdate(aes, dst, src, (word32)len, data, (word32)data_len);
}

int wolfssl_aead_aad(void *session, const uint8_t *data, size_t len)
{
    struct session *s = session;
    if (s->mode == MODE_GCM) {
        return gcm_update(s, NULL, NULL, 0, data, len) == 0 ? SUBJECT_OK : SUBJECT_BAD_AAD_LEN;
    }
    return adapter_keep_aad(&s->message, data, len);
}

/* Decryption compares the tag first: a wrong one is reported where the contract has it, by tag. */
static int ccm_update(struct session *s, uint8_t *dst, const uint8_t *src, size_t len)
{
    Aes *aes = &s->keyed->aes;
    struct adapter_message *m = &s->message;
    word32 n = (word32)len, iv_len = (word32)s->iv_len, aad_len = (word32)m->aad_len;
    if (!adapter_is_whole(m, len)) {
        return SUBJECT_UNSUPPORTED;
    }
    m->began = 1;
    int error = s->decrypting
                    ? wc_AesCcmDecrypt(aes, dst, src, n, s->iv, iv_len, m->tag, m->lengths.tag_len, m->aad, aad_len)
                    : wc_AesCcmEncrypt(aes, dst, src, n, s->iv, iv_len, m->tag, m->lengths.tag_len, m->aad, aad_len);
    m->wrong_tag = error == AES_CCM_AUTH_E;
    return error == 0 || m->wrong_tag ? SUBJECT_OK : SUBJECT_BAD_DATA_LEN;
}

int wolfssl_aead_update(struct session *s, uint8_t *dst, const uint8_t *src, size_t len)
{
    if (s->mode == MODE_CCM) {
        return ccm_update(s, dst, src, len);
    }
    return gcm_update(s, dst, src, len, NULL, 0) == 0 ? SUBJECT_OK : SUBJECT_BAD_DATA_LEN;
}

int wolfssl_aead_final(const struct session *s)
{
    return s->mode == MODE_GCM || s->message.began ? SUBJECT_OK : SUBJECT_BAD_DATA_LEN;
}

int wolfssl_aead_tag(struct session *s, uint8_t *bytes, size_t len)
{
    if (s->mode == MODE_CCM) {
        return adapter_tag(&s->message, s->decrypting, bytes, len);
    }
    if (!s->decrypting) {
        return wc_AesGcmEncryptFinal(&s->keyed->aes, bytes, (word32)len) == 0 ? SUBJECT_OK : SUBJECT_BAD_TAG_LEN;
    }
    int error = wc_AesGcmDecryptFinal(&s->keyed->aes, bytes, (word32)len);
    return error == 0 ? SUBJECT_OK : error == AES_GCM_AUTH_E ? SUBJECT_BAD_TAG : SUBJECT_BAD_TAG_LEN;
}
