/* SPDX-License-Identifier: Apache-2.0
 *
 * Serpent in portable C, one block at a time: serpent_block.h says how.
 */
#include "serpent_block.h"
#include "subject_wipe.h"

static int serpent_setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    (void)policy;
    return serpent_expand_key(ctx, key, key_len);
}

static void serpent_encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks > 0; num_blocks--) {
        SUBJECT_PATH("block");
        serpent_encrypt_block(ctx, dst, src);
        dst += 16;
        src += 16;
    }
}

static void serpent_decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks > 0; num_blocks--) {
        SUBJECT_PATH("block");
        serpent_decrypt_block(ctx, dst, src);
        dst += 16;
        src += 16;
    }
}

SUBJECT_WIPE(wipe_block, SERPENT_BLOCK_FRAME)
SUBJECT_WIPE(wipe_keys, SERPENT_KEY_FRAME)
SUBJECT_WIPED_SETKEY(wiped_setkey, serpent_setkey, wipe_keys)
SUBJECT_WIPED_BLOCKS(wiped_encrypt_blocks, serpent_encrypt_blocks, wipe_block)
SUBJECT_WIPED_BLOCKS(wiped_decrypt_blocks, serpent_decrypt_blocks, wipe_block)

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = 16,
    .ways = 1,
    .ctx_len = sizeof(struct serpent_keys),
    .ctx_align = sizeof(uint32_t),
    .setkey = wiped_setkey,
    .encrypt_blocks = wiped_encrypt_blocks,
    .decrypt_blocks = wiped_decrypt_blocks,
};

const struct subject_leaf *serpent_generic(uint64_t features);

const struct subject_leaf *serpent_generic(uint64_t features)
{
    (void)features;
    return &leaf;
}
