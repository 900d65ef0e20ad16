/* SPDX-License-Identifier: Apache-2.0
 * A leaf of ctr(sm4) whose answer rests on an assembly function (asm_leaf.S), built for either convention. */
#include "fault.h"
#include "sm4.h"
#include "subject_asm.h"

uint64_t SUBJECT_ASM_ABI planted_sum(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);

static int setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    (void)policy;
    return sm4_setkey(ctx, key, key_len);
}

static void ctr(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    uint64_t first = (uint64_t)iv[15] << 40;
    SUBJECT_PATH("ctr");
    sm4_ctr(ctx, dst, src, len, iv);
    if (len > 0 && SUBJECT_ASM_CALL(planted_sum)(first, 2, 3, 4, 5, 6) != first + 320) {
        dst[0] ^= 1;
    }
}

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (size_t i = 0; i < num_blocks; i++) {
        sm4_block(ctx, dst + 16 * i, src + 16 * i, 0);
    }
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (size_t i = 0; i < num_blocks; i++) {
        sm4_block(ctx, dst + 16 * i, src + 16 * i, 1);
    }
}

const struct subject_leaf *GETTER(uint64_t features);

const struct subject_leaf *GETTER(uint64_t features)
{
    static const struct subject_leaf leaf = {
        .contract = SUBJECT_CONTRACT,
        .block_len = 16,
        .ways = 1,
        .ctx_len = sizeof(struct sm4),
        .ctx_align = _Alignof(struct sm4),
        .setkey = setkey,
        .encrypt_blocks = encrypt_blocks,
        .decrypt_blocks = decrypt_blocks,
        .ctr = {ctr, ctr},
    };
    return (features & NEEDS) == NEEDS ? &leaf : NULL;
}
