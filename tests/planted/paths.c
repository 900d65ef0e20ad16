/* SPDX-License-Identifier: Apache-2.0
 *
 * A leaf that tells by its output which paths it took: every byte is the set of them, 1 << the path's place in the list
 * below. What the traps report is compared with that.
 */
#include "fault.h"
#include "subject.h"

#define TAKE(bit, name)      \
    do {                     \
        SUBJECT_PATH(name);  \
        took |= 1u << (bit); \
    } while (0)

static int setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    (void)key;
    (void)policy;
    if (key_len != 16) {
        return SUBJECT_BAD_KEY_LEN;
    }
    memset(ctx, 1, 16);
    return SUBJECT_OK;
}

static void blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    (void)ctx;
    memmove(dst, src, 16 * num_blocks);
}

static void crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    unsigned took = 0;
    (void)ctx;
    (void)src;
    (void)iv;
    if (len == 0) {
        return;
    }
    if (len < 16) {
        TAKE(0, "short");
    }
    if (len >= 128) {
        TAKE(1, "wide");
    }
    if (len % 16 != 0) {
        TAKE(2, "tail");
    }
    if (len / 16 % 3 == 2) {
        TAKE(3, "third");
    }
    if (len >= 40 && len < 100) {
        TAKE(4, "middle");
    }
    if (len > ((size_t)1 << 40)) {
        TAKE(5, "never");
    }
    TAKE(6, "always");
    memset(dst, (int)took, len);
}

const struct subject_leaf *GETTER(uint64_t features);

const struct subject_leaf *GETTER(uint64_t features)
{
    static const struct subject_leaf leaf = {
        .contract = SUBJECT_CONTRACT,
        .block_len = 16,
        .ways = 1,
        .ctx_len = 16,
        .ctx_align = 1,
        .setkey = setkey,
        .encrypt_blocks = blocks,
        .decrypt_blocks = blocks,
        .ecb = {crypt, crypt},
        .ctr = {crypt, crypt},
    };
    (void)features;
    return &leaf;
}
