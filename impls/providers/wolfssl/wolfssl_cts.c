/* SPDX-License-Identifier: Apache-2.0
 * CBC with ciphertext stealing, which wolfSSL has under the names of OpenSSL's older interface alone. */
#include "wolfssl_session.h"

#include <stdlib.h>
#include <wolfssl/openssl/aes.h>
#include <wolfssl/openssl/modes.h>

#ifdef HAVE_CTS

struct wolfssl_cts {
    WOLFSSL_AES_KEY key;
    int decrypting;
};

int wolfssl_has_cts(void)
{
    return 1;
}

struct wolfssl_cts *wolfssl_cts_new(const uint8_t *key, size_t key_len, int decrypting)
{
    struct wolfssl_cts *cts = aligned_alloc(_Alignof(struct wolfssl_cts), sizeof *cts);
    int bits = 8 * (int)key_len;
    if (cts == NULL) {
        return NULL;
    }
    cts->decrypting = decrypting;
    if ((decrypting ? wolfSSL_AES_set_decrypt_key(key, bits, &cts->key)
                    : wolfSSL_AES_set_encrypt_key(key, bits, &cts->key)) != 0) {
        free(cts);
        return NULL;
    }
    return cts;
}

/* The library's cbc, in the form in which it takes a cbc; its key is not const, and cbc has its own iv in it. */
static void cbc(const unsigned char *in, unsigned char *out, size_t len, const void *key, unsigned char *iv, int enc)
{
    union {
        const void *given;
        WOLFSSL_AES_KEY *taken;
    } it = {key};
    wolfSSL_AES_cbc_encrypt(in, out, len, it.taken, iv, enc);
}

size_t wolfssl_cts_crypt(const struct wolfssl_cts *cts, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    return cts->decrypting ? wolfSSL_CRYPTO_cts128_decrypt(src, dst, len, &cts->key, iv, cbc)
                           : wolfSSL_CRYPTO_cts128_encrypt(src, dst, len, &cts->key, iv, cbc);
}

void wolfssl_cts_free(struct wolfssl_cts *cts)
{
    free(cts);
}

#else

int wolfssl_has_cts(void)
{
    return 0;
}

struct wolfssl_cts *wolfssl_cts_new(const uint8_t *key, size_t key_len, int decrypting)
{
    (void)key;
    (void)key_len;
    (void)decrypting;
    return NULL;
}

size_t wolfssl_cts_crypt(const struct wolfssl_cts *cts, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    (void)cts;
    (void)dst;
    (void)src;
    (void)len;
    (void)iv;
    return 0;
}

void wolfssl_cts_free(struct wolfssl_cts *cts)
{
    (void)cts;
}

#endif
