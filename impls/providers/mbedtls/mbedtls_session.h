/* SPDX-License-Identifier: Apache-2.0
 * A session over Mbed TLS, for the modes without associated data (adapter.c) and those with (mbedtls_aead.c). */
#ifndef CROSSLANE_MBEDTLS_SESSION_H
#define CROSSLANE_MBEDTLS_SESSION_H

#include <mbedtls/aes.h>
#include <mbedtls/ccm.h>
#include <mbedtls/cipher.h>
#include <mbedtls/cmac.h>
#include <mbedtls/des.h>
#include <mbedtls/gcm.h>
#include <mbedtls/version.h>

#include "adapter.h"

#define MAX_NONCE_LEN 128u

enum mode { MODE_ECB, MODE_CBC, MODE_CFB, MODE_OFB, MODE_CTR, MODE_XTS, MODE_CMAC, MODE_CCM, MODE_GCM };

/* Contexts point into themselves: they stay where they are. */
union keyed {
    mbedtls_aes_context aes;
    mbedtls_des3_context des3;
    mbedtls_aes_xts_context xts;
    mbedtls_cipher_context_t mac;
    mbedtls_ccm_context ccm;
    mbedtls_gcm_context gcm;
};

struct session {
    enum mode mode;
    int is_aes; /* triple DES otherwise */
    size_t block_len;
    int decrypting;
    union keyed *keyed; /* NULL before the first key */
    /* What the library leaves to its caller to keep between calls. */
    uint8_t iv[SUBJECT_MAX_BLOCK_LEN];
    uint8_t stream[SUBJECT_MAX_BLOCK_LEN]; /* ctr */
    size_t offset;                         /* cfb, ofb, ctr: bytes of a block that are spent */
    /* ccm is one call, gcm before version 3 takes the iv and all associated data at once. */
    struct adapter_message message;
    uint8_t nonce[MAX_NONCE_LEN];
    size_t nonce_len;
};

int mbedtls_aead_setiv(struct session *s, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths);
int mbedtls_aead_expect(void *session, const uint8_t *tag, size_t tag_len);
int mbedtls_aead_aad(void *session, const uint8_t *data, size_t len);
int mbedtls_aead_update(struct session *s, uint8_t *dst, const uint8_t *src, size_t len);
int mbedtls_aead_final(struct session *s);
int mbedtls_aead_tag(struct session *s, uint8_t *bytes, size_t len);

#endif
