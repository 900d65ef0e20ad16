/* SPDX-License-Identifier: Apache-2.0
 * OpenSSL 3 through EVP, with its default and legacy providers and without its configuration file. A key goes into a
 * fresh context, which takes the old one's place only when the library accepts it. */
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <stdio.h>
#include <stdlib.h>

#include "openssl_session.h"

#define NUM_FETCHED 8u
static const struct mode_entry modes[] = {
    {"ecb", "ECB", KIND_PLAIN, 1},         {"cbc", "CBC", KIND_PLAIN, 1}, {"cfb", "CFB", KIND_PLAIN, 1},
    {"ofb", "OFB", KIND_PLAIN, 1},         {"ctr", "CTR", KIND_PLAIN, 1}, {"xts", "XTS", KIND_PLAIN, 2},
    {"cts_cbc", "CBC-CTS", KIND_PLAIN, 1}, {"cmac", "CBC", KIND_MAC, 1},  {"ccm", "CCM", KIND_CCM, 1},
    {"gcm", "GCM", KIND_GCM, 1},
};

static const struct cipher_entry ciphers[] = {
    {"aes", "AES", 16, 1, 16},
    {"cast5", "CAST5", 16, 0, 8},
    {"des3_ede", "DES-EDE3", 24, 0, 8},
    {"sm4", "SM4", 16, 0, 16},
};

static const struct mode_entry *mode_named(const char *name)
{
    return ADAPTER_ENTRY(modes, name);
}

static const struct cipher_entry *cipher_named(const char *name)
{
    return ADAPTER_ENTRY(ciphers, name);
}

/* Whether the library could be initialised. Not every build of it has the legacy provider, whose ciphers then lack. */
static int start(void)
{
    static int started, usable;
    if (!started) {
        started = 1;
        usable =
            OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) == 1 && OSSL_PROVIDER_load(NULL, "default") != NULL;
        (void)OSSL_PROVIDER_load(NULL, "legacy");
    }
    return usable;
}

static const char *version(void)
{
    return start() ? OpenSSL_version(OPENSSL_VERSION_STRING) : NULL;
}

static void evp_name(char *name, size_t capacity, const struct mode_entry *mode, const struct cipher_entry *cipher,
                     size_t key_len)
{
    if (cipher->key_len_in_name) {
        (void)snprintf(name, capacity, "%s-%zu-%s", cipher->evp, 8 * key_len / mode->num_keys, mode->evp);
    } else {
        (void)snprintf(name, capacity, "%s-%s", cipher->evp, mode->evp);
    }
}

/* The cipher for keys of a length, NULL where there is none. A process has one algorithm, so few lengths. */
static const EVP_CIPHER *fetched(const struct mode_entry *mode, const struct cipher_entry *cipher, size_t key_len)
{
    static struct {
        size_t key_len;
        EVP_CIPHER *cipher;
    } known[NUM_FETCHED];
    static unsigned num_known;
    char name[64];
    size_t asked = cipher->key_len_in_name ? key_len : 0;
    for (unsigned i = 0; i < num_known; i++) {
        if (known[i].key_len == asked) {
            return known[i].cipher;
        }
    }
    evp_name(name, sizeof name, mode, cipher, key_len);
    EVP_CIPHER *found = EVP_CIPHER_fetch(NULL, name, NULL);
    if (found != NULL && num_known < NUM_FETCHED) {
        known[num_known].key_len = asked;
        known[num_known++].cipher = found;
    }
    return found;
}

static EVP_MAC *cmac(void)
{
    static EVP_MAC *mac;
    if (mac == NULL) {
        mac = EVP_MAC_fetch(NULL, "CMAC", NULL);
    }
    return mac;
}

static size_t block_len(const char *mode, const char *cipher)
{
    const struct mode_entry *m = mode_named(mode);
    const struct cipher_entry *c = cipher_named(cipher);
    if (!start() || m == NULL || c == NULL || fetched(m, c, c->usual_key_len * m->num_keys) == NULL ||
        (m->kind == KIND_MAC && cmac() == NULL)) {
        return 0;
    }
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
    EVP_CIPHER_CTX_free(s->ctx);
    EVP_MAC_CTX_free(s->mac);
    free(s->message.aad);
    OPENSSL_cleanse(s, sizeof *s); /* ccm's key */
    free(s);
}

static int mac_setkey(struct session *s, const uint8_t *key, size_t key_len)
{
    char name[64];
    evp_name(name, sizeof name, s->mode, s->cipher, key_len);
    OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_CIPHER, name, 0),
                           OSSL_PARAM_construct_end()};
    EVP_MAC_CTX *mac = EVP_MAC_CTX_new(cmac());
    if (mac == NULL || EVP_MAC_init(mac, key, key_len, params) != 1) {
        EVP_MAC_CTX_free(mac);
        return SUBJECT_BAD_KEY_LEN;
    }
    EVP_MAC_CTX_free(s->mac);
    s->mac = mac;
    return SUBJECT_OK;
}

/* A context of the cipher that waits for a key of this length, or NULL. */
static EVP_CIPHER_CTX *context_for(const struct session *s, const EVP_CIPHER *cipher, size_t key_len)
{
    char cs3[] = "CS3";
    OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_CIPHER_PARAM_CTS_MODE, cs3, 0),
                           OSSL_PARAM_construct_end()};
    int steals = strcmp(s->mode->name, "cts_cbc") == 0;
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    if (ctx == NULL || EVP_CipherInit_ex2(ctx, cipher, NULL, NULL, !s->decrypting, steals ? params : NULL) != 1 ||
        EVP_CIPHER_CTX_set_key_length(ctx, (int)key_len) != 1) {
        EVP_CIPHER_CTX_free(ctx);
        return NULL;
    }
    (void)EVP_CIPHER_CTX_set_padding(ctx, 0);
    return ctx;
}

static int setkey(void *session, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct session *s = session;
    (void)policy;
    if (s->mode->kind == KIND_MAC) {
        return mac_setkey(s, key, key_len);
    }
    const EVP_CIPHER *cipher = fetched(s->mode, s->cipher, key_len);
    EVP_CIPHER_CTX *ctx = cipher == NULL ? NULL : context_for(s, cipher, key_len);
    if (ctx == NULL) {
        return SUBJECT_BAD_KEY_LEN;
    }
    if (EVP_CipherInit_ex2(ctx, NULL, key, NULL, !s->decrypting, NULL) != 1) {
        EVP_CIPHER_CTX_free(ctx);
        return SUBJECT_UNSUPPORTED; /* of the right length and refused: xts with equal keys */
    }
    if (s->mode->kind == KIND_CCM) {
        memcpy(s->key, key, key_len <= MAX_KEY_LEN ? key_len : 0);
    }
    EVP_CIPHER_CTX_free(s->ctx);
    s->ctx = ctx;
    return SUBJECT_OK;
}

static int setiv(void *session, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths)
{
    struct session *s = session;
    int has_iv = strcmp(s->mode->name, "ecb") != 0;
    switch (s->mode->kind) {
    case KIND_CCM:
    case KIND_GCM: return openssl_aead_setiv(s, iv, iv_len, lengths);
    case KIND_MAC: return iv_len == 0 && EVP_MAC_init(s->mac, NULL, 0, NULL) == 1 ? SUBJECT_OK : SUBJECT_UNSUPPORTED;
    case KIND_PLAIN: break;
    }
    /* EVP is not told how long an iv is, it takes a block's worth. */
    return iv_len == (has_iv ? s->cipher->block_len : 0) ? openssl_begin(s, has_iv ? iv : NULL) : SUBJECT_UNSUPPORTED;
}

/* Whole blocks a call, where data has to be given in several: xts and cts_cbc end with each (see provider.toml). */
static int cipher_update(struct session *s, uint8_t *dst, const uint8_t *src, size_t len)
{
    do {
        size_t part = len < MAX_CHUNK ? len : MAX_CHUNK;
        int done = 0;
        if (EVP_CipherUpdate(s->ctx, dst, &done, src, (int)part) != 1) {
            return SUBJECT_BAD_DATA_LEN;
        }
        if ((size_t)done != part) {
            return SUBJECT_UNSUPPORTED; /* what is no whole block EVP keeps, for more to come */
        }
        dst += part;
        src += part;
        len -= part;
    } while (len > 0);
    return SUBJECT_OK;
}

static int update(void *session, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    struct session *s = session;
    (void)last;
    if (s->mode->kind == KIND_MAC) {
        return EVP_MAC_update(s->mac, src, len) == 1 ? SUBJECT_OK : SUBJECT_BAD_DATA_LEN;
    }
    if (s->mode->kind == KIND_CCM) {
        return openssl_ccm_update(s, dst, src, len);
    }
    return cipher_update(s, dst, src, len);
}

static int final(void *session)
{
    struct session *s = session;
    uint8_t rest[SUBJECT_MAX_BLOCK_LEN];
    int done;
    switch (s->mode->kind) {
    case KIND_MAC: return SUBJECT_OK; /* ends with its tag */
    case KIND_CCM: return s->message.began ? SUBJECT_OK : SUBJECT_BAD_DATA_LEN;
    case KIND_GCM:
        if (s->decrypting) {
            return SUBJECT_OK; /* likewise */
        }
        break;
    case KIND_PLAIN: break;
    }
    return EVP_CipherFinal_ex(s->ctx, rest, &done) == 1 && done == 0 ? SUBJECT_OK : SUBJECT_BAD_DATA_LEN;
}

static int tag(void *session, uint8_t *bytes, size_t len)
{
    struct session *s = session;
    size_t got = len;
    if (s->mode->kind == KIND_MAC) {
        return len == s->cipher->block_len && EVP_MAC_final(s->mac, bytes, &got, len) == 1 ? SUBJECT_OK
                                                                                           : SUBJECT_UNSUPPORTED;
    }
    if (!s->decrypting) {
        return EVP_CIPHER_CTX_ctrl(s->ctx, EVP_CTRL_AEAD_GET_TAG, (int)len, bytes) == 1 ? SUBJECT_OK
                                                                                        : SUBJECT_BAD_TAG_LEN;
    }
    if (s->mode->kind == KIND_GCM) {
        return openssl_gcm_compare(s, bytes, len);
    }
    return s->message.wrong_tag ? SUBJECT_BAD_TAG : SUBJECT_OK;
}

static size_t iv_out(void *session, uint8_t *iv)
{
    struct session *s = session;
    if (s->mode->kind != KIND_PLAIN) {
        return 0;
    }
    return EVP_CIPHER_CTX_get_updated_iv(s->ctx, iv, s->cipher->block_len) == 1 ? s->cipher->block_len : 0;
}

/* The key stays in a context; the next iv begins a message anew. */
static int reinit(void *session)
{
    struct session *s = session;
    if (s->mode->kind == KIND_MAC) {
        return EVP_MAC_init(s->mac, NULL, 0, NULL) == 1 ? SUBJECT_OK : SUBJECT_UNSUPPORTED;
    }
    return openssl_begin(s, NULL);
}

static void *clone(const void *session)
{
    const struct session *from = session;
    struct session *s = malloc(sizeof *s);
    if (s == NULL) {
        return NULL;
    }
    *s = *from;
    s->ctx = from->ctx == NULL ? NULL : EVP_CIPHER_CTX_new();
    s->mac = from->mac == NULL ? NULL : EVP_MAC_CTX_dup(from->mac);
    s->message.aad = NULL;
    s->message.aad_len = 0;
    if (adapter_keep_aad(&s->message, from->message.aad, from->message.aad_len) != SUBJECT_OK ||
        (from->mac != NULL && s->mac == NULL) ||
        (from->ctx != NULL && (s->ctx == NULL || EVP_CIPHER_CTX_copy(s->ctx, from->ctx) != 1))) {
        close_session(s);
        return NULL;
    }
    return s;
}

const struct subject_session PROVIDER_SESSION = {
    ADAPTER_FUNCTIONS,
    .aad = openssl_aad,
    .expect = openssl_expect,
    .clone = clone,
};
