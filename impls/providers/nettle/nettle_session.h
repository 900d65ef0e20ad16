/* SPDX-License-Identifier: Apache-2.0
 * A session over nettle: its ciphers (nettle_ciphers.c), gcm and ccm (nettle_aead.c), all else (adapter.c). */
#ifndef CROSSLANE_NETTLE_SESSION_H
#define CROSSLANE_NETTLE_SESSION_H

#include <nettle/aes.h>
#include <nettle/cast128.h>
#include <nettle/ccm.h>
#include <nettle/cmac.h>
#include <nettle/des.h>
#include <nettle/gcm.h>
#include <nettle/nettle-meta.h>
#include <nettle/serpent.h>
#include <nettle/twofish.h>
#include <nettle/version.h>

#include "adapter.h"

#define NETTLE_HAS_SM4 (NETTLE_VERSION_MAJOR > 3 || (NETTLE_VERSION_MAJOR == 3 && NETTLE_VERSION_MINOR >= 9))
#if NETTLE_HAS_SM4
#include <nettle/sm4.h>
#endif

enum mode { MODE_ECB, MODE_CBC, MODE_CFB, MODE_CTR, MODE_XTS, MODE_CMAC, MODE_CCM, MODE_GCM };

union expanded {
    struct aes128_ctx aes128;
    struct aes192_ctx aes192;
    struct aes256_ctx aes256;
    struct cast128_ctx cast128;
    struct des3_ctx des3;
    struct serpent_ctx serpent;
    struct twofish_ctx twofish;
#if NETTLE_HAS_SM4
    struct sm4_ctx sm4;
#endif
};

/* Expands a key, for decryption where `inverse` is not 0; 0 for a weak one, which is in force all the same. */
typedef int nettle_expand_fn(union expanded *expanded, size_t key_len, const uint8_t *key, int inverse);

/* nettle has functions of their own for each length of an AES key. */
struct nettle_row {
    const char *name;
    size_t least_len, most_len; /* bytes of a key */
    size_t block_len;
    nettle_expand_fn *expand;
    nettle_cipher_func *encrypt, *decrypt;
    const struct nettle_aead *gcm; /* NULL where nettle has gcm of the cipher by its general functions alone */
};

struct any_gcm GCM_CTX(union expanded);

/* The structures that nettle_gcm_aes128 and the like work on, all laid out by GCM_CTX. */
union gcm {
    struct any_gcm any;
    struct gcm_aes128_ctx aes128;
    struct gcm_aes192_ctx aes192;
    struct gcm_aes256_ctx aes256;
#if NETTLE_HAS_SM4
    struct gcm_sm4_ctx sm4;
#endif
};

/* Plain bytes, free to copy. */
struct session {
    enum mode mode;
    const char *cipher;
    size_t block_len;
    int decrypting;
    const struct nettle_row *row; /* NULL before the first key */
    union expanded key;
    uint8_t iv[SUBJECT_MAX_BLOCK_LEN];
    /* gcm takes associated data in whole blocks, but for its end. */
    uint8_t pending[GCM_BLOCK_SIZE];
    size_t num_pending;
    union {
        union expanded tweak; /* xts: the second key */
        union gcm gcm;        /* has its own cipher key */
        struct ccm_ctx ccm;
        struct {
            struct cmac128_key key;
            struct cmac128_ctx ctx;
        } cmac128;
        struct {
            struct cmac64_key key;
            struct cmac64_ctx ctx;
        } cmac64;
    } of;
};

/* The first row of a cipher, or that for a key of this length; NULL where there is none. */
const struct nettle_row *nettle_row_named(const char *name);
const struct nettle_row *nettle_row_for(const char *name, size_t key_len);

void nettle_gcm_setkey(struct session *s, const uint8_t *key, size_t key_len);
int nettle_aead_setiv(struct session *s, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths);
int nettle_aead_aad(void *session, const uint8_t *data, size_t len);
int nettle_aead_update(struct session *s, uint8_t *dst, const uint8_t *src, size_t len);
void nettle_aead_final(struct session *s);
void nettle_aead_tag(struct session *s, uint8_t *computed, size_t len);

#endif
