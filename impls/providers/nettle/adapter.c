/* SPDX-License-Identifier: Apache-2.0
 * nettle through its public headers. Its functions refuse nothing and return nothing: what its manual forbids it
 * asserts, so that it is kept away here. Its contexts are plain structures, a copy of one is an assignment. */
#include <nettle/cbc.h>
#include <nettle/cfb.h>
#include <nettle/ctr.h>
#include <nettle/xts.h>
#include <stdio.h>
#include <stdlib.h>

#include "nettle_session.h"

static const struct mode_entry {
    const char *name;
    enum mode mode;
} modes[] = {
    {"ecb", MODE_ECB}, {"cbc", MODE_CBC},   {"cfb", MODE_CFB}, {"ctr", MODE_CTR},
    {"xts", MODE_XTS}, {"cmac", MODE_CMAC}, {"ccm", MODE_CCM}, {"gcm", MODE_GCM},
};

static const char *version(void)
{
    static char text[32];
    (void)snprintf(text, sizeof text, "%d.%d", nettle_version_major(), nettle_version_minor());
    return text;
}

static size_t block_len(const char *mode, const char *cipher)
{
    const struct mode_entry *m = ADAPTER_ENTRY(modes, mode);
    const struct nettle_row *row = nettle_row_named(cipher);
    if (m == NULL || row == NULL || (row->block_len != 16 && m->mode >= MODE_XTS && m->mode != MODE_CMAC)) {
        return 0;
    }
    return row->block_len;
}

static void *open_session(const char *mode, const char *cipher, int decrypting)
{
    struct session *s = calloc(1, sizeof *s);
    if (s != NULL) {
        s->mode = ((const struct mode_entry *)ADAPTER_ENTRY(modes, mode))->mode;
        s->cipher = nettle_row_named(cipher)->name;
        s->block_len = nettle_row_named(cipher)->block_len;
        s->decrypting = decrypting;
    }
    return s;
}

static void close_session(void *session)
{
    free(session);
}

/* The subkeys of a mac are of its key, its state is of a message. */
static void mac_init(struct session *s)
{
    if (s->block_len == 8) {
        cmac64_init(&s->of.cmac64.ctx);
    } else {
        cmac128_init(&s->of.cmac128.ctx);
    }
}

static void mac_setkey(struct session *s)
{
    if (s->block_len == 8) {
        cmac64_set_key(&s->of.cmac64.key, &s->key, s->row->encrypt);
    } else {
        cmac128_set_key(&s->of.cmac128.key, &s->key, s->row->encrypt);
    }
    mac_init(s);
}

/* ecb, cbc and xts decrypt with the inverse cipher, all else with the cipher. */
static int decrypts(const struct session *s)
{
    return s->decrypting && (s->mode == MODE_ECB || s->mode == MODE_CBC || s->mode == MODE_XTS);
}

static int setkey(void *session, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct session *s = session;
    /* xts takes two cipher keys, one for the tweak. */
    size_t len = s->mode == MODE_XTS ? key_len / 2 : key_len;
    const struct nettle_row *row = nettle_row_for(s->cipher, len);
    union expanded tried;
    if (row == NULL || (s->mode == MODE_XTS && key_len % 2 != 0)) {
        return SUBJECT_UNSUPPORTED;
    }
    int good = row->expand(&tried, len, key, decrypts(s));
    if (!good && (policy & SUBJECT_POLICY_WEAK_SUBKEY) != 0) {
        return SUBJECT_WEAK_KEY;
    }
    s->row = row;
    s->key = tried;
    if (s->mode == MODE_XTS) {
        (void)row->expand(&s->of.tweak, len, key + len, 0);
    } else if (s->mode == MODE_CMAC) {
        mac_setkey(s);
    } else if (s->mode == MODE_GCM) {
        nettle_gcm_setkey(s, key, len);
    }
    return SUBJECT_OK;
}

static int setiv(void *session, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths)
{
    struct session *s = session;
    if (s->mode == MODE_CCM || s->mode == MODE_GCM) {
        return nettle_aead_setiv(s, iv, iv_len, lengths);
    }
    /* It is not told how long an iv is. */
    if (iv_len != (s->mode == MODE_ECB || s->mode == MODE_CMAC ? 0 : s->block_len)) {
        return SUBJECT_UNSUPPORTED;
    }
    if (s->mode == MODE_CMAC) {
        mac_init(s);
    } else if (iv_len > 0) {
        memcpy(s->iv, iv, iv_len);
    }
    return SUBJECT_OK;
}

/* nettle has functions of their own for cbc encryption with AES, and the general one. */
static void cbc(struct session *s, uint8_t *dst, const uint8_t *src, size_t len)
{
    if (s->decrypting) {
        cbc_decrypt(&s->key, s->row->decrypt, s->block_len, s->iv, len, dst, src);
    } else if (s->row->gcm == &nettle_gcm_aes128) {
        cbc_aes128_encrypt(&s->key.aes128, s->iv, len, dst, src);
    } else if (s->row->gcm == &nettle_gcm_aes192) {
        cbc_aes192_encrypt(&s->key.aes192, s->iv, len, dst, src);
    } else if (s->row->gcm == &nettle_gcm_aes256) {
        cbc_aes256_encrypt(&s->key.aes256, s->iv, len, dst, src);
    } else {
        cbc_encrypt(&s->key, s->row->encrypt, s->block_len, s->iv, len, dst, src);
    }
}

static void xts(const struct session *s, uint8_t *dst, const uint8_t *src, size_t len)
{
    if (s->decrypting) {
        xts_decrypt_message(&s->key, &s->of.tweak, s->row->decrypt, s->row->encrypt, s->iv, len, dst, src);
    } else {
        xts_encrypt_message(&s->key, &s->of.tweak, s->row->encrypt, s->iv, len, dst, src);
    }
}

static void mac_update(struct session *s, const uint8_t *src, size_t len)
{
    if (s->block_len == 8) {
        cmac64_update(&s->of.cmac64.ctx, &s->key, s->row->encrypt, len, src);
    } else {
        cmac128_update(&s->of.cmac128.ctx, &s->key, s->row->encrypt, len, src);
    }
}

static int update(void *session, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    struct session *s = session;
    const struct nettle_row *row = s->row;
    size_t partial = len % s->block_len;
    /* Whole blocks, but for the last call of a message in a mode that takes a part of one. */
    if (s->mode != MODE_CMAC && partial != 0 && (!last || s->mode <= MODE_CBC)) {
        return SUBJECT_UNSUPPORTED;
    }
    switch (s->mode) {
    case MODE_ECB: (s->decrypting ? row->decrypt : row->encrypt)(&s->key, len, dst, src); break;
    case MODE_CBC: cbc(s, dst, src, len); break;
    case MODE_CFB:
        (s->decrypting ? cfb_decrypt : cfb_encrypt)(&s->key, row->encrypt, s->block_len, s->iv, len, dst, src);
        break;
    case MODE_CTR: ctr_crypt(&s->key, row->encrypt, s->block_len, s->iv, len, dst, src); break;
    case MODE_XTS:
        if (len < XTS_BLOCK_SIZE) {
            return SUBJECT_UNSUPPORTED;
        }
        xts(s, dst, src, len);
        break;
    case MODE_CMAC: mac_update(s, src, len); break;
    case MODE_CCM:
    case MODE_GCM: return nettle_aead_update(s, dst, src, len);
    }
    return SUBJECT_OK;
}

static int final(void *session)
{
    nettle_aead_final(session);
    return SUBJECT_OK;
}

static int tag(void *session, uint8_t *bytes, size_t len)
{
    struct session *s = session;
    uint8_t computed[SUBJECT_MAX_BLOCK_LEN];
    if (len > s->block_len || (s->mode == MODE_CMAC && len != s->block_len)) {
        return SUBJECT_UNSUPPORTED;
    }
    if (s->mode != MODE_CMAC) {
        nettle_aead_tag(s, computed, len);
    } else if (s->block_len == 8) {
        cmac64_digest(&s->of.cmac64.ctx, &s->of.cmac64.key, &s->key, s->row->encrypt, (unsigned)len, computed);
    } else {
        cmac128_digest(&s->of.cmac128.ctx, &s->of.cmac128.key, &s->key, s->row->encrypt, (unsigned)len, computed);
    }
    if (s->decrypting && s->mode != MODE_CMAC) {
        return memcmp(computed, bytes, len) == 0 ? SUBJECT_OK : SUBJECT_BAD_TAG;
    }
    memcpy(bytes, computed, len);
    return SUBJECT_OK;
}

static size_t iv_out(void *session, uint8_t *iv)
{
    const struct session *s = session;
    if (s->mode != MODE_CBC && s->mode != MODE_CFB && s->mode != MODE_CTR) {
        return 0;
    }
    memcpy(iv, s->iv, s->block_len);
    return s->block_len;
}

static int reinit(void *session)
{
    struct session *s = session;
    if (s->mode == MODE_CMAC) {
        mac_init(s);
    }
    return SUBJECT_OK; /* every other mode begins anew with the iv */
}

static void *clone(const void *session)
{
    struct session *s = malloc(sizeof *s);
    if (s != NULL) {
        *s = *(const struct session *)session;
    }
    return s;
}

const struct subject_session PROVIDER_SESSION = {
    ADAPTER_FUNCTIONS,
    .aad = nettle_aead_aad,
    .clone = clone,
};
