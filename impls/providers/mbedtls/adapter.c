/* SPDX-License-Identifier: Apache-2.0
 * Mbed TLS through the headers of its modules. Its contexts point into themselves: there is no copying them, and a new
 * key is tried in a context of its own. */
#include <stdlib.h>

#include "mbedtls_session.h"

static const struct mode_entry {
    const char *name;
    enum mode mode;
    int has_des3;
} modes[] = {
    {"ecb", MODE_ECB, 1}, {"cbc", MODE_CBC, 1}, {"cfb", MODE_CFB, 0},   {"ofb", MODE_OFB, 0}, {"ctr", MODE_CTR, 0},
    {"xts", MODE_XTS, 0}, {"ccm", MODE_CCM, 0}, {"cmac", MODE_CMAC, 1}, {"gcm", MODE_GCM, 0},
};

static const char *version(void)
{
    static char text[32];
    mbedtls_version_get_string(text);
    return text;
}

static size_t block_len(const char *mode, const char *cipher)
{
    const struct mode_entry *m = ADAPTER_ENTRY(modes, mode);
    if (m == NULL) {
        return 0;
    }
    return strcmp(cipher, "aes") == 0 ? 16u : strcmp(cipher, "des3_ede") == 0 && m->has_des3 ? 8u : 0u;
}

static void *open_session(const char *mode, const char *cipher, int decrypting)
{
    struct session *s = calloc(1, sizeof *s);
    if (s != NULL) {
        s->mode = ((const struct mode_entry *)ADAPTER_ENTRY(modes, mode))->mode;
        s->is_aes = strcmp(cipher, "aes") == 0;
        s->block_len = s->is_aes ? 16 : 8;
        s->decrypting = decrypting;
    }
    return s;
}

static void init(const struct session *s, union keyed *keyed)
{
    switch (s->mode) {
    case MODE_XTS: mbedtls_aes_xts_init(&keyed->xts); break;
    case MODE_CMAC: mbedtls_cipher_init(&keyed->mac); break;
    case MODE_CCM: mbedtls_ccm_init(&keyed->ccm); break;
    case MODE_GCM: mbedtls_gcm_init(&keyed->gcm); break;
    default:
        if (s->is_aes) {
            mbedtls_aes_init(&keyed->aes);
        } else {
            mbedtls_des3_init(&keyed->des3);
        }
    }
}

static void discard(const struct session *s, union keyed *keyed)
{
    if (keyed == NULL) {
        return;
    }
    switch (s->mode) {
    case MODE_XTS: mbedtls_aes_xts_free(&keyed->xts); break;
    case MODE_CMAC: mbedtls_cipher_free(&keyed->mac); break;
    case MODE_CCM: mbedtls_ccm_free(&keyed->ccm); break;
    case MODE_GCM: mbedtls_gcm_free(&keyed->gcm); break;
    default:
        if (s->is_aes) {
            mbedtls_aes_free(&keyed->aes);
        } else {
            mbedtls_des3_free(&keyed->des3);
        }
    }
    free(keyed);
}

static void close_session(void *session)
{
    struct session *s = session;
    discard(s, s->keyed);
    free(s->message.aad);
    free(s);
}

static int mac_start(const struct session *s, mbedtls_cipher_context_t *ctx, const uint8_t *key, size_t key_len)
{
    int bits = (int)(8 * key_len);
    const mbedtls_cipher_info_t *info =
        s->is_aes ? mbedtls_cipher_info_from_values(MBEDTLS_CIPHER_ID_AES, bits, MBEDTLS_MODE_ECB)
                  : mbedtls_cipher_info_from_type(MBEDTLS_CIPHER_DES_EDE3_ECB);
    int error = info == NULL ? -1 : mbedtls_cipher_setup(ctx, info);
    return error != 0 ? error : mbedtls_cipher_cmac_starts(ctx, key, (size_t)bits);
}

/* Gives the library a key; 0 where it takes it. */
static int expand(const struct session *s, union keyed *keyed, const uint8_t *key, size_t key_len)
{
    unsigned bits = 8u * (unsigned)key_len;
    /* ecb and cbc decrypt with the inverse cipher, all else with the cipher. */
    int inverse = s->decrypting && (s->mode == MODE_ECB || s->mode == MODE_CBC);
    switch (s->mode) {
    case MODE_XTS:
        return s->decrypting ? mbedtls_aes_xts_setkey_dec(&keyed->xts, key, bits)
                             : mbedtls_aes_xts_setkey_enc(&keyed->xts, key, bits);
    case MODE_CMAC: return mac_start(s, &keyed->mac, key, key_len);
    case MODE_CCM: return mbedtls_ccm_setkey(&keyed->ccm, MBEDTLS_CIPHER_ID_AES, key, bits);
    case MODE_GCM: return mbedtls_gcm_setkey(&keyed->gcm, MBEDTLS_CIPHER_ID_AES, key, bits);
    default:
        if (s->is_aes) {
            return inverse ? mbedtls_aes_setkey_dec(&keyed->aes, key, bits)
                           : mbedtls_aes_setkey_enc(&keyed->aes, key, bits);
        }
        return inverse ? mbedtls_des3_set3key_dec(&keyed->des3, key) : mbedtls_des3_set3key_enc(&keyed->des3, key);
    }
}

/* Just the context that the library is given: what it writes beyond is seen. */
static size_t context_len(const struct session *s)
{
    switch (s->mode) {
    case MODE_XTS: return sizeof(mbedtls_aes_xts_context);
    case MODE_CMAC: return sizeof(mbedtls_cipher_context_t);
    case MODE_CCM: return sizeof(mbedtls_ccm_context);
    case MODE_GCM: return sizeof(mbedtls_gcm_context);
    default: return s->is_aes ? sizeof(mbedtls_aes_context) : sizeof(mbedtls_des3_context);
    }
}

static int setkey(void *session, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct session *s = session;
    union keyed *tried = NULL;
    (void)policy;
    if (s->is_aes || s->mode == MODE_CMAC || key_len == MBEDTLS_DES_KEY_SIZE * 3) {
        tried = malloc(context_len(s)); /* else triple DES, which is not told how long a key is */
    }
    if (tried == NULL) {
        return SUBJECT_UNSUPPORTED;
    }
    init(s, tried);
    if (expand(s, tried, key, key_len) != 0) {
        discard(s, tried);
        return SUBJECT_BAD_KEY_LEN;
    }
    discard(s, s->keyed);
    s->keyed = tried;
    return SUBJECT_OK;
}

static int setiv(void *session, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths)
{
    struct session *s = session;
    if (s->mode == MODE_CCM || s->mode == MODE_GCM) {
        return mbedtls_aead_setiv(s, iv, iv_len, lengths);
    }
    /* It is not told how long an iv is. */
    if (iv_len != (s->mode == MODE_ECB || s->mode == MODE_CMAC ? 0 : s->block_len)) {
        return SUBJECT_UNSUPPORTED;
    }
    if (s->mode == MODE_CMAC) {
        return mbedtls_cipher_cmac_reset(&s->keyed->mac) == 0 ? SUBJECT_OK : SUBJECT_UNSUPPORTED;
    }
    s->offset = 0;
    if (iv_len > 0) {
        memcpy(s->iv, iv, iv_len);
    }
    return SUBJECT_OK;
}

/* The library has ecb of one block. */
static int ecb(struct session *s, uint8_t *dst, const uint8_t *src, size_t len)
{
    int error = 0, way = s->decrypting ? MBEDTLS_AES_DECRYPT : MBEDTLS_AES_ENCRYPT;
    if (len % s->block_len != 0) {
        return SUBJECT_UNSUPPORTED;
    }
    for (size_t at = 0; at < len && error == 0; at += s->block_len) {
        error = s->is_aes ? mbedtls_aes_crypt_ecb(&s->keyed->aes, way, src + at, dst + at)
                          : mbedtls_des3_crypt_ecb(&s->keyed->des3, src + at, dst + at);
    }
    return error == 0 ? SUBJECT_OK : SUBJECT_BAD_DATA_LEN;
}

static int cbc(struct session *s, uint8_t *dst, const uint8_t *src, size_t len)
{
    return s->is_aes
               ? mbedtls_aes_crypt_cbc(&s->keyed->aes, s->decrypting ? MBEDTLS_AES_DECRYPT : MBEDTLS_AES_ENCRYPT, len,
                                       s->iv, src, dst)
               : mbedtls_des3_crypt_cbc(&s->keyed->des3, s->decrypting ? MBEDTLS_DES_DECRYPT : MBEDTLS_DES_ENCRYPT, len,
                                        s->iv, src, dst);
}

static int update(void *session, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    struct session *s = session;
    int error = 0, way = s->decrypting ? MBEDTLS_AES_DECRYPT : MBEDTLS_AES_ENCRYPT;
    (void)last;
    switch (s->mode) {
    case MODE_ECB: return ecb(s, dst, src, len);
    case MODE_CBC: error = cbc(s, dst, src, len); break;
    case MODE_CFB: error = mbedtls_aes_crypt_cfb128(&s->keyed->aes, way, len, &s->offset, s->iv, src, dst); break;
    case MODE_OFB: error = mbedtls_aes_crypt_ofb(&s->keyed->aes, len, &s->offset, s->iv, src, dst); break;
    case MODE_CTR: error = mbedtls_aes_crypt_ctr(&s->keyed->aes, len, &s->offset, s->iv, s->stream, src, dst); break;
    case MODE_XTS: error = mbedtls_aes_crypt_xts(&s->keyed->xts, way, len, s->iv, src, dst); break;
    case MODE_CMAC: error = mbedtls_cipher_cmac_update(&s->keyed->mac, src, len); break;
    case MODE_CCM:
    case MODE_GCM: return mbedtls_aead_update(s, dst, src, len);
    }
    return error == 0 ? SUBJECT_OK : SUBJECT_BAD_DATA_LEN;
}

static int final(void *session)
{
    struct session *s = session;
    return s->mode == MODE_CCM || s->mode == MODE_GCM ? mbedtls_aead_final(s) : SUBJECT_OK;
}

static int tag(void *session, uint8_t *bytes, size_t len)
{
    struct session *s = session;
    if (len > s->block_len) {
        return SUBJECT_UNSUPPORTED;
    }
    if (s->mode != MODE_CMAC) {
        return mbedtls_aead_tag(s, bytes, len);
    }
    return len == s->block_len && mbedtls_cipher_cmac_finish(&s->keyed->mac, bytes) == 0 ? SUBJECT_OK
                                                                                         : SUBJECT_UNSUPPORTED;
}

static size_t iv_out(void *session, uint8_t *iv)
{
    const struct session *s = session;
    if (s->mode != MODE_CBC && s->mode != MODE_CFB && s->mode != MODE_OFB && s->mode != MODE_CTR) {
        return 0;
    }
    memcpy(iv, s->iv, s->block_len);
    return s->block_len;
}

static int reinit(void *session)
{
    struct session *s = session;
    if (s->mode == MODE_CMAC) {
        return mbedtls_cipher_cmac_reset(&s->keyed->mac) == 0 ? SUBJECT_OK : SUBJECT_UNSUPPORTED;
    }
    return SUBJECT_OK; /* every other mode begins anew with the iv */
}

const struct subject_session PROVIDER_SESSION = {
    ADAPTER_FUNCTIONS,
    .aad = mbedtls_aead_aad,
    .expect = mbedtls_aead_expect,
};
