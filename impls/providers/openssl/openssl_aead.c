/* SPDX-License-Identifier: Apache-2.0
 * ccm and gcm through EVP. */
#include <openssl/evp.h>

#include "openssl_session.h"

int openssl_begin(struct session *s, const uint8_t *iv)
{
    const uint8_t *key = s->mode->kind == KIND_CCM && iv != NULL ? s->key : NULL;
    return EVP_CipherInit_ex2(s->ctx, NULL, key, iv, !s->decrypting, NULL) == 1 ? SUBJECT_OK : SUBJECT_UNSUPPORTED;
}

int openssl_aead_setiv(struct session *s, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths)
{
    adapter_begin(&s->message, lengths);
    s->expected = 0;
    if (EVP_CIPHER_CTX_ctrl(s->ctx, EVP_CTRL_AEAD_SET_IVLEN, (int)iv_len, NULL) != 1) {
        return SUBJECT_BAD_IV_LEN;
    }
    if (s->mode->kind == KIND_CCM &&
        EVP_CIPHER_CTX_ctrl(s->ctx, EVP_CTRL_AEAD_SET_TAG, (int)lengths->tag_len, NULL) != 1) {
        return SUBJECT_BAD_TAG_LEN;
    }
    return openssl_begin(s, iv);
}

int openssl_expect(void *session, const uint8_t *tag, size_t tag_len)
{
    struct session *s = session;
    if (s->mode->kind == KIND_CCM) {
        uint8_t copy[64];
        if (tag_len > sizeof copy) {
            return SUBJECT_BAD_TAG_LEN;
        }
        memcpy(copy, tag, tag_len);
        s->expected = EVP_CIPHER_CTX_ctrl(s->ctx, EVP_CTRL_AEAD_SET_TAG, (int)tag_len, copy) == 1;
    }
    return SUBJECT_OK;
}

int openssl_aad(void *session, const uint8_t *data, size_t len)
{
    struct session *s = session;
    int done;
    if (s->mode->kind == KIND_GCM) {
        return EVP_CipherUpdate(s->ctx, NULL, &done, data, (int)len) == 1 ? SUBJECT_OK : SUBJECT_BAD_AAD_LEN;
    }
    if (len > s->message.lengths.aad_len - s->message.aad_len) {
        return SUBJECT_BAD_AAD_LEN;
    }
    return adapter_keep_aad(&s->message, data, len);
}

static int ccm_begin(struct session *s)
{
    int done;
    if (s->message.aad_len != s->message.lengths.aad_len) {
        return SUBJECT_BAD_AAD_LEN;
    }
    if (s->message.lengths.data_len > MAX_CHUNK ||
        EVP_CipherUpdate(s->ctx, NULL, &done, NULL, (int)s->message.lengths.data_len) != 1 ||
        (s->message.aad_len > 0 &&
         EVP_CipherUpdate(s->ctx, NULL, &done, s->message.aad, (int)s->message.aad_len) != 1)) {
        return SUBJECT_BAD_DATA_LEN;
    }
    s->message.began = 1;
    return SUBJECT_OK;
}

/* All data at once. Decryption compares the tag first: a wrong one is reported where the contract has it, by tag. */
int openssl_ccm_update(struct session *s, uint8_t *dst, const uint8_t *src, size_t len)
{
    int done;
    if (len != s->message.lengths.data_len || s->message.began) {
        return SUBJECT_UNSUPPORTED;
    }
    int status = ccm_begin(s);
    if (status != SUBJECT_OK || (s->decrypting && !s->expected)) {
        return status != SUBJECT_OK ? status : SUBJECT_UNSUPPORTED;
    }
    int taken = EVP_CipherUpdate(s->ctx, dst, &done, src, (int)len) == 1;
    s->message.wrong_tag = s->decrypting && !taken;
    return taken || s->message.wrong_tag ? SUBJECT_OK : SUBJECT_BAD_DATA_LEN;
}

int openssl_gcm_compare(struct session *s, uint8_t *bytes, size_t len)
{
    uint8_t rest[SUBJECT_MAX_BLOCK_LEN];
    int done;
    if (EVP_CIPHER_CTX_ctrl(s->ctx, EVP_CTRL_AEAD_SET_TAG, (int)len, bytes) != 1) {
        return SUBJECT_BAD_TAG_LEN;
    }
    return EVP_CipherFinal_ex(s->ctx, rest, &done) == 1 ? SUBJECT_OK : SUBJECT_BAD_TAG;
}
