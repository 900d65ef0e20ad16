/* SPDX-License-Identifier: Apache-2.0
 * libgcrypt through its cipher handles. Disabling all hardware features leaves the assembly that needs none:
 * src/crosslane/bench/peers.toml says where that is. */
#include <stdlib.h>

#include <gcrypt.h>

#include "peers.h"

struct handle {
    gcry_cipher_hd_t hd;
    const struct bench_job *job;
    int mode;
};

static const struct {
    const char *cipher;
    size_t key_len;
    int algorithm;
} ciphers[] = {
    {"aes", 16, GCRY_CIPHER_AES128},
    {"aes", 24, GCRY_CIPHER_AES192},
    {"aes", 32, GCRY_CIPHER_AES256},
    {"cast5", 16, GCRY_CIPHER_CAST5},
    {"des3_ede", 24, GCRY_CIPHER_3DES},
    {"serpent", 16, GCRY_CIPHER_SERPENT128},
    {"serpent", 24, GCRY_CIPHER_SERPENT192},
    {"serpent", 32, GCRY_CIPHER_SERPENT256},
    {"sm4", 16, GCRY_CIPHER_SM4},
    {"twofish", 16, GCRY_CIPHER_TWOFISH128},
    {"twofish", 32, GCRY_CIPHER_TWOFISH},
};

static const struct {
    const char *name;
    int mode;
} modes[] = {
    {"ecb", GCRY_CIPHER_MODE_ECB}, {"cbc", GCRY_CIPHER_MODE_CBC}, {"cfb", GCRY_CIPHER_MODE_CFB},
    {"ofb", GCRY_CIPHER_MODE_OFB}, {"ctr", GCRY_CIPHER_MODE_CTR}, {"xts", GCRY_CIPHER_MODE_XTS},
};

const char *peer_gcrypt_version(void)
{
    return gcry_check_version(NULL);
}

static void start(const struct bench_job *job)
{
    if (!job->peer_hardware) {
        (void)gcry_control(GCRYCTL_DISABLE_HWF, "all", NULL);
    }
    if (gcry_check_version(GCRYPT_VERSION) == NULL) {
        bench_fail("the libgcrypt that runs is older than its headers; install one version of libgcrypt20-dev");
    }
    (void)gcry_control(GCRYCTL_DISABLE_SECMEM, 0);
    (void)gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
}

void *peer_gcrypt_open(const struct bench_job *job)
{
    int algorithm = GCRY_CIPHER_NONE, mode = GCRY_CIPHER_MODE_NONE;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        mode = strcmp(modes[i].name, job->mode) == 0 ? modes[i].mode : mode;
    }
    size_t key_len = mode == GCRY_CIPHER_MODE_XTS ? job->key_len / 2 : job->key_len;
    for (size_t i = 0; i < sizeof ciphers / sizeof ciphers[0]; i++) {
        if (strcmp(ciphers[i].cipher, job->cipher) == 0 && ciphers[i].key_len == key_len) {
            algorithm = ciphers[i].algorithm;
        }
    }
    if (algorithm == GCRY_CIPHER_NONE || mode == GCRY_CIPHER_MODE_NONE) {
        return NULL;
    }
    start(job);
    struct handle *h = calloc(1, sizeof *h);
    if (h == NULL || gcry_cipher_open(&h->hd, algorithm, mode, 0) != 0 ||
        gcry_cipher_setkey(h->hd, job->key, job->key_len) != 0) {
        free(h);
        return NULL;
    }
    h->job = job;
    h->mode = mode;
    return h;
}

int peer_gcrypt_message(void *self, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *tag)
{
    struct handle *h = self;
    const struct bench_job *job = h->job;
    gcry_error_t error = 0;
    (void)tag;
    if (h->mode == GCRY_CIPHER_MODE_CTR) {
        error = gcry_cipher_setctr(h->hd, job->iv, job->iv_len);
    } else if (h->mode != GCRY_CIPHER_MODE_ECB) {
        error = gcry_cipher_setiv(h->hd, job->iv, job->iv_len);
    }
    if (error == 0) {
        error = job->decrypting ? gcry_cipher_decrypt(h->hd, dst, len, src, len)
                                : gcry_cipher_encrypt(h->hd, dst, len, src, len);
    }
    return error == 0 ? 0 : 255;
}
