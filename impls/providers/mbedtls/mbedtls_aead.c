/* SPDX-License-Identifier: Apache-2.0
 * ccm and gcm of Mbed TLS. ccm is one call in all its versions; before version 3 gcm is given the associated data with
 * the iv. What comes before the library can take it is kept. */
#include "mbedtls_session.h"

#define GCM_HAS_PARTS (MBEDTLS_VERSION_MAJOR >= 3)

static int gcm_start(struct session *s)
{
    int way = s->decrypting ? MBEDTLS_GCM_DECRYPT : MBEDTLS_GCM_ENCRYPT;
    s->message.began = 1;
#if GCM_HAS_PARTS
    return mbedtls_gcm_starts(&s->keyed->gcm, way, s->nonce, s->nonce_len) == 0 ? SUBJECT_OK : SUBJECT_BAD_IV_LEN;
#else
    return mbedtls_gcm_starts(&s->keyed->gcm, way, s->nonce, s->nonce_len, s->message.aad, s->message.aad_len) == 0
               ? SUBJECT_OK
               : SUBJECT_BAD_IV_LEN;
#endif
}

int mbedtls_aead_setiv(struct session *s, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths)
{
    if (iv_len > sizeof s->nonce) {
        return SUBJECT_UNSUPPORTED;
    }
    adapter_begin(&s->message, lengths);
    s->nonce_len = iv_len;
    memcpy(s->nonce, iv, iv_len);
    if (s->mode == MODE_CCM) {
        return SUBJECT_OK;
    }
    /* Started here, so that a refused iv is refused here; again where associated data has come by then. */
    int status = gcm_start(s);
    s->message.began = GCM_HAS_PARTS;
    return status;
}

int mbedtls_aead_expect(void *session, const uint8_t *tag, size_t tag_len)
{
    return adapter_expect(&((struct session *)session)->message, tag, tag_len);
}

int mbedtls_aead_aad(void *session, const uint8_t *data, size_t len)
{
    struct session *s = session;
#if GCM_HAS_PARTS
    if (s->mode == MODE_GCM) {
        return mbedtls_gcm_update_ad(&s->keyed->gcm, data, len) == 0 ? SUBJECT_OK : SUBJECT_BAD_AAD_LEN;
    }
#endif
    return adapter_keep_aad(&s->message, data, len);
}

/* Decryption compares the tag first: a wrong one is reported where the contract has it, by tag. */
static int ccm_update(struct session *s, uint8_t *dst, const uint8_t *src, size_t len)
{
    mbedtls_ccm_context *ctx = &s->keyed->ccm;
    struct adapter_message *m = &s->message;
    if (!adapter_is_whole(m, len)) {
        return SUBJECT_UNSUPPORTED;
    }
    m->began = 1;
    int error = s->decrypting ? mbedtls_ccm_auth_decrypt(ctx, len, s->nonce, s->nonce_len, m->aad, m->aad_len, src, dst,
                                                         m->tag, m->lengths.tag_len)
                              : mbedtls_ccm_encrypt_and_tag(ctx, len, s->nonce, s->nonce_len, m->aad, m->aad_len, src,
                                                            dst, m->tag, m->lengths.tag_len);
    m->wrong_tag = error == MBEDTLS_ERR_CCM_AUTH_FAILED;
    return error == 0 || m->wrong_tag ? SUBJECT_OK : SUBJECT_BAD_DATA_LEN;
}

int mbedtls_aead_update(struct session *s, uint8_t *dst, const uint8_t *src, size_t len)
{
    if (s->mode == MODE_CCM) {
        return ccm_update(s, dst, src, len);
    }
    int status = s->message.began ? SUBJECT_OK : gcm_start(s);
    if (status != SUBJECT_OK) {
        return status;
    }
#if GCM_HAS_PARTS
    size_t done = 0;
    int error = mbedtls_gcm_update(&s->keyed->gcm, src, len, dst, len, &done);
    return error != 0 ? SUBJECT_BAD_DATA_LEN : done == len ? SUBJECT_OK : SUBJECT_UNSUPPORTED;
#else
    return mbedtls_gcm_update(&s->keyed->gcm, len, src, dst) == 0 ? SUBJECT_OK : SUBJECT_BAD_DATA_LEN;
#endif
}

int mbedtls_aead_final(struct session *s)
{
    if (s->mode == MODE_GCM) {
        return s->message.began ? SUBJECT_OK : gcm_start(s);
    }
    return s->message.began ? SUBJECT_OK : SUBJECT_BAD_DATA_LEN;
}

static int gcm_finish(struct session *s, uint8_t *computed, size_t len)
{
#if GCM_HAS_PARTS
    size_t rest = 0;
    return mbedtls_gcm_finish(&s->keyed->gcm, NULL, 0, &rest, computed, len);
#else
    return mbedtls_gcm_finish(&s->keyed->gcm, computed, len);
#endif
}

/* gcm computes tags, comparing them is its caller's; ccm compares. */
int mbedtls_aead_tag(struct session *s, uint8_t *bytes, size_t len)
{
    uint8_t computed[SUBJECT_MAX_BLOCK_LEN];
    if (s->mode == MODE_CCM) {
        return adapter_tag(&s->message, s->decrypting, bytes, len);
    }
    if (gcm_finish(s, computed, len) != 0) {
        return SUBJECT_BAD_TAG_LEN;
    }
    if (s->decrypting) {
        return memcmp(computed, bytes, len) == 0 ? SUBJECT_OK : SUBJECT_BAD_TAG;
    }
    memcpy(bytes, computed, len);
    return SUBJECT_OK;
}
