/* SPDX-License-Identifier: Apache-2.0
 *
 * Twofish with AVX: groups of four blocks, look-ups by general registers. Four groups go side by side, of the rest two;
 * fewer than eight blocks go by threes and ones.
 */
#include "twofish_lookup.h"
#include "twofish_tabled.h"

#define WAYS 16u
#define NARROW 8u
#define GROUP_BYTES 64u

typedef __m128i vec;
#define VEC(op) _mm_##op
#define vec_xor _mm_xor_si128
#define vec_or _mm_or_si128
#define vec_g four_g
#define vec_g_rotated four_g_rotated

static inline vec load_row(const uint8_t *src, unsigned i, const uint32_t *k)
{
    return _mm_xor_si128(load_words(src + 16 * i), load_words(k));
}

static inline void store_row(uint8_t *dst, unsigned i, vec v, const uint32_t *k)
{
    _mm_storeu_si128((__m128i *)(void *)(dst + 16 * i), _mm_xor_si128(v, load_words(k)));
}

#include "twofish_groups.h"

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks >= WAYS; num_blocks -= WAYS, dst += 16 * WAYS, src += 16 * WAYS) {
        SUBJECT_PATH("16way");
        encrypt_groups(ctx, dst, src, 4);
    }
    if (num_blocks >= NARROW) {
        SUBJECT_PATH("8way");
        encrypt_groups(ctx, dst, src, 2);
        num_blocks -= NARROW;
        dst += 16 * NARROW;
        src += 16 * NARROW;
    }
    encrypt_few(ctx, dst, src, num_blocks);
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks >= WAYS; num_blocks -= WAYS, dst += 16 * WAYS, src += 16 * WAYS) {
        SUBJECT_PATH("16way");
        decrypt_groups(ctx, dst, src, 4);
    }
    if (num_blocks >= NARROW) {
        SUBJECT_PATH("8way");
        decrypt_groups(ctx, dst, src, 2);
        num_blocks -= NARROW;
        dst += 16 * NARROW;
        src += 16 * NARROW;
    }
    decrypt_few(ctx, dst, src, num_blocks);
}

#define FUSED_RUN 48u
#include "twofish_fused.h"

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = WAYS,
    .ctx_len = sizeof(struct tabled_ctx),
    .ctx_align = _Alignof(struct tabled_ctx),
    .setkey = tabled_setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
    .ecb = {ecb_encrypt, ecb_decrypt},
    .cbc = {NULL, cbc_decrypt}, /* encryption is one block at a time, fused or not; cfb's too */
    .cfb = {NULL, cfb_decrypt},
    .ctr = {ctr_crypt, ctr_crypt},
    .xts_encrypt = xts_encrypt,
    .xts_decrypt = xts_decrypt,
    .lrw_encrypt = lrw_encrypt,
    .lrw_decrypt = lrw_decrypt,
};

const struct subject_leaf *twofish_x86_64_avx_8way(uint64_t features);

const struct subject_leaf *twofish_x86_64_avx_8way(uint64_t features)
{
    return (features & SUBJECT_X86_AVX) != 0 ? &leaf : NULL;
}
