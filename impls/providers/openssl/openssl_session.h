/* SPDX-License-Identifier: Apache-2.0
 * A session over EVP, for the modes without tags (adapter.c) and those with (openssl_aead.c). */
#ifndef CROSSLANE_OPENSSL_SESSION_H
#define CROSSLANE_OPENSSL_SESSION_H

#include <openssl/evp.h>

#include "adapter.h"

#define MAX_KEY_LEN 32u
#define MAX_CHUNK ((size_t)1 << 30) /* EVP counts in int */

enum kind { KIND_PLAIN, KIND_MAC, KIND_CCM, KIND_GCM };

struct mode_entry {
    const char *name;
    const char *evp; /* the end of EVP's name of the cipher */
    enum kind kind;
    size_t num_keys;
};

struct cipher_entry {
    const char *name;
    const char *evp;      /* the begin of it */
    size_t usual_key_len; /* of the cipher, bytes */
    int key_len_in_name;
    size_t block_len;
};

struct session {
    const struct mode_entry *mode;
    const struct cipher_entry *cipher;
    int decrypting;
    EVP_CIPHER_CTX *ctx; /* NULL before the first key and for cmac */
    EVP_MAC_CTX *mac;
    /* ccm takes the key with the lengths of nonce and tag, and all associated data at once. */
    uint8_t key[MAX_KEY_LEN];
    struct adapter_message message;
    int expected; /* ccm: the tag is known */
};

int openssl_begin(struct session *s, const uint8_t *iv);
int openssl_aead_setiv(struct session *s, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths);
int openssl_expect(void *session, const uint8_t *tag, size_t tag_len);
int openssl_aad(void *session, const uint8_t *data, size_t len);
int openssl_ccm_update(struct session *s, uint8_t *dst, const uint8_t *src, size_t len);
int openssl_gcm_compare(struct session *s, uint8_t *bytes, size_t len);

#endif
