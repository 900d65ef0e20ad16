/* SPDX-License-Identifier: Apache-2.0
 * Calls every function of every implementation in the program with nothing to do: data may be neither read nor written, and
 * the iv keeps its value. It says each call before it is made. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "shim_tables.h"

#define PAGE 65536u

static uint8_t *nowhere; /* in the middle of what no access survives */
static void *ctx;
static const char *driver;
static uint8_t iv[16];
static int failed;

static void begin(const char *what, size_t len)
{
    printf("%s %s %zu\n", driver, what, len);
    fflush(stdout);
    memset(iv, 0xa5, sizeof(iv));
}

static void end(void)
{
    for (size_t i = 0; i < sizeof(iv); i++) {
        if (iv[i] != 0xa5) {
            printf("changed the iv\n");
            failed = 1;
            return;
        }
    }
}

static void blocks(const char *what, subject_blocks_fn *function)
{
    begin(what, 0);
    function(ctx, nowhere, nowhere, 0);
}

static void mode(const char *what, struct subject_crypt functions, uint8_t *its_iv)
{
    subject_crypt_fn *both[2] = {functions.encrypt, functions.decrypt};

    for (size_t i = 0; i < 2; i++) {
        if (both[i] != NULL) {
            begin(what, 0);
            both[i](ctx, nowhere, nowhere, 0, its_iv);
            end();
        }
    }
}

/* Less than a block, too: the mode code refuses it, so that nothing else would show what is made of it. */
static void xts(const char *what, subject_xts_fn *function)
{
    if (function != NULL) {
        begin(what, 0);
        function(ctx, ctx, nowhere, nowhere, 0, iv);
        begin(what, 15);
        function(ctx, ctx, nowhere, nowhere, 15, iv);
        end();
    }
}

static void lrw(const char *what, subject_lrw_fn *function)
{
    static const uint8_t key2[16] = {1};

    if (function != NULL) {
        begin(what, 0);
        function(ctx, key2, nowhere, nowhere, 0, iv);
        end();
    }
}

static void all_of(const struct subject_leaf *leaf)
{
    static const uint8_t key[32] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe, 0x23, 0x45, 0x67, 0x89,
                                    0xab, 0xcd, 0xef, 0x01, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23};

    ctx = aligned_alloc(64, (leaf->ctx_len + 63u) / 64u * 64u);
    if (ctx == NULL || (leaf->setkey(ctx, key, 16, 0) != SUBJECT_OK && leaf->setkey(ctx, key, 24, 0) != SUBJECT_OK)) {
        printf("%s takes no key\n", driver);
        failed = 1;
        return;
    }
    blocks("encrypt_blocks", leaf->encrypt_blocks);
    blocks("decrypt_blocks", leaf->decrypt_blocks);
    mode("ecb", leaf->ecb, NULL);
    mode("cbc", leaf->cbc, iv);
    mode("cfb", leaf->cfb, iv);
    mode("ofb", leaf->ofb, iv);
    mode("ctr", leaf->ctr, iv);
    mode("cts_cbc", leaf->cts_cbc, iv);
    xts("xts encrypt", leaf->xts_encrypt);
    xts("xts decrypt", leaf->xts_decrypt);
    xts("xts_gb encrypt", leaf->xts_gb_encrypt);
    xts("xts_gb decrypt", leaf->xts_gb_decrypt);
    lrw("lrw encrypt", leaf->lrw_encrypt);
    lrw("lrw decrypt", leaf->lrw_decrypt);
    if (leaf->mac_update != NULL) {
        begin("mac_update", 0);
        leaf->mac_update(ctx, iv, nowhere, 0);
        end();
    }
    if (leaf->ghash != NULL) {
        begin("ghash", 0);
        leaf->ghash(key, iv, nowhere, 0);
        end();
    }
    free(ctx);
}

int main(void)
{
    uint8_t *pages = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (pages == MAP_FAILED) {
        return 2;
    }
    nowhere = pages + PAGE + PAGE / 2;
    for (const struct shim_implementation *item = shim_implementations; item->driver != NULL; item++) {
        const struct subject_leaf *leaf = item->getter(~UINT64_C(0));
        driver = item->driver;
        if (leaf == NULL) {
            printf("%s declines\n", driver);
            failed = 1;
        } else {
            all_of(leaf);
        }
    }
    return failed;
}
