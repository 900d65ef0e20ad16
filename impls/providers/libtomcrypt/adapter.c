/* SPDX-License-Identifier: Apache-2.0
 * libtomcrypt through its public header. Its states are plain structures, so that a context is copied by assignment, and
 * a new key is tried in a state of its own. The library ends the process where a pointer is NULL: none is. */
#include <stdio.h>
#include <stdlib.h>
#include <tomcrypt.h>

#include "adapter.h"

#define MAX_KEY_LEN 32u
#define MAX_INT_LEN ((size_t)1 << 30) /* ccm counts in int */

enum mode { MODE_ECB, MODE_CBC, MODE_CFB, MODE_OFB, MODE_CTR, MODE_XTS, MODE_CMAC, MODE_XCBC, MODE_CCM, MODE_GCM };

union state {
    symmetric_ECB ecb;
    symmetric_CBC cbc;
    symmetric_CFB cfb;
    symmetric_OFB ofb;
    symmetric_CTR ctr;
    symmetric_xts xts;
    omac_state cmac;
    xcbc_state xcbc;
    ccm_state ccm;
    gcm_state gcm;
};

struct session {
    enum mode mode;
    int cipher; /* libtomcrypt's index */
    size_t block_len;
    int decrypting;
    size_t state_len;   /* what the mode has of the union */
    union state *state; /* NULL before the first key */
    union state *keyed; /* cmac and xcbc, which cannot begin anew: as the key left it */
    uint8_t key[MAX_KEY_LEN];
    size_t key_len;
    uint8_t tweak[16];
};

static const struct mode_entry {
    const char *name;
    enum mode mode;
    size_t state_len;
} modes[] = {
    {"ecb", MODE_ECB, sizeof(symmetric_ECB)}, {"cbc", MODE_CBC, sizeof(symmetric_CBC)},
    {"cfb", MODE_CFB, sizeof(symmetric_CFB)}, {"ofb", MODE_OFB, sizeof(symmetric_OFB)},
    {"ctr", MODE_CTR, sizeof(symmetric_CTR)}, {"xts", MODE_XTS, sizeof(symmetric_xts)},
    {"cmac", MODE_CMAC, sizeof(omac_state)},  {"xcbc", MODE_XCBC, sizeof(xcbc_state)},
    {"ccm", MODE_CCM, sizeof(ccm_state)},     {"gcm", MODE_GCM, sizeof(gcm_state)},
};

static const struct cipher_entry {
    const char *name;
    const struct ltc_cipher_descriptor *descriptor;
} ciphers[] = {
    {"aes", &aes_desc},
    {"cast5", &cast5_desc},
    {"des3_ede", &des3_desc},
    {"twofish", &twofish_desc},
};

/* The second word of the settings that the loaded library was built with. SCRYPT is the version of the header, which need
 * not be of the same release. */
static const char *version(void)
{
    static char number[16];
    if (sscanf(crypt_build_settings, "LibTomCrypt %15[0-9A-Za-z.-]", number) != 1) {
        return "unknown";
    }
    return number;
}

static const struct mode_entry *mode_named(const char *name)
{
    return ADAPTER_ENTRY(modes, name);
}

static const struct cipher_entry *cipher_named(const char *name)
{
    return ADAPTER_ENTRY(ciphers, name);
}

static size_t block_len(const char *mode, const char *cipher)
{
    const struct cipher_entry *c = cipher_named(cipher);
    if (mode_named(mode) == NULL || c == NULL || register_cipher(c->descriptor) < 0) {
        return 0;
    }
    return (size_t)c->descriptor->block_length;
}

static void *open_session(const char *mode, const char *cipher, int decrypting)
{
    struct session *s = calloc(1, sizeof *s);
    if (s != NULL) {
        const struct ltc_cipher_descriptor *descriptor = cipher_named(cipher)->descriptor;
        s->mode = mode_named(mode)->mode;
        s->state_len = mode_named(mode)->state_len;
        s->cipher = find_cipher(descriptor->name);
        s->block_len = (size_t)descriptor->block_length;
        s->decrypting = decrypting;
    }
    return s;
}

static void close_session(void *session)
{
    struct session *s = session;
    free(s->state);
    free(s->keyed);
    free(s);
}

static int is_mac(const struct session *s)
{
    return s->mode == MODE_CMAC || s->mode == MODE_XCBC;
}

static int start_xts(const struct session *s, union state *state, const uint8_t *key, size_t key_len)
{
    /* The library takes two keys of one length each. */
    return key_len % 2 != 0 ? CRYPT_INVALID_KEYSIZE
                            : xts_start(s->cipher, key, key + key_len / 2, key_len / 2, 0, &state->xts);
}

static int start(const struct session *s, union state *state, const uint8_t *key, size_t key_len)
{
    static const uint8_t zeros[SUBJECT_MAX_BLOCK_LEN];
    int len = (int)key_len;
    switch (s->mode) {
    case MODE_ECB: return ecb_start(s->cipher, key, len, 0, &state->ecb);
    case MODE_CBC: return cbc_start(s->cipher, zeros, key, len, 0, &state->cbc);
    case MODE_CFB: return cfb_start(s->cipher, zeros, key, len, 0, &state->cfb);
    case MODE_OFB: return ofb_start(s->cipher, zeros, key, len, 0, &state->ofb);
    case MODE_CTR: return ctr_start(s->cipher, zeros, key, len, 0, CTR_COUNTER_BIG_ENDIAN, &state->ctr);
    case MODE_XTS: return start_xts(s, state, key, key_len);
    case MODE_CMAC: return omac_init(&state->cmac, s->cipher, key, key_len);
    case MODE_XCBC: return xcbc_init(&state->xcbc, s->cipher, key, key_len);
    case MODE_CCM: return ccm_init(&state->ccm, s->cipher, key, len, 0, 16, 0);
    case MODE_GCM: return gcm_init(&state->gcm, s->cipher, key, len);
    }
    return CRYPT_INVALID_ARG;
}

static int setkey(void *session, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct session *s = session;
    size_t len = s->state_len;
    union state *tried = malloc(len), *keyed = is_mac(s) ? malloc(len) : NULL;
    (void)policy;
    int error = tried == NULL || (is_mac(s) && keyed == NULL) ? CRYPT_MEM : start(s, tried, key, key_len);
    if (error != CRYPT_OK) {
        free(tried);
        free(keyed);
        return error == CRYPT_MEM ? SUBJECT_UNSUPPORTED : SUBJECT_BAD_KEY_LEN;
    }
    if (keyed != NULL) {
        memcpy(keyed, tried, len);
    }
    free(s->state);
    free(s->keyed);
    s->state = tried;
    s->keyed = keyed;
    s->key_len = key_len <= MAX_KEY_LEN ? key_len : 0;
    memcpy(s->key, key, s->key_len);
    return SUBJECT_OK;
}

static int ccm_setiv(struct session *s, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths)
{
    /* Other nonces the library cuts or lengthens without a word. */
    if (iv_len < 7 || iv_len > 13 || lengths->data_len > MAX_INT_LEN || lengths->aad_len > MAX_INT_LEN) {
        return SUBJECT_UNSUPPORTED;
    }
    if (ccm_init(&s->state->ccm, s->cipher, s->key, (int)s->key_len, (int)lengths->data_len, (int)lengths->tag_len,
                 (int)lengths->aad_len) != CRYPT_OK) {
        return SUBJECT_BAD_TAG_LEN;
    }
    return ccm_add_nonce(&s->state->ccm, iv, iv_len) == CRYPT_OK ? SUBJECT_OK : SUBJECT_BAD_IV_LEN;
}

static int gcm_setiv(struct session *s, const uint8_t *iv, size_t iv_len)
{
    /* The first call with associated data, though empty, ends the iv. */
    int taken = gcm_reset(&s->state->gcm) == CRYPT_OK && gcm_add_iv(&s->state->gcm, iv, iv_len) == CRYPT_OK &&
                gcm_add_aad(&s->state->gcm, iv, 0) == CRYPT_OK;
    return taken ? SUBJECT_OK : SUBJECT_BAD_IV_LEN;
}

static int xts_setiv(struct session *s, const uint8_t *iv, size_t iv_len)
{
    if (iv_len != sizeof s->tweak) {
        return SUBJECT_UNSUPPORTED;
    }
    memcpy(s->tweak, iv, iv_len);
    return SUBJECT_OK;
}

static int setiv(void *session, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths)
{
    struct session *s = session;
    switch (s->mode) {
    case MODE_ECB: return iv_len == 0 ? SUBJECT_OK : SUBJECT_UNSUPPORTED;
    case MODE_CBC: return cbc_setiv(iv, iv_len, &s->state->cbc) == CRYPT_OK ? SUBJECT_OK : SUBJECT_BAD_IV_LEN;
    case MODE_CFB: return cfb_setiv(iv, iv_len, &s->state->cfb) == CRYPT_OK ? SUBJECT_OK : SUBJECT_BAD_IV_LEN;
    case MODE_OFB: return ofb_setiv(iv, iv_len, &s->state->ofb) == CRYPT_OK ? SUBJECT_OK : SUBJECT_BAD_IV_LEN;
    case MODE_CTR: return ctr_setiv(iv, iv_len, &s->state->ctr) == CRYPT_OK ? SUBJECT_OK : SUBJECT_BAD_IV_LEN;
    case MODE_XTS: return xts_setiv(s, iv, iv_len);
    case MODE_CMAC:
    case MODE_XCBC: memcpy(s->state, s->keyed, s->state_len); return iv_len == 0 ? SUBJECT_OK : SUBJECT_UNSUPPORTED;
    case MODE_CCM: return ccm_setiv(s, iv, iv_len, lengths);
    case MODE_GCM: return gcm_setiv(s, iv, iv_len);
    }
    return SUBJECT_UNSUPPORTED;
}

static int aad(void *session, const uint8_t *data, size_t len)
{
    struct session *s = session;
    int error = s->mode == MODE_CCM ? ccm_add_aad(&s->state->ccm, data, len) : gcm_add_aad(&s->state->gcm, data, len);
    return error == CRYPT_OK ? SUBJECT_OK : SUBJECT_BAD_AAD_LEN;
}

static int encrypt(struct session *s, uint8_t *dst, const uint8_t *src, size_t len)
{
    switch (s->mode) {
    case MODE_ECB: return ecb_encrypt(src, dst, len, &s->state->ecb);
    case MODE_CBC: return cbc_encrypt(src, dst, len, &s->state->cbc);
    case MODE_CFB: return cfb_encrypt(src, dst, len, &s->state->cfb);
    case MODE_OFB: return ofb_encrypt(src, dst, len, &s->state->ofb);
    case MODE_CTR: return ctr_encrypt(src, dst, len, &s->state->ctr);
    case MODE_XTS: return xts_encrypt(src, len, dst, s->tweak, &s->state->xts);
    default: return CRYPT_INVALID_ARG;
    }
}

static int decrypt(struct session *s, uint8_t *dst, const uint8_t *src, size_t len)
{
    switch (s->mode) {
    case MODE_ECB: return ecb_decrypt(src, dst, len, &s->state->ecb);
    case MODE_CBC: return cbc_decrypt(src, dst, len, &s->state->cbc);
    case MODE_CFB: return cfb_decrypt(src, dst, len, &s->state->cfb);
    case MODE_OFB: return ofb_decrypt(src, dst, len, &s->state->ofb);
    case MODE_CTR: return ctr_decrypt(src, dst, len, &s->state->ctr);
    case MODE_XTS: return xts_decrypt(src, len, dst, s->tweak, &s->state->xts);
    default: return CRYPT_INVALID_ARG;
    }
}

/* The library names plaintext and ciphertext, not input and output, and has no const; it writes to the output alone. */
static int process(struct session *s, uint8_t *dst, const uint8_t *src, size_t len)
{
    union {
        const uint8_t *given;
        uint8_t *taken;
    } in = {src};
    uint8_t *plain = s->decrypting ? dst : in.taken, *cipher = s->decrypting ? in.taken : dst;
    int direction = s->decrypting ? LTC_DECRYPT : LTC_ENCRYPT;
    return s->mode == MODE_CCM ? ccm_process(&s->state->ccm, plain, len, cipher, direction)
                               : gcm_process(&s->state->gcm, plain, len, cipher, direction);
}

static int update(void *session, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    struct session *s = session;
    int error;
    (void)last;
    switch (s->mode) {
    case MODE_CMAC: error = omac_process(&s->state->cmac, src, len); break;
    case MODE_XCBC: error = xcbc_process(&s->state->xcbc, src, len); break;
    case MODE_CCM:
    case MODE_GCM: error = process(s, dst, src, len); break;
    default: error = s->decrypting ? decrypt(s, dst, src, len) : encrypt(s, dst, src, len);
    }
    return error == CRYPT_OK ? SUBJECT_OK : SUBJECT_BAD_DATA_LEN;
}

static int final(void *session)
{
    struct session *s = session;
    /* gcm_done wants that some data came, were it none. */
    uint8_t none[1] = {0};
    return s->mode != MODE_GCM || process(s, none, none, 0) == CRYPT_OK ? SUBJECT_OK : SUBJECT_BAD_DATA_LEN;
}

/* libtomcrypt computes tags; comparing them is its caller's. */
static int tag(void *session, uint8_t *bytes, size_t len)
{
    struct session *s = session;
    uint8_t computed[MAXBLOCKSIZE];
    unsigned long computed_len = len;
    int error = CRYPT_INVALID_ARG, aead = s->mode == MODE_CCM || s->mode == MODE_GCM;
    if (len > 16 || (!aead && len != s->block_len)) {
        return SUBJECT_UNSUPPORTED;
    }
    if (s->mode == MODE_CCM) {
        error = ccm_done(&s->state->ccm, computed, &computed_len);
    } else if (s->mode == MODE_GCM) {
        error = gcm_done(&s->state->gcm, computed, &computed_len);
    } else if (s->mode == MODE_CMAC) {
        error = omac_done(&s->state->cmac, computed, &computed_len);
    } else if (s->mode == MODE_XCBC) {
        error = xcbc_done(&s->state->xcbc, computed, &computed_len);
    }
    if (error != CRYPT_OK || computed_len != len) {
        return SUBJECT_BAD_TAG_LEN;
    }
    if (s->decrypting && aead) {
        return memcmp(computed, bytes, len) == 0 ? SUBJECT_OK : SUBJECT_BAD_TAG;
    }
    memcpy(bytes, computed, len);
    return SUBJECT_OK;
}

/* What cfb, ofb and ctr give is another step of their state than the next iv. */
static size_t iv_out(void *session, uint8_t *iv)
{
    struct session *s = session;
    unsigned long len = s->block_len;
    return s->mode == MODE_CBC && cbc_getiv(iv, &len, &s->state->cbc) == CRYPT_OK ? len : 0;
}

static int reinit(void *session)
{
    struct session *s = session;
    if (is_mac(s)) {
        memcpy(s->state, s->keyed, s->state_len);
    }
    return SUBJECT_OK; /* every other mode begins anew with the iv */
}

static void *clone(const void *session)
{
    const struct session *from = session;
    struct session *s = malloc(sizeof *s);
    size_t len = from->state_len;
    if (s == NULL) {
        return NULL;
    }
    *s = *from;
    s->state = from->state == NULL ? NULL : malloc(len);
    s->keyed = from->keyed == NULL ? NULL : malloc(len);
    if ((from->state != NULL && s->state == NULL) || (from->keyed != NULL && s->keyed == NULL)) {
        close_session(s);
        return NULL;
    }
    if (from->state != NULL) {
        memcpy(s->state, from->state, len);
    }
    if (from->keyed != NULL) {
        memcpy(s->keyed, from->keyed, len);
    }
    return s;
}

const struct subject_session PROVIDER_SESSION = {
    ADAPTER_FUNCTIONS,
    .aad = aad,
    .clone = clone,
};
