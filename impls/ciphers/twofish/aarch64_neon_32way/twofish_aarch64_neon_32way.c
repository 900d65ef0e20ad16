/* SPDX-License-Identifier: Apache-2.0
 *
 * Twofish with NEON: 32 blocks. The key-dependent S-boxes (section 4.3.4 of the submission, before the MDS matrix) are 256
 * bytes each, which are 16 registers: TBL looks bytes up in four of them, and one load of an S-box serves all blocks.
 * The words lie in memory, where LD4 takes them apart into bytes and ST4 puts them together. What is left over, up to 16
 * blocks, goes one by one.
 */
#include <arm_neon.h>

#include "twofish_single.h"

#define WAYS 32u
#define PAYS 17u

struct neon_ctx {
    struct tabled_ctx tabled; /* first: one block takes either */
    uint8_t box[4][256];
};

/* In column j of the MDS matrix the element 01 stands in this row. */
static const uint8_t row_of_one[4] = {0, 3, 2, 1};

static int neon_setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct neon_ctx *c = ctx;
    int status = tabled_setkey(&c->tabled, key, key_len, policy);

    if (status != SUBJECT_OK) {
        return status;
    }
    for (unsigned j = 0; j < 4; j++) {
        for (unsigned x = 0; x < 256; x++) {
            c->box[j][x] = (uint8_t)byte_of(c->tabled.g[j][x], row_of_one[j]);
        }
    }
    return SUBJECT_OK;
}

/* The words a, b, c, d of WAYS blocks. */
struct words {
    uint32_t word[4][WAYS];
};

/* Bytes of g of two words of each block: of the first, and of the second rotated left by 8 bits. */
struct planes {
    uint8_t byte[4][2 * WAYS];
};

#define VEC 16u /* bytes of a vector */

/* Section 4.3.4: bytes through an S-box. A byte beyond a part of the table gives 0, so that the parts are joined by OR;
 * TBX, which would leave such a byte alone, takes twice as long as TBL by the model of a Neoverse N2. */
static inline void look_up(const uint8_t box[256], uint8_t *bytes)
{
    const uint8x16x4_t part0 = vld1q_u8_x4(box), part1 = vld1q_u8_x4(box + 64), part2 = vld1q_u8_x4(box + 128);
    const uint8x16x4_t part3 = vld1q_u8_x4(box + 192);
    const uint8x16_t second = vdupq_n_u8(64), third = vdupq_n_u8(128), fourth = vdupq_n_u8(192);

#pragma GCC unroll 4
    for (unsigned i = 0; i < 2 * WAYS; i += VEC) {
        const uint8x16_t x = vld1q_u8(bytes + i);
        const uint8x16_t y0 = vqtbl4q_u8(part0, x), y1 = vqtbl4q_u8(part1, veorq_u8(x, second));
        const uint8x16_t y2 = vqtbl4q_u8(part2, veorq_u8(x, third)), y3 = vqtbl4q_u8(part3, veorq_u8(x, fourth));
        vst1q_u8(bytes + i, vorrq_u8(vorrq_u8(y0, y1), vorrq_u8(y2, y3)));
    }
}

/* Products with the elements 5B and EF, for the low four bits of a byte and for the high ones. */
#define LOW_5B(x) (uint8_t)TIMES_5B(x),
#define HIGH_5B(x) (uint8_t)TIMES_5B((x) << 4),
#define LOW_EF(x) (uint8_t)TIMES_EF(x),
#define HIGH_EF(x) (uint8_t)TIMES_EF((x) << 4),
static const uint8_t products[4][16] = {
    {EACH_OF_16(LOW_5B, 0u)}, {EACH_OF_16(HIGH_5B, 0u)}, {EACH_OF_16(LOW_EF, 0u)}, {EACH_OF_16(HIGH_EF, 0u)}};

/* Section 4.2: the MDS matrix, and back to words. */
static inline void mix(uint8_t *words, const struct planes *p)
{
    const uint8x16_t low_5b = vld1q_u8(products[0]), high_5b = vld1q_u8(products[1]);
    const uint8x16_t low_ef = vld1q_u8(products[2]), high_ef = vld1q_u8(products[3]), nibble = vdupq_n_u8(15);

#pragma GCC unroll 4
    for (unsigned i = 0; i < 2 * WAYS; i += VEC) {
        uint8x16_t y[4], by_5b[4], by_ef[4];
        uint8x16x4_t z;
#pragma GCC unroll 4
        for (unsigned j = 0; j < 4; j++) {
            uint8x16_t low, high;
            y[j] = vld1q_u8(p->byte[j] + i);
            low = vandq_u8(y[j], nibble);
            high = vshrq_n_u8(y[j], 4);
            by_5b[j] = veorq_u8(vqtbl1q_u8(low_5b, low), vqtbl1q_u8(high_5b, high));
            by_ef[j] = veorq_u8(vqtbl1q_u8(low_ef, low), vqtbl1q_u8(high_ef, high));
        }
        z.val[0] = veorq_u8(veorq_u8(y[0], by_ef[1]), veorq_u8(by_5b[2], by_5b[3]));
        z.val[1] = veorq_u8(veorq_u8(by_5b[0], by_ef[1]), veorq_u8(by_ef[2], y[3]));
        z.val[2] = veorq_u8(veorq_u8(by_ef[0], by_5b[1]), veorq_u8(y[2], by_ef[3]));
        z.val[3] = veorq_u8(veorq_u8(by_ef[0], y[1]), veorq_u8(by_ef[2], by_5b[3]));
        vst4q_u8(words + 4 * i, z);
    }
}

static inline uint32x4_t rotl1(uint32x4_t v)
{
    return vsriq_n_u32(vshlq_n_u32(v, 1), v, 31);
}

static inline uint32x4_t rotr1(uint32x4_t v)
{
    return vsliq_n_u32(vshrq_n_u32(v, 1), v, 31);
}

/* Section 4.1, one round: F of (a, b) goes into (c, d). */
static inline void round_of_all(const struct neon_ctx *ctx, const uint32_t *k, const uint32_t *a, const uint32_t *b,
                                uint32_t *c, uint32_t *d, int decrypting)
{
    const uint32x4_t k0 = vdupq_n_u32(k[0]), k1 = vdupq_n_u32(k[1]);
    uint32_t g_of[2 * WAYS];
    struct planes p;

#pragma GCC unroll 2
    for (unsigned i = 0; i < WAYS; i += VEC) {
        const uint8x16x4_t first = vld4q_u8((const uint8_t *)(a + i)), second = vld4q_u8((const uint8_t *)(b + i));
#pragma GCC unroll 4
        for (unsigned j = 0; j < 4; j++) {
            vst1q_u8(p.byte[j] + i, first.val[j]);
            vst1q_u8(p.byte[(j + 1) % 4] + WAYS + i, second.val[j]);
        }
    }
    for (unsigned j = 0; j < 4; j++) {
        look_up(ctx->box[j], p.byte[j]);
    }
    mix((uint8_t *)g_of, &p);
#pragma GCC unroll 2
    for (unsigned i = 0; i < WAYS; i += 4) {
        const uint32x4_t t1 = vld1q_u32(g_of + WAYS + i), sum = vaddq_u32(vld1q_u32(g_of + i), t1);
        const uint32x4_t f0 = vaddq_u32(sum, k0), f1 = vaddq_u32(vaddq_u32(sum, t1), k1);
        const uint32x4_t old_c = vld1q_u32(c + i), old_d = vld1q_u32(d + i);
        if (decrypting) {
            vst1q_u32(c + i, veorq_u32(rotl1(old_c), f0));
            vst1q_u32(d + i, rotr1(veorq_u32(old_d, f1)));
        } else {
            vst1q_u32(c + i, rotr1(veorq_u32(old_c, f0)));
            vst1q_u32(d + i, veorq_u32(rotl1(old_d), f1));
        }
    }
}

static inline uint32x4_t load_four(const uint8_t *p)
{
    return vreinterpretq_u32_u8(vld1q_u8(p));
}

static inline void store_four(uint8_t *p, uint32x4_t v)
{
    vst1q_u8(p, vreinterpretq_u8_u32(v));
}

static inline uint32x4_t low_pairs(uint32x4_t a, uint32x4_t b)
{
    return vreinterpretq_u32_u64(vtrn1q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
}

static inline uint32x4_t high_pairs(uint32x4_t a, uint32x4_t b)
{
    return vreinterpretq_u32_u64(vtrn2q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
}

/* Four blocks into their first, second, third and fourth words, or back. */
static inline void transpose_words(uint32x4_t v[4])
{
    const uint32x4_t a = vtrn1q_u32(v[0], v[1]), b = vtrn2q_u32(v[0], v[1]);
    const uint32x4_t c = vtrn1q_u32(v[2], v[3]), d = vtrn2q_u32(v[2], v[3]);

    v[0] = low_pairs(a, c);
    v[1] = low_pairs(b, d);
    v[2] = high_pairs(a, c);
    v[3] = high_pairs(b, d);
}

static inline void load_words(struct words *w, const uint8_t *src, const uint32_t *k)
{
    for (unsigned i = 0; i < WAYS; i += 4) {
        uint32x4_t v[4];
#pragma GCC unroll 4
        for (unsigned j = 0; j < 4; j++) {
            v[j] = load_four(src + 16 * (i + j));
        }
        transpose_words(v);
#pragma GCC unroll 4
        for (unsigned j = 0; j < 4; j++) {
            vst1q_u32(w->word[j] + i, veorq_u32(v[j], vdupq_n_u32(k[j])));
        }
    }
}

/* The halves change places, which undoes the last round's swap. */
static inline void unload_words(uint8_t *dst, const struct words *w, const uint32_t *k)
{
    for (unsigned i = 0; i < WAYS; i += 4) {
        uint32x4_t v[4];
#pragma GCC unroll 4
        for (unsigned j = 0; j < 4; j++) {
            v[j] = veorq_u32(vld1q_u32(w->word[(j + 2) % 4] + i), vdupq_n_u32(k[j]));
        }
        transpose_words(v);
#pragma GCC unroll 4
        for (unsigned j = 0; j < 4; j++) {
            store_four(dst + 16 * (i + j), v[j]);
        }
    }
}

static void encrypt_all(const struct neon_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    const uint32_t *k = ctx->tabled.subkey;
    struct words w;

    load_words(&w, src, k);
    for (const uint32_t *rk = k + 8; rk < k + NUM_SUBKEYS; rk += 4) {
        round_of_all(ctx, rk, w.word[0], w.word[1], w.word[2], w.word[3], 0);
        round_of_all(ctx, rk + 2, w.word[2], w.word[3], w.word[0], w.word[1], 0);
    }
    unload_words(dst, &w, k + 4);
}

static void decrypt_all(const struct neon_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    const uint32_t *k = ctx->tabled.subkey;
    struct words w;

    load_words(&w, src, k + 4);
    for (const uint32_t *rk = k + NUM_SUBKEYS - 4; rk > k + 4; rk -= 4) {
        round_of_all(ctx, rk + 2, w.word[0], w.word[1], w.word[2], w.word[3], 1);
        round_of_all(ctx, rk, w.word[2], w.word[3], w.word[0], w.word[1], 1);
    }
    unload_words(dst, &w, k);
}

static void crypt_all(const struct neon_ctx *ctx, uint8_t *dst, const uint8_t *src, int decrypting)
{
    if (decrypting) {
        decrypt_all(ctx, dst, src);
    } else {
        encrypt_all(ctx, dst, src);
    }
}

static inline void crypt_blocks(const struct neon_ctx *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks,
                                int decrypting)
{
    for (; num_blocks >= WAYS; num_blocks -= WAYS, dst += 16 * WAYS, src += 16 * WAYS) {
        SUBJECT_PATH("32way");
        crypt_all(ctx, dst, src, decrypting);
    }
    if (num_blocks >= PAYS) {
        uint8_t buffer[16 * WAYS];
        SUBJECT_PATH("rest");
        memcpy(buffer, src, 16 * num_blocks);
        memset(buffer + 16 * num_blocks, 0, sizeof(buffer) - 16 * num_blocks);
        crypt_all(ctx, buffer, buffer, decrypting);
        memcpy(dst, buffer, 16 * num_blocks);
        return;
    }
    for (; num_blocks > 0; num_blocks--, dst += 16, src += 16) {
        if (decrypting) {
            decrypt_one(&ctx->tabled, dst, src);
        } else {
            encrypt_one(&ctx->tabled, dst, src);
        }
    }
}

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    crypt_blocks(ctx, dst, src, num_blocks, 0);
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    crypt_blocks(ctx, dst, src, num_blocks, 1);
}

#define FUSED_RUN 32u
#include "twofish_fused.h"

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = WAYS,
    .ctx_len = sizeof(struct neon_ctx),
    .ctx_align = _Alignof(struct neon_ctx),
    .setkey = neon_setkey,
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

const struct subject_leaf *twofish_aarch64_neon_32way(uint64_t features);

const struct subject_leaf *twofish_aarch64_neon_32way(uint64_t features)
{
    return (features & SUBJECT_ARM_NEON) != 0 ? &leaf : NULL;
}
