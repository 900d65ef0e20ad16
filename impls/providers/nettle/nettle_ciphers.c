/* SPDX-License-Identifier: Apache-2.0
 * nettle's block ciphers, one row for each that has functions of its own. A function of a cipher is cast to one of any
 * cipher, as the macros of nettle's headers do. */
#include "nettle_session.h"

static int expand_aes128(union expanded *expanded, size_t key_len, const uint8_t *key, int inverse)
{
    (void)key_len;
    (inverse ? aes128_set_decrypt_key : aes128_set_encrypt_key)(&expanded->aes128, key);
    return 1;
}

static int expand_aes192(union expanded *expanded, size_t key_len, const uint8_t *key, int inverse)
{
    (void)key_len;
    (inverse ? aes192_set_decrypt_key : aes192_set_encrypt_key)(&expanded->aes192, key);
    return 1;
}

static int expand_aes256(union expanded *expanded, size_t key_len, const uint8_t *key, int inverse)
{
    (void)key_len;
    (inverse ? aes256_set_decrypt_key : aes256_set_encrypt_key)(&expanded->aes256, key);
    return 1;
}

static int expand_cast128(union expanded *expanded, size_t key_len, const uint8_t *key, int inverse)
{
    (void)inverse;
    cast5_set_key(&expanded->cast128, key_len, key);
    return 1;
}

static int expand_des3(union expanded *expanded, size_t key_len, const uint8_t *key, int inverse)
{
    (void)key_len;
    (void)inverse;
    return des3_set_key(&expanded->des3, key);
}

static int expand_serpent(union expanded *expanded, size_t key_len, const uint8_t *key, int inverse)
{
    (void)inverse;
    serpent_set_key(&expanded->serpent, key_len, key);
    return 1;
}

static int expand_twofish(union expanded *expanded, size_t key_len, const uint8_t *key, int inverse)
{
    (void)inverse;
    twofish_set_key(&expanded->twofish, key_len, key);
    return 1;
}

#if NETTLE_HAS_SM4
static int expand_sm4(union expanded *expanded, size_t key_len, const uint8_t *key, int inverse)
{
    (void)key_len;
    (inverse ? sm4_set_decrypt_key : sm4_set_encrypt_key)(&expanded->sm4, key);
    return 1;
}
#endif

#define FUNCTIONS(encrypt, decrypt) (nettle_cipher_func *)(encrypt), (nettle_cipher_func *)(decrypt)

static const struct nettle_row rows[] = {
    {"aes", 16, 16, 16, expand_aes128, FUNCTIONS(aes128_encrypt, aes128_decrypt), &nettle_gcm_aes128},
    {"aes", 24, 24, 16, expand_aes192, FUNCTIONS(aes192_encrypt, aes192_decrypt), &nettle_gcm_aes192},
    {"aes", 32, 32, 16, expand_aes256, FUNCTIONS(aes256_encrypt, aes256_decrypt), &nettle_gcm_aes256},
    {"cast5", CAST5_MIN_KEY_SIZE, CAST5_MAX_KEY_SIZE, 8, expand_cast128, FUNCTIONS(cast128_encrypt, cast128_decrypt),
     NULL},
    {"des3_ede", 24, 24, 8, expand_des3, FUNCTIONS(des3_encrypt, des3_decrypt), NULL},
    {"serpent", SERPENT_MIN_KEY_SIZE, SERPENT_MAX_KEY_SIZE, 16, expand_serpent,
     FUNCTIONS(serpent_encrypt, serpent_decrypt), NULL},
    {"twofish", 16, 16, 16, expand_twofish, FUNCTIONS(twofish_encrypt, twofish_decrypt), NULL},
    {"twofish", 24, 24, 16, expand_twofish, FUNCTIONS(twofish_encrypt, twofish_decrypt), NULL},
    {"twofish", 32, 32, 16, expand_twofish, FUNCTIONS(twofish_encrypt, twofish_decrypt), NULL},
#if NETTLE_HAS_SM4
    {"sm4", 16, 16, 16, expand_sm4, FUNCTIONS(sm4_crypt, sm4_crypt), &nettle_gcm_sm4},
#endif
};

const struct nettle_row *nettle_row_named(const char *name)
{
    return ADAPTER_ENTRY(rows, name);
}

const struct nettle_row *nettle_row_for(const char *name, size_t key_len)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, name) == 0 && key_len >= rows[i].least_len && key_len <= rows[i].most_len) {
            return &rows[i];
        }
    }
    return NULL;
}
