/* SPDX-License-Identifier: Apache-2.0
 *
 * Twofish with AVX2: as with AVX, in groups of eight blocks. Look-ups are what takes the time (a gather is slower than
 * eight loads), so what this saves are half of the vector instructions between them. The rest that fills no group goes
 * by threes and ones.
 */
#include "twofish_lookup.h"
#include "twofish_tabled.h"

#define WAYS 16u
#define NEEDED (SUBJECT_X86_AVX | SUBJECT_X86_AVX2)

struct group {
    __m256i a, b, c, d;
};

static inline __m256i eight_g(const struct tabled_ctx *ctx, __m256i x)
{
    const __m128i low = four_g(ctx, _mm256_castsi256_si128(x));

    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), four_g(ctx, _mm256_extracti128_si256(x, 1)), 1);
}

static inline __m256i eight_g_rotated(const struct tabled_ctx *ctx, __m256i x)
{
    const __m128i low = four_g_rotated(ctx, _mm256_castsi256_si128(x));

    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), four_g_rotated(ctx, _mm256_extracti128_si256(x, 1)), 1);
}

static inline __m256i broadcast(uint32_t v)
{
    return _mm256_set1_epi32((int)v);
}

static inline __m256i rotl1(__m256i v)
{
    return _mm256_or_si256(_mm256_add_epi32(v, v), _mm256_srli_epi32(v, 31));
}

static inline __m256i rotr1(__m256i v)
{
    return _mm256_or_si256(_mm256_srli_epi32(v, 1), _mm256_slli_epi32(v, 31));
}

/* One round: F of (a, b) goes into (c, d), and the halves change places. */
static inline void encrypt_group_round(const struct tabled_ctx *ctx, const uint32_t *k, struct group *x)
{
    const __m256i t1 = eight_g_rotated(ctx, x->b), sum = _mm256_add_epi32(eight_g(ctx, x->a), t1);
    const __m256i f0 = _mm256_add_epi32(sum, broadcast(k[0]));
    const __m256i f1 = _mm256_add_epi32(_mm256_add_epi32(sum, t1), broadcast(k[1]));

    *x = (struct group){rotr1(_mm256_xor_si256(x->c, f0)), _mm256_xor_si256(rotl1(x->d), f1), x->a, x->b};
}

static inline void decrypt_group_round(const struct tabled_ctx *ctx, const uint32_t *k, struct group *x)
{
    const __m256i t1 = eight_g_rotated(ctx, x->b), sum = _mm256_add_epi32(eight_g(ctx, x->a), t1);
    const __m256i f0 = _mm256_add_epi32(sum, broadcast(k[0]));
    const __m256i f1 = _mm256_add_epi32(_mm256_add_epi32(sum, t1), broadcast(k[1]));

    *x = (struct group){_mm256_xor_si256(rotl1(x->c), f0), rotr1(_mm256_xor_si256(x->d, f1)), x->a, x->b};
}

/* Rows to columns: word j of the four blocks in each half from or to one register. */
static inline struct group transposed(__m256i a, __m256i b, __m256i c, __m256i d)
{
    const __m256i ab_low = _mm256_unpacklo_epi32(a, b), ab_high = _mm256_unpackhi_epi32(a, b);
    const __m256i cd_low = _mm256_unpacklo_epi32(c, d), cd_high = _mm256_unpackhi_epi32(c, d);

    return (struct group){_mm256_unpacklo_epi64(ab_low, cd_low), _mm256_unpackhi_epi64(ab_low, cd_low),
                          _mm256_unpacklo_epi64(ab_high, cd_high), _mm256_unpackhi_epi64(ab_high, cd_high)};
}

/* Two neighbouring blocks with a whitening key. */
static inline __m256i load_two(const uint8_t *src, const uint32_t *k)
{
    return _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)src),
                            _mm256_broadcastsi128_si256(load_words(k)));
}

static inline void store_two(uint8_t *dst, __m256i v, const uint32_t *k)
{
    _mm256_storeu_si256((__m256i *)(void *)dst, _mm256_xor_si256(v, _mm256_broadcastsi128_si256(load_words(k))));
}

static inline struct group load_group(const uint8_t *src, const uint32_t *k)
{
    return transposed(load_two(src, k), load_two(src + 32, k), load_two(src + 64, k), load_two(src + 96, k));
}

/* The halves change places, which undoes the last round's swap. */
static inline void store_group(uint8_t *dst, const struct group *x, const uint32_t *k)
{
    const struct group y = transposed(x->c, x->d, x->a, x->b);

    store_two(dst, y.a, k);
    store_two(dst + 32, y.b, k);
    store_two(dst + 64, y.c, k);
    store_two(dst + 96, y.d, k);
}

static void encrypt_sixteen(const struct tabled_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    const uint32_t *k = ctx->subkey;
    struct group x = load_group(src, k), y = load_group(src + 128, k);

    SUBJECT_PATH("16way");
    for (const uint32_t *rk = k + 8; rk < k + NUM_SUBKEYS; rk += 4) {
        encrypt_group_round(ctx, rk, &x);
        encrypt_group_round(ctx, rk, &y);
        encrypt_group_round(ctx, rk + 2, &x);
        encrypt_group_round(ctx, rk + 2, &y);
    }
    store_group(dst, &x, k + 4);
    store_group(dst + 128, &y, k + 4);
}

static void decrypt_sixteen(const struct tabled_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    const uint32_t *k = ctx->subkey;
    struct group x = load_group(src, k + 4), y = load_group(src + 128, k + 4);

    SUBJECT_PATH("16way");
    for (const uint32_t *rk = k + NUM_SUBKEYS - 4; rk > k + 4; rk -= 4) {
        decrypt_group_round(ctx, rk + 2, &x);
        decrypt_group_round(ctx, rk + 2, &y);
        decrypt_group_round(ctx, rk, &x);
        decrypt_group_round(ctx, rk, &y);
    }
    store_group(dst, &x, k);
    store_group(dst + 128, &y, k);
}

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks >= WAYS; num_blocks -= WAYS, dst += 16 * WAYS, src += 16 * WAYS) {
        encrypt_sixteen(ctx, dst, src);
    }
    encrypt_few(ctx, dst, src, num_blocks);
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks >= WAYS; num_blocks -= WAYS, dst += 16 * WAYS, src += 16 * WAYS) {
        decrypt_sixteen(ctx, dst, src);
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
