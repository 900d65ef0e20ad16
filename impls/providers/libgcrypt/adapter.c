/* SPDX-License-Identifier: Apache-2.0
 * libgcrypt through its public header. A key goes into a fresh handle, which takes the old one's place only when the
 * library accepts it: a handle that refused a key has none. */
#include <gcrypt.h>
#include <stdlib.h>

#include "adapter.h"

struct mode_entry {
    const char *name;
    int mode;
    unsigned flags;
};

struct cipher_entry {
    const char *name;
    int cipher;
    int mac;
    size_t block_len;
};

struct session {
    const struct mode_entry *mode;
    const struct cipher_entry *cipher;
    int decrypting;
    gcry_cipher_hd_t handle; /* NULL before the first key and for cmac */
    gcry_mac_hd_t mac;       /* cmac */
    /* cbcmac: libgcrypt chains whole blocks, padding is the caller's. */
    size_t used;
    uint8_t pending[SUBJECT_MAX_BLOCK_LEN];
    uint8_t chained[SUBJECT_MAX_BLOCK_LEN];
};

static const struct mode_entry modes[] = {
    {"ecb", GCRY_CIPHER_MODE_ECB, 0},
    {"cbc", GCRY_CIPHER_MODE_CBC, 0},
    {"cfb", GCRY_CIPHER_MODE_CFB, 0},
    {"ofb", GCRY_CIPHER_MODE_OFB, 0},
    {"ctr", GCRY_CIPHER_MODE_CTR, 0},
    {"xts", GCRY_CIPHER_MODE_XTS, 0},
    {"cts_cbc", GCRY_CIPHER_MODE_CBC, GCRY_CIPHER_CBC_CTS},
    {"cbcmac", GCRY_CIPHER_MODE_CBC, GCRY_CIPHER_CBC_MAC},
    {"cmac", GCRY_CIPHER_MODE_NONE, 0},
    {"ccm", GCRY_CIPHER_MODE_CCM, 0},
    {"gcm", GCRY_CIPHER_MODE_GCM, 0},
};

static const struct cipher_entry ciphers[] = {
    {"cast5", GCRY_CIPHER_CAST5, GCRY_MAC_CMAC_CAST5, 8},
    {"des3_ede", GCRY_CIPHER_3DES, GCRY_MAC_CMAC_3DES, 8},
    {"serpent", GCRY_CIPHER_SERPENT128, GCRY_MAC_CMAC_SERPENT, 16},
    {"twofish", GCRY_CIPHER_TWOFISH, GCRY_MAC_CMAC_TWOFISH, 16},
    {"sm4", GCRY_CIPHER_SM4, GCRY_MAC_CMAC_SM4, 16},
    {"aes", GCRY_CIPHER_AES, GCRY_MAC_CMAC_AES, 16},
};

static const struct mode_entry *mode_named(const char *name)
{
    return ADAPTER_ENTRY(modes, name);
}

static const struct cipher_entry *cipher_named(const char *name)
{
    return ADAPTER_ENTRY(ciphers, name);
}

static int is_mac(const struct session *s)
{
    return s->mode->mode == GCRY_CIPHER_MODE_NONE;
}

static int is_cbcmac(const struct session *s)
{
    return (s->mode->flags & GCRY_CIPHER_CBC_MAC) != 0;
}

static int is_aead(const struct session *s)
{
    return s->mode->mode == GCRY_CIPHER_MODE_CCM || s->mode->mode == GCRY_CIPHER_MODE_GCM;
}

/* Features that the library is not to find, separated by commas; what this version does not know it has not either. */
static void hide_features(const char *names)
{
    char name[64];
    while (names != NULL && *names != 0) {
        size_t len = strcspn(names, ",");
        if (len < sizeof name) {
            memcpy(name, names, len);
            name[len] = 0;
            (void)gcry_control(GCRYCTL_DISABLE_HWF, name, NULL);
        }
        names += len + (names[len] == ',');
    }
}

static const char *version(void)
{
    if (!gcry_control(GCRYCTL_ANY_INITIALIZATION_P)) {
        hide_features(getenv("CROSSLANE_HIDE_FEATURES")); /* possible only before anything else */
    }
    const char *text = gcry_check_version(NULL);
    if (!gcry_control(GCRYCTL_INITIALIZATION_FINISHED_P)) {
        (void)gcry_control(GCRYCTL_DISABLE_SECMEM, 0);
        (void)gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
    }
    return gcry_control(GCRYCTL_INITIALIZATION_FINISHED_P) ? text : NULL;
}

static size_t block_len(const char *mode, const char *cipher)
{
    const struct mode_entry *m = mode_named(mode);
    const struct cipher_entry *c = cipher_named(cipher);
    gcry_cipher_hd_t handle;
    (void)version();
    if (m == NULL || c == NULL) {
        return 0;
    }
    if (m->mode == GCRY_CIPHER_MODE_NONE) {
        return gcry_mac_test_algo(c->mac) == 0 ? c->block_len : 0;
    }
    if (gcry_cipher_open(&handle, c->cipher, m->mode, m->flags) != 0) {
        return 0;
    }
    gcry_cipher_close(handle);
    return c->block_len;
}

static void *open_session(const char *mode, const char *cipher, int decrypting)
{
    struct session *s = calloc(1, sizeof *s);
    if (s != NULL) {
        s->mode = mode_named(mode);
        s->cipher = cipher_named(cipher);
        s->decrypting = decrypting;
    }
    return s;
}

static void close_session(void *session)
{
    struct session *s = session;
    gcry_cipher_close(s->handle);
    gcry_mac_close(s->mac);
    free(s);
}

/* A library's refusal as the contract says it, where the operation leaves no other reason open. */
static int refusal(gcry_error_t error, int otherwise)
{
    switch (gcry_err_code(error)) {
    case GPG_ERR_NO_ERROR: return SUBJECT_OK;
    case GPG_ERR_WEAK_KEY: return SUBJECT_WEAK_KEY;
    case GPG_ERR_CHECKSUM: return SUBJECT_BAD_TAG;
    default: return otherwise;
    }
}

static int mac_setkey(struct session *s, const uint8_t *key, size_t key_len)
{
    gcry_mac_hd_t mac;
    if (gcry_mac_open(&mac, s->cipher->mac, 0, NULL) != 0) {
        return SUBJECT_UNSUPPORTED;
    }
    int status = refusal(gcry_mac_setkey(mac, key, key_len), SUBJECT_BAD_KEY_LEN);
    if (status != SUBJECT_OK) {
        gcry_mac_close(mac);
        return status;
    }
    gcry_mac_close(s->mac);
    s->mac = mac;
    return SUBJECT_OK;
}

static int setkey(void *session, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct session *s = session;
    gcry_cipher_hd_t handle;
    if (is_mac(s)) {
        return mac_setkey(s, key, key_len);
    }
    if (gcry_cipher_open(&handle, s->cipher->cipher, s->mode->mode, s->mode->flags) != 0) {
        return SUBJECT_UNSUPPORTED;
    }
    int weak_allowed = (policy & SUBJECT_POLICY_WEAK_SUBKEY) == 0;
    gcry_error_t error = gcry_cipher_ctl(handle, GCRYCTL_SET_ALLOW_WEAK_KEY, NULL, (size_t)weak_allowed);
    int status = refusal(error != 0 ? error : gcry_cipher_setkey(handle, key, key_len), SUBJECT_BAD_KEY_LEN);
    /* A weak key that is allowed is reported all the same, and in force. */
    if (status != SUBJECT_OK && !(status == SUBJECT_WEAK_KEY && weak_allowed)) {
        gcry_cipher_close(handle);
        return status;
    }
    gcry_cipher_close(s->handle);
    s->handle = handle;
    return SUBJECT_OK;
}

static int set_ccm_lengths(struct session *s, const struct subject_lengths *lengths)
{
    uint64_t three[3] = {lengths->data_len, lengths->aad_len, lengths->tag_len};
    return refusal(gcry_cipher_ctl(s->handle, GCRYCTL_SET_CCM_LENGTHS, three, sizeof three), SUBJECT_BAD_TAG_LEN);
}

static int setiv(void *session, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths)
{
    struct session *s = session;
    if (is_mac(s)) {
        return iv_len == 0 ? refusal(gcry_mac_reset(s->mac), SUBJECT_UNSUPPORTED) : SUBJECT_UNSUPPORTED;
    }
    if (is_aead(s)) {
        int status = refusal(gcry_cipher_setiv(s->handle, iv, iv_len), SUBJECT_BAD_IV_LEN);
        int is_ccm = s->mode->mode == GCRY_CIPHER_MODE_CCM;
        return status == SUBJECT_OK && is_ccm ? set_ccm_lengths(s, lengths) : status;
    }
    if (is_cbcmac(s)) {
        s->used = 0;
        memset(s->chained, 0, sizeof s->chained);
        return iv_len == 0 ? refusal(gcry_cipher_setiv(s->handle, NULL, 0), SUBJECT_UNSUPPORTED) : SUBJECT_UNSUPPORTED;
    }
    /* Other lengths than a block the library pads or cuts without a word. */
    if (iv_len != (s->mode->mode == GCRY_CIPHER_MODE_ECB ? 0 : s->cipher->block_len)) {
        return SUBJECT_UNSUPPORTED;
    }
    if (s->mode->mode == GCRY_CIPHER_MODE_CTR) {
        return refusal(gcry_cipher_setctr(s->handle, iv, iv_len), SUBJECT_BAD_IV_LEN);
    }
    return iv_len == 0 ? SUBJECT_OK : refusal(gcry_cipher_setiv(s->handle, iv, iv_len), SUBJECT_BAD_IV_LEN);
}

static int aad(void *session, const uint8_t *data, size_t len)
{
    struct session *s = session;
    return refusal(gcry_cipher_authenticate(s->handle, data, len), SUBJECT_BAD_AAD_LEN);
}

static int chain(struct session *s, const uint8_t *blocks, size_t len)
{
    return len == 0 ? SUBJECT_OK
                    : refusal(gcry_cipher_encrypt(s->handle, s->chained, s->cipher->block_len, blocks, len),
                              SUBJECT_BAD_DATA_LEN);
}

static int cbcmac_update(struct session *s, const uint8_t *src, size_t len)
{
    size_t bs = s->cipher->block_len;
    if (s->used > 0) {
        size_t n = len < bs - s->used ? len : bs - s->used;
        memcpy(s->pending + s->used, src, n);
        s->used += n;
        src += n;
        len -= n;
        if (s->used < bs) {
            return SUBJECT_OK;
        }
        int status = chain(s, s->pending, bs);
        if (status != SUBJECT_OK) {
            return status;
        }
    }
    s->used = len % bs;
    memcpy(s->pending, src + (len - s->used), s->used);
    return chain(s, src, len - s->used);
}

static int update(void *session, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    struct session *s = session;
    (void)last;
    if (is_mac(s)) {
        return refusal(gcry_mac_write(s->mac, src, len), SUBJECT_BAD_DATA_LEN);
    }
    if (is_cbcmac(s)) {
        return cbcmac_update(s, src, len);
    }
    const uint8_t *in = dst == src ? NULL : src; /* NULL asks for in place */
    size_t in_len = dst == src ? 0 : len;
    gcry_error_t error = s->decrypting ? gcry_cipher_decrypt(s->handle, dst, len, in, in_len)
                                       : gcry_cipher_encrypt(s->handle, dst, len, in, in_len);
    return refusal(error, SUBJECT_BAD_DATA_LEN);
}

static int final(void *session)
{
    struct session *s = session;
    if (!is_cbcmac(s) || s->used == 0) {
        return SUBJECT_OK;
    }
    memset(s->pending + s->used, 0, s->cipher->block_len - s->used);
    return chain(s, s->pending, s->cipher->block_len);
}

static int tag(void *session, uint8_t *bytes, size_t len)
{
    struct session *s = session;
    size_t got = len;
    if (is_aead(s)) {
        return refusal(s->decrypting ? gcry_cipher_checktag(s->handle, bytes, len)
                                     : gcry_cipher_gettag(s->handle, bytes, len),
                       SUBJECT_BAD_TAG_LEN);
    }
    if (len != s->cipher->block_len) {
        return SUBJECT_UNSUPPORTED;
    }
    if (is_cbcmac(s)) {
        memcpy(bytes, s->chained, len);
        return SUBJECT_OK;
    }
    return refusal(gcry_mac_read(s->mac, bytes, &got), SUBJECT_BAD_TAG_LEN);
}

static size_t iv_out(void *session, uint8_t *iv)
{
    (void)session;
    (void)iv;
    return 0;
}

static int reinit(void *session)
{
    struct session *s = session;
    return refusal(is_mac(s) ? gcry_mac_reset(s->mac) : gcry_cipher_reset(s->handle), SUBJECT_UNSUPPORTED);
}

const struct subject_session PROVIDER_SESSION = {
    ADAPTER_FUNCTIONS,
    .aad = aad,
};
