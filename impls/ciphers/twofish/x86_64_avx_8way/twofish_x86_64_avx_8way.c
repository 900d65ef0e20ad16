/* SPDX-License-Identifier: Apache-2.0
 *
 * Twofish with AVX. Four blocks make a group: register j holds word j of each. Look-ups are made in general registers;
 * additions, rotations and keys are one vector instruction for four blocks, which leaves the integer units to the bytes.
 * While one group waits for its look-ups the other's go on. Fewer than eight blocks go by threes and ones.
 */
#include "twofish_lookup.h"
#include "twofish_tabled.h"

#define WAYS 8u

struct group {
    __m128i a, b, c, d;
};

static inline __m128i broadcast(uint32_t v)
{
    return _mm_set1_epi32((int)v);
}

static inline __m128i rotl1(__m128i v)
{
    return _mm_or_si128(_mm_add_epi32(v, v), _mm_srli_epi32(v, 31));
}

static inline __m128i rotr1(__m128i v)
{
    return _mm_or_si128(_mm_srli_epi32(v, 1), _mm_slli_epi32(v, 31));
}

/* One round: F of (a, b) goes into (c, d), and the halves change places. */
static inline void encrypt_group_round(const struct tabled_ctx *ctx, const uint32_t *k, struct group *x)
{
    const __m128i t1 = four_g_rotated(ctx, x->b), sum = _mm_add_epi32(four_g(ctx, x->a), t1);
    const __m128i f0 = _mm_add_epi32(sum, broadcast(k[0]));
    const __m128i f1 = _mm_add_epi32(_mm_add_epi32(sum, t1), broadcast(k[1]));

    *x = (struct group){rotr1(_mm_xor_si128(x->c, f0)), _mm_xor_si128(rotl1(x->d), f1), x->a, x->b};
}

static inline void decrypt_group_round(const struct tabled_ctx *ctx, const uint32_t *k, struct group *x)
{
    const __m128i t1 = four_g_rotated(ctx, x->b), sum = _mm_add_epi32(four_g(ctx, x->a), t1);
    const __m128i f0 = _mm_add_epi32(sum, broadcast(k[0]));
    const __m128i f1 = _mm_add_epi32(_mm_add_epi32(sum, t1), broadcast(k[1]));

    *x = (struct group){_mm_xor_si128(rotl1(x->c), f0), rotr1(_mm_xor_si128(x->d, f1)), x->a, x->b};
}

/* Rows to columns: word j of four blocks from or to one register. */
static inline struct group transposed(__m128i a, __m128i b, __m128i c, __m128i d)
{
    const __m128i ab_low = _mm_unpacklo_epi32(a, b), ab_high = _mm_unpackhi_epi32(a, b);
    const __m128i cd_low = _mm_unpacklo_epi32(c, d), cd_high = _mm_unpackhi_epi32(c, d);

    return (struct group){_mm_unpacklo_epi64(ab_low, cd_low), _mm_unpackhi_epi64(ab_low, cd_low),
                          _mm_unpacklo_epi64(ab_high, cd_high), _mm_unpackhi_epi64(ab_high, cd_high)};
}

static inline struct group load_group(const uint8_t *src, __m128i whitening)
{
    return transposed(_mm_xor_si128(load_words(src), whitening), _mm_xor_si128(load_words(src + 16), whitening),
                      _mm_xor_si128(load_words(src + 32), whitening), _mm_xor_si128(load_words(src + 48), whitening));
}

/* The halves change places, which undoes the last round's swap. */
static inline void store_group(uint8_t *dst, const struct group *x, __m128i whitening)
{
    const struct group y = transposed(x->c, x->d, x->a, x->b);

    _mm_storeu_si128((__m128i *)(void *)dst, _mm_xor_si128(y.a, whitening));
    _mm_storeu_si128((__m128i *)(void *)(dst + 16), _mm_xor_si128(y.b, whitening));
    _mm_storeu_si128((__m128i *)(void *)(dst + 32), _mm_xor_si128(y.c, whitening));
    _mm_storeu_si128((__m128i *)(void *)(dst + 48), _mm_xor_si128(y.d, whitening));
}

static void encrypt_eight(const struct tabled_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    const uint32_t *k = ctx->subkey;
    struct group x = load_group(src, load_words(k)), y = load_group(src + 64, load_words(k));

    SUBJECT_PATH("8way");
    for (const uint32_t *rk = k + 8; rk < k + NUM_SUBKEYS; rk += 4) {
        encrypt_group_round(ctx, rk, &x);
        encrypt_group_round(ctx, rk, &y);
        encrypt_group_round(ctx, rk + 2, &x);
        encrypt_group_round(ctx, rk + 2, &y);
    }
    store_group(dst, &x, load_words(k + 4));
    store_group(dst + 64, &y, load_words(k + 4));
}

static void decrypt_eight(const struct tabled_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    const uint32_t *k = ctx->subkey;
    struct group x = load_group(src, load_words(k + 4)), y = load_group(src + 64, load_words(k + 4));

    SUBJECT_PATH("8way");
    for (const uint32_t *rk = k + NUM_SUBKEYS - 4; rk > k + 4; rk -= 4) {
        decrypt_group_round(ctx, rk + 2, &x);
        decrypt_group_round(ctx, rk + 2, &y);
        decrypt_group_round(ctx, rk, &x);
        decrypt_group_round(ctx, rk, &y);
    }
    store_group(dst, &x, load_words(k));
    store_group(dst + 64, &y, load_words(k));
}

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks >= WAYS; num_blocks -= WAYS, dst += 16 * WAYS, src += 16 * WAYS) {
        encrypt_eight(ctx, dst, src);
    }
    encrypt_few(ctx, dst, src, num_blocks);
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks >= WAYS; num_blocks -= WAYS, dst += 16 * WAYS, src += 16 * WAYS) {
        decrypt_eight(ctx, dst, src);
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
