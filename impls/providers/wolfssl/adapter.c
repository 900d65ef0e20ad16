/* SPDX-License-Identifier: Apache-2.0
 * wolfSSL through the headers of wolfCrypt. There is no copying its contexts, and a new key is tried in one of its own.
 * The library is under the GPL: what is built of this adapter is not distributed (provider.toml says ship = false). */
#include "wolfssl_session.h"

#include <stdlib.h>
#include <wolfssl/ssl.h>

static const struct mode_entry {
    const char *name;
    enum mode mode;
    int has_des3;
} modes[] = {
    {"ecb", MODE_ECB, 1}, {"cbc", MODE_CBC, 1}, {"cfb", MODE_CFB, 0},     {"ofb", MODE_OFB, 0},   {"ctr", MODE_CTR, 0},
    {"xts", MODE_XTS, 0}, {"ccm", MODE_CCM, 0}, {"cts_cbc", MODE_CTS, 0}, {"cmac", MODE_CMAC, 0}, {"gcm", MODE_GCM, 0},
};

static const char *version(void)
{
    return wolfCrypt_Init() == 0 ? wolfSSL_lib_version() : NULL;
}

static size_t block_len(const char *mode, const char *cipher)
{
    const struct mode_entry *m = ADAPTER_ENTRY(modes, mode);
    if (m == NULL || (m->mode == MODE_CTS && !wolfssl_has_cts())) {
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

static void discard(const struct session *s, union keyed *keyed)
{
    if (keyed == NULL) {
        return;
    }
    switch (s->mode) {
    case MODE_XTS: (void)wc_AesXtsFree(&keyed->xts); break;
    case MODE_CTS: wolfssl_cts_free(keyed->cts); break;
    case MODE_CMAC: wc_AesFree(&keyed->mac.aes); break;
    default:
        if (s->is_aes) {
            wc_AesFree(&keyed->aes);
        } else {
            wc_Des3Free(&keyed->des3);
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

static int aes_setkey(const struct session *s, Aes *aes, const uint8_t *key, word32 len)
{
    /* ecb and cbc decrypt with the inverse cipher, all else with the cipher. */
    int way = s->decrypting && (s->mode == MODE_ECB || s->mode == MODE_CBC) ? AES_DECRYPTION : AES_ENCRYPTION;
    int error = wc_AesInit(aes, NULL, INVALID_DEVID);
    if (error != 0) {
        return error;
    }
    switch (s->mode) {
    case MODE_CCM: return wc_AesCcmSetKey(aes, key, len);
    case MODE_GCM: return wc_AesGcmInit(aes, key, len, NULL, 0);
    default: return wc_AesSetKey(aes, key, len, NULL, way);
    }
}

/* Gives the library a key; 0 where it takes it. */
static int expand(const struct session *s, union keyed *keyed, const uint8_t *key, size_t key_len)
{
    word32 len = (word32)key_len;
    switch (s->mode) {
    case MODE_XTS:
        return wc_AesXtsSetKey(&keyed->xts, key, len, s->decrypting ? AES_DECRYPTION : AES_ENCRYPTION, NULL,
                               INVALID_DEVID);
    case MODE_CTS: keyed->cts = wolfssl_cts_new(key, key_len, s->decrypting); return keyed->cts == NULL;
    case MODE_CMAC: return wc_InitCmac(&keyed->mac, key, len, WC_CMAC_AES, NULL);
    default: break;
    }
    if (s->is_aes) {
        return aes_setkey(s, &keyed->aes, key, len);
    }
    int error = wc_Des3Init(&keyed->des3, NULL, INVALID_DEVID);
    int way = s->decrypting ? DES_DECRYPTION : DES_ENCRYPTION;
    return error != 0 ? error : wc_Des3_SetKey(&keyed->des3, key, NULL, way);
}

/* Just the context that the library is given: what it writes beyond is seen. */
static size_t context_len(const struct session *s)
{
    switch (s->mode) {
    case MODE_XTS: return sizeof(XtsAes);
    case MODE_CMAC: return sizeof(Cmac);
    case MODE_CTS: return sizeof(struct wolfssl_cts *);
    default: return s->is_aes ? sizeof(Aes) : sizeof(Des3);
    }
}

static int setkey(void *session, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct session *s = session;
    size_t align = _Alignof(union keyed), len = (context_len(s) + align - 1) / align * align;
    (void)policy;
    /* Of triple DES it is not told how long a key is; keys of xts that have a byte more it takes without it. */
    if (!s->is_aes ? key_len != DES3_KEYLEN : s->mode == MODE_XTS && key_len % 2 != 0) {
        return SUBJECT_UNSUPPORTED;
    }
    union keyed *tried = aligned_alloc(align, len);
    if (tried == NULL) {
        return SUBJECT_UNSUPPORTED;
    }
    memset(tried, 0, len);
    if (expand(s, tried, key, key_len) != 0) {
        free(tried);
        return SUBJECT_BAD_KEY_LEN;
    }
    discard(s, s->keyed);
    s->keyed = tried;
    s->key_len = key_len <= MAX_KEY_LEN ? key_len : 0;
    memcpy(s->key, key, s->key_len);
    return SUBJECT_OK;
}

static int mac_start(struct session *s)
{
    return wc_InitCmac(&s->keyed->mac, s->key, (word32)s->key_len, WC_CMAC_AES, NULL) == 0 ? SUBJECT_OK
                                                                                           : SUBJECT_UNSUPPORTED;
}

static int setiv(void *session, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths)
{
    struct session *s = session;
    if (s->mode == MODE_CCM || s->mode == MODE_GCM) {
        return wolfssl_aead_setiv(s, iv, iv_len, lengths);
    }
    /* It is not told how long an iv is, but in xts. */
    if (iv_len != (s->mode == MODE_ECB || s->mode == MODE_CMAC ? 0 : s->block_len)) {
        return SUBJECT_UNSUPPORTED;
    }
    switch (s->mode) {
    case MODE_ECB: return SUBJECT_OK;
    case MODE_CMAC: return mac_start(s);
    case MODE_XTS:
    case MODE_CTS: memcpy(s->iv, iv, iv_len); return SUBJECT_OK;
    default: break;
    }
    int error = s->is_aes ? wc_AesSetIV(&s->keyed->aes, iv) : wc_Des3_SetIV(&s->keyed->des3, iv);
    return error == 0 ? SUBJECT_OK : SUBJECT_UNSUPPORTED;
}

static int des3(struct session *s, uint8_t *dst, const uint8_t *src, size_t len)
{
    Des3 *des = &s->keyed->des3;
    word32 n = (word32)len;
    if (len % s->block_len != 0) {
        return SUBJECT_UNSUPPORTED; /* it leaves the rest undone without a word */
    }
    int error = s->mode == MODE_ECB ? wc_Des3_EcbEncrypt(des, dst, src, n)
                : s->decrypting     ? wc_Des3_CbcDecrypt(des, dst, src, n)
                                    : wc_Des3_CbcEncrypt(des, dst, src, n);
    return error == 0 ? SUBJECT_OK : SUBJECT_BAD_DATA_LEN;
}

static int ecb(struct session *s, uint8_t *dst, const uint8_t *src, size_t len)
{
    Aes *aes = &s->keyed->aes;
    word32 n = (word32)len;
    if (len % s->block_len != 0) {
        return SUBJECT_UNSUPPORTED; /* likewise */
    }
    int error = s->decrypting ? wc_AesEcbDecrypt(aes, dst, src, n) : wc_AesEcbEncrypt(aes, dst, src, n);
    return error == 0 ? SUBJECT_OK : SUBJECT_BAD_DATA_LEN;
}

static int stream(struct session *s, uint8_t *dst, const uint8_t *src, word32 n)
{
    Aes *aes = &s->keyed->aes;
    switch (s->mode) {
    case MODE_CBC: return s->decrypting ? wc_AesCbcDecrypt(aes, dst, src, n) : wc_AesCbcEncrypt(aes, dst, src, n);
    case MODE_CFB: return s->decrypting ? wc_AesCfbDecrypt(aes, dst, src, n) : wc_AesCfbEncrypt(aes, dst, src, n);
    case MODE_OFB: return s->decrypting ? wc_AesOfbDecrypt(aes, dst, src, n) : wc_AesOfbEncrypt(aes, dst, src, n);
    default: return wc_AesCtrEncrypt(aes, dst, src, n);
    }
}

static int update(void *session, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    struct session *s = session;
    int error = 0;
    (void)last;
    if (len > UINT32_MAX) {
        return SUBJECT_UNSUPPORTED; /* it counts in 32 bits */
    }
    if (!s->is_aes) {
        return des3(s, dst, src, len);
    }
    switch (s->mode) {
    case MODE_ECB: return ecb(s, dst, src, len);
    case MODE_XTS:
        error = s->decrypting ? wc_AesXtsDecrypt(&s->keyed->xts, dst, src, (word32)len, s->iv, (word32)s->block_len)
                              : wc_AesXtsEncrypt(&s->keyed->xts, dst, src, (word32)len, s->iv, (word32)s->block_len);
        break;
    case MODE_CTS: error = wolfssl_cts_crypt(s->keyed->cts, dst, src, len, s->iv) != len; break;
    case MODE_CMAC: error = wc_CmacUpdate(&s->keyed->mac, src, (word32)len); break;
    case MODE_CCM:
    case MODE_GCM: return wolfssl_aead_update(s, dst, src, len);
    default: error = stream(s, dst, src, (word32)len);
    }
    return error == 0 ? SUBJECT_OK : SUBJECT_BAD_DATA_LEN;
}

static int final(void *session)
{
    const struct session *s = session;
    return s->mode == MODE_CCM || s->mode == MODE_GCM ? wolfssl_aead_final(s) : SUBJECT_OK;
}

static int tag(void *session, uint8_t *bytes, size_t len)
{
    struct session *s = session;
    word32 got = (word32)len;
    if (len > s->block_len) {
        return SUBJECT_UNSUPPORTED;
    }
    if (s->mode != MODE_CMAC) {
        return wolfssl_aead_tag(s, bytes, len);
    }
    return len == s->block_len && wc_CmacFinal(&s->keyed->mac, bytes, &got) == 0 && got == len ? SUBJECT_OK
                                                                                               : SUBJECT_UNSUPPORTED;
}

/* Where the library keeps an iv is no part of its interface. */
static size_t iv_out(void *session, uint8_t *iv)
{
    (void)session;
    (void)iv;
    return 0;
}

static int reinit(void *session)
{
    struct session *s = session;
    return s->mode == MODE_CMAC ? mac_start(s) : SUBJECT_OK; /* every other mode begins anew with the iv */
}

const struct subject_session PROVIDER_SESSION = {
    ADAPTER_FUNCTIONS,
    .aad = wolfssl_aead_aad,
    .expect = wolfssl_aead_expect,
};
