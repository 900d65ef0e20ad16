/* SPDX-License-Identifier: Apache-2.0
 * nettle through its cipher tables and generic mode functions. NETTLE_FAT_OVERRIDE, set by whoever starts the program,
 * takes AES-NI away; src/crosslane/bench/peers.toml says where assembly is left. */
#include <stdio.h>
#include <stdlib.h>

#include <nettle/cbc.h>
#include <nettle/ctr.h>
#include <nettle/des.h>
#include <nettle/nettle-meta.h>
#include <nettle/version.h>

#include "peers.h"

enum form { ECB, CBC, CTR, NO_FORM };

struct handle {
    const struct nettle_cipher *cipher;
    const struct bench_job *job;
    enum form form;
    void *ctx;
};

/* nettle's table of ciphers has no triple DES, whose setkey refuses weak keys. */
static void des3_key(void *ctx, const uint8_t *key)
{
    (void)des3_set_key(ctx, key);
}

static void des3_encrypt_blocks(const void *ctx, size_t len, uint8_t *dst, const uint8_t *src)
{
    des3_encrypt(ctx, len, dst, src);
}

static void des3_decrypt_blocks(const void *ctx, size_t len, uint8_t *dst, const uint8_t *src)
{
    des3_decrypt(ctx, len, dst, src);
}

static const struct nettle_cipher des3_cipher = {
    "des3",   sizeof(struct des3_ctx), DES3_BLOCK_SIZE,     DES3_KEY_SIZE, des3_key,
    des3_key, des3_encrypt_blocks,     des3_decrypt_blocks,
};

static const struct {
    const char *cipher;
    const struct nettle_cipher *table;
} ciphers[] = {
    {"aes", &nettle_aes128},         {"aes", &nettle_aes192},         {"aes", &nettle_aes256},
    {"cast5", &nettle_cast128},      {"des3_ede", &des3_cipher},      {"serpent", &nettle_serpent128},
    {"serpent", &nettle_serpent192}, {"serpent", &nettle_serpent256}, {"twofish", &nettle_twofish128},
    {"twofish", &nettle_twofish192}, {"twofish", &nettle_twofish256},
};

const char *peer_nettle_version(void)
{
    static char text[16];
    (void)snprintf(text, sizeof text, "%d.%d", nettle_version_major(), nettle_version_minor());
    return text;
}

static enum form form_named(const char *mode)
{
    static const char *const names[] = {"ecb", "cbc", "ctr"};
    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(mode, names[i]) == 0) {
            return (enum form)i;
        }
    }
    return NO_FORM;
}

void *peer_nettle_open(const struct bench_job *job)
{
    const struct nettle_cipher *table = NULL;
    enum form form = form_named(job->mode);
    for (size_t i = 0; i < sizeof ciphers / sizeof ciphers[0]; i++) {
        if (strcmp(ciphers[i].cipher, job->cipher) == 0 && ciphers[i].table->key_size == job->key_len) {
            table = ciphers[i].table;
        }
    }
    if (table == NULL || form == NO_FORM) {
        return NULL;
    }
    struct handle *h = calloc(1, sizeof *h);
    void *ctx = aligned_alloc(64, (table->context_size + 63) / 64 * 64);
    if (h == NULL || ctx == NULL) {
        bench_fail("there is no memory for a context; free some");
    }
    *h = (struct handle){table, job, form, ctx};
    (job->decrypting && form != CTR ? table->set_decrypt_key : table->set_encrypt_key)(ctx, job->key);
    return h;
}

int peer_nettle_message(void *self, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *tag)
{
    const struct handle *h = self;
    const struct nettle_cipher *c = h->cipher;
    uint8_t iv[SUBJECT_MAX_BLOCK_LEN];
    (void)tag;
    memcpy(iv, h->job->iv, c->block_size);
    if (h->form == CTR) {
        ctr_crypt(h->ctx, c->encrypt, c->block_size, iv, len, dst, src);
    } else if (h->form == CBC && h->job->decrypting) {
        cbc_decrypt(h->ctx, c->decrypt, c->block_size, iv, len, dst, src);
    } else if (h->form == CBC) {
        cbc_encrypt(h->ctx, c->encrypt, c->block_size, iv, len, dst, src);
    } else {
        (h->job->decrypting ? c->decrypt : c->encrypt)(h->ctx, len, dst, src);
    }
    return 0;
}
