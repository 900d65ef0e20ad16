/* SPDX-License-Identifier: Apache-2.0
 * A session over wolfCrypt: modes without associated data (adapter.c), ccm and gcm (wolfssl_aead.c), and cts_cbc of the
 * layer that looks like OpenSSL (wolfssl_cts.c). */
#ifndef CROSSLANE_WOLFSSL_SESSION_H
#define CROSSLANE_WOLFSSL_SESSION_H

#define WOLFSSL_OPTIONS_IGNORE_SYS /* else it defines what the compiler's command line should */
#include <wolfssl/options.h>

#include <wolfssl/wolfcrypt/settings.h>

#include <wolfssl/wolfcrypt/aes.h>
#include <wolfssl/wolfcrypt/cmac.h>
#include <wolfssl/wolfcrypt/des3.h>
#include <wolfssl/wolfcrypt/wc_port.h>

#include "adapter.h"

#define MAX_KEY_LEN 32u

enum mode { MODE_ECB, MODE_CBC, MODE_CFB, MODE_OFB, MODE_CTR, MODE_XTS, MODE_CTS, MODE_CMAC, MODE_CCM, MODE_GCM };

struct wolfssl_cts;

union keyed {
    Aes aes;
    Des3 des3;
    XtsAes xts;
    Cmac mac;
    struct wolfssl_cts *cts;
};

struct session {
    enum mode mode;
    int is_aes; /* triple DES otherwise */
    size_t block_len;
    int decrypting;
    union keyed *keyed; /* NULL before the first key */
    /* What the library leaves to its caller to keep between calls. */
    uint8_t key[MAX_KEY_LEN]; /* cmac: a tag ends its context */
    size_t key_len;
    uint8_t iv[SUBJECT_MAX_BLOCK_LEN];
    size_t iv_len;
    struct adapter_message message; /* ccm is one call */
};

int wolfssl_aead_setiv(struct session *s, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths);
int wolfssl_aead_expect(void *session, const uint8_t *tag, size_t tag_len);
int wolfssl_aead_aad(void *session, const uint8_t *data, size_t len);
int wolfssl_aead_update(struct session *s, uint8_t *dst, const uint8_t *src, size_t len);
int wolfssl_aead_final(const struct session *s);
int wolfssl_aead_tag(struct session *s, uint8_t *bytes, size_t len);

/* 0 where the library has been built without it. */
int wolfssl_has_cts(void);
/* NULL where the library does not take the key. */
struct wolfssl_cts *wolfssl_cts_new(const uint8_t *key, size_t key_len, int decrypting);
/* How many bytes were done; 0 where it refuses the length. */
size_t wolfssl_cts_crypt(const struct wolfssl_cts *cts, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv);
void wolfssl_cts_free(struct wolfssl_cts *cts);

#endif
