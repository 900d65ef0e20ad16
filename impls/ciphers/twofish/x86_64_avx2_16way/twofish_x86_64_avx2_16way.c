/* SPDX-License-Identifier: Apache-2.0
 *
 * Twofish with AVX2: as with AVX, in groups of eight blocks. Look-ups are what takes the time (a gather is slower than
 * eight loads), so that what this saves is half of the vector instructions between them. Fewer than 16 blocks go by threes
 * and ones.
 */
#include "twofish_lookup.h"
#include "twofish_tabled.h"

#define WAYS 16u
#define GROUP_BYTES 128u
#define NEEDED (SUBJECT_X86_AVX | SUBJECT_X86_AVX2)

typedef __m256i vec;
#define VEC(op) _mm256_##op
#define vec_xor _mm256_xor_si256
#define vec_or _mm256_or_si256

static inline vec vec_g(const struct tabled_ctx *ctx, vec x)
{
    const __m128i low = four_g(ctx, _mm256_castsi256_si128(x));

    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), four_g(ctx, _mm256_extracti128_si256(x, 1)), 1);
}

static inline vec vec_g_rotated(const struct tabled_ctx *ctx, vec x)
{
    const __m128i low = four_g_rotated(ctx, _mm256_castsi256_si128(x)),
                  high = four_g_rotated(ctx, _mm256_extracti128_si256(x, 1));

    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* A row is two neighbouring blocks. */
static inline vec load_row(const uint8_t *src, unsigned i, const uint32_t *k)
{
    return _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)(src + 32 * i)),
                            _mm256_broadcastsi128_si256(load_words(k)));
}

static inline void store_row(uint8_t *dst, unsigned i, vec v, const uint32_t *k)
{
    const vec whitening = _mm256_broadcastsi128_si256(load_words(k));

    _mm256_storeu_si256((__m256i *)(void *)(dst + 32 * i), _mm256_xor_si256(v, whitening));
}

#include "twofish_groups.h"

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks >= WAYS; num_blocks -= WAYS, dst += 16 * WAYS, src += 16 * WAYS) {
        SUBJECT_PATH("16way");
        encrypt_groups(ctx, dst, src, 2);
    }
    encrypt_few(ctx, dst, src, num_blocks);
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks >= WAYS; num_blocks -= WAYS, dst += 16 * WAYS, src += 16 * WAYS) {
        SUBJECT_PATH("16way");
        decrypt_groups(ctx, dst, src, 2);
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

const struct subject_leaf *twofish_x86_64_avx2_16way(uint64_t features);

const struct subject_leaf *twofish_x86_64_avx2_16way(uint64_t features)
{
    return (features & NEEDED) == NEEDED ? &leaf : NULL;
}
