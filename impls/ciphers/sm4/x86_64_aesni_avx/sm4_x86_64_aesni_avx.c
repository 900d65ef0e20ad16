/* SPDX-License-Identifier: Apache-2.0
 *
 * SM4 (GB/T 32907-2016; in English draft-ribose-cfrg-sm4) with AES-NI and AVX.
 *
 * Four blocks make a group: register j holds word j of each. AESENCLAST with a zero key gives AES's S-box, which two
 * affine maps turn into SM4's (derive_affine.py proves it), and moves the bytes as ShiftRows does; the shuffles that
 * rotate words for the linear transformation move them back on the way. So no table is addressed by data, but in one
 * place.
 *
 * A round waits for one long chain of instructions, so two groups go side by side where there are eight blocks. Two or
 * three blocks go as a group whose other blocks are zero. A block alone, which would pay for four, goes through the
 * tables of sm4_block.h.
 */
#include <immintrin.h>

#include "sm4_block.h"

#define GROUP 4
#define WAYS 8
#define BLOCK_LEN 16u

#define NEEDED (SUBJECT_X86_SSSE3 | SUBJECT_X86_SSE41 | SUBJECT_X86_AES | SUBJECT_X86_AVX)

struct sm4_ctx {
    uint32_t encrypt_keys[ROUNDS];
    uint32_t decrypt_keys[ROUNDS];
};

struct group {
    __m128i word[4];
};

/* As derive_affine.py prints them: look-ups by low and high nibble, before and after AESENCLAST. */
static const uint8_t pre_lo[16] = {0x3e, 0xb2, 0x0e, 0x82, 0xbb, 0x37, 0x8b, 0x07,
                                   0xa1, 0x2d, 0x91, 0x1d, 0x24, 0xa8, 0x14, 0x98};
static const uint8_t pre_hi[16] = {0x00, 0xdc, 0x2e, 0xf2, 0xc5, 0x19, 0xeb, 0x37,
                                   0x08, 0xd4, 0x26, 0xfa, 0xcd, 0x11, 0xe3, 0x3f};
static const uint8_t post_lo[16] = {0x6c, 0xd4, 0xa6, 0x1e, 0x52, 0xea, 0x98, 0x20,
                                    0x0b, 0xb3, 0xc1, 0x79, 0x35, 0x8d, 0xff, 0x47};
static const uint8_t post_hi[16] = {0x00, 0xe0, 0x50, 0xb0, 0x9d, 0x7d, 0xcd, 0x2d,
                                    0xc0, 0x20, 0x90, 0x70, 0x5d, 0xbd, 0x0d, 0xed};

/* ShiftRows (FIPS 197, 5.1.2) brings byte r of word c from word c + r, so byte r of word c went to word c - r.
 * Rotating words left by r0 bytes on the way back puts byte r - r0 in place r (words are little-endian here). */
#define UNSHIFT(c, r, r0) (uint8_t)(4 * (((c) - ((r) - (r0))) & 3) + (((r) - (r0)) & 3))
#define UNSHIFT_WORD(c, r0) UNSHIFT(c, 0, r0), UNSHIFT(c, 1, r0), UNSHIFT(c, 2, r0), UNSHIFT(c, 3, r0)
#define UNSHIFT_ALL(r0) UNSHIFT_WORD(0, r0), UNSHIFT_WORD(1, r0), UNSHIFT_WORD(2, r0), UNSHIFT_WORD(3, r0)

static const uint8_t unshift[16] = {UNSHIFT_ALL(0)};
static const uint8_t unshift_rotl8[16] = {UNSHIFT_ALL(1)};
static const uint8_t unshift_rotl16[16] = {UNSHIFT_ALL(2)};
static const uint8_t unshift_rotl24[16] = {UNSHIFT_ALL(3)};
static const uint8_t swap_words[16] = {3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12};

static inline __m128i load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline void store(uint8_t *p, __m128i v)
{
    _mm_storeu_si128((__m128i *)(void *)p, v);
}

static inline __m128i permute(__m128i v, const uint8_t *order)
{
    return _mm_shuffle_epi8(v, load(order));
}

static inline __m128i affine(__m128i v, const uint8_t *lo, const uint8_t *hi)
{
    const __m128i nibble = _mm_set1_epi8(0x0f);
    __m128i low = _mm_and_si128(v, nibble);
    __m128i high = _mm_and_si128(_mm_srli_epi32(v, 4), nibble);
    return _mm_xor_si128(_mm_shuffle_epi8(load(lo), low), _mm_shuffle_epi8(load(hi), high));
}

/* The S-box on 16 bytes, which come out where ShiftRows puts them. */
static inline __m128i sub_and_shift(__m128i v)
{
    v = affine(v, pre_lo, pre_hi);
    v = _mm_aesenclast_si128(v, _mm_setzero_si128());
    return affine(v, post_lo, post_hi);
}

/* T = L(S(.)), section 6.2. Of L's five terms B, B <<< 2, 10, 18, 24 three are one sum, rotated by two bits. */
static inline __m128i transform(__m128i v)
{
    __m128i s = sub_and_shift(v);
    __m128i b = permute(s, unshift);
    __m128i sum = _mm_xor_si128(_mm_xor_si128(b, permute(s, unshift_rotl8)), permute(s, unshift_rotl16));
    __m128i whole = _mm_xor_si128(b, permute(s, unshift_rotl24));
    return _mm_xor_si128(whole, _mm_xor_si128(_mm_slli_epi32(sum, 2), _mm_srli_epi32(sum, 30)));
}

static inline __m128i one_round(__m128i x0, __m128i x1, __m128i x2, __m128i x3, __m128i rk)
{
    return _mm_xor_si128(x0, transform(_mm_xor_si128(_mm_xor_si128(_mm_xor_si128(x2, x3), rk), x1)));
}

static inline __m128i broadcast(uint32_t v)
{
    return _mm_set1_epi32((int)v);
}

/* Section 7.3, each word four times over: T' has L'(B) = B ^ (B <<< 13) ^ (B <<< 23). */
static inline __m128i key_transform(__m128i v)
{
    __m128i b = permute(sub_and_shift(v), unshift);
    __m128i rotl13 = _mm_xor_si128(_mm_slli_epi32(b, 13), _mm_srli_epi32(b, 19));
    __m128i rotl23 = _mm_xor_si128(_mm_slli_epi32(b, 23), _mm_srli_epi32(b, 9));
    return _mm_xor_si128(b, _mm_xor_si128(rotl13, rotl23));
}

static int setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct sm4_ctx *c = ctx;
    __m128i k0, k1, k2, k3;
    unsigned i;

    (void)policy; /* SM4 has no weak keys */
    if (key_len != 16) {
        return SUBJECT_BAD_KEY_LEN;
    }
    k0 = broadcast(load_be32(key) ^ fk[0]);
    k1 = broadcast(load_be32(key + 4) ^ fk[1]);
    k2 = broadcast(load_be32(key + 8) ^ fk[2]);
    k3 = broadcast(load_be32(key + 12) ^ fk[3]);
    for (i = 0; i < ROUNDS; i++) {
        __m128i sum = _mm_xor_si128(_mm_xor_si128(k1, k2), _mm_xor_si128(k3, broadcast(ck[i])));
        __m128i k4 = _mm_xor_si128(k0, key_transform(sum));
        uint32_t rk = (uint32_t)_mm_cvtsi128_si32(k4);
        c->encrypt_keys[i] = rk;
        c->decrypt_keys[ROUNDS - 1 - i] = rk;
        k0 = k1;
        k1 = k2;
        k2 = k3;
        k3 = k4;
    }
    return SUBJECT_OK;
}

/* Rows to columns: word j of four blocks from or to one register. */
static inline void transpose(__m128i v[4])
{
    __m128i a = _mm_unpacklo_epi32(v[0], v[1]);
    __m128i b = _mm_unpackhi_epi32(v[0], v[1]);
    __m128i c = _mm_unpacklo_epi32(v[2], v[3]);
    __m128i d = _mm_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm_unpacklo_epi64(a, c);
    v[1] = _mm_unpackhi_epi64(a, c);
    v[2] = _mm_unpacklo_epi64(b, d);
    v[3] = _mm_unpackhi_epi64(b, d);
}

static inline void group_from_blocks(struct group *g, const __m128i blocks[GROUP])
{
    g->word[0] = permute(blocks[0], swap_words);
    g->word[1] = permute(blocks[1], swap_words);
    g->word[2] = permute(blocks[2], swap_words);
    g->word[3] = permute(blocks[3], swap_words);
    transpose(g->word);
}

/* With the reverse transformation R, section 6.1: the words come out last first. */
static inline void group_to_blocks(__m128i blocks[GROUP], const struct group *g)
{
    blocks[0] = permute(g->word[3], swap_words);
    blocks[1] = permute(g->word[2], swap_words);
    blocks[2] = permute(g->word[1], swap_words);
    blocks[3] = permute(g->word[0], swap_words);
    transpose(blocks);
}

static void crypt_group(const uint32_t *rk, struct group *g)
{
    __m128i x0 = g->word[0], x1 = g->word[1], x2 = g->word[2], x3 = g->word[3];
    unsigned i;

    for (i = 0; i < ROUNDS; i += 4) {
        x0 = one_round(x0, x1, x2, x3, broadcast(rk[i]));
        x1 = one_round(x1, x2, x3, x0, broadcast(rk[i + 1]));
        x2 = one_round(x2, x3, x0, x1, broadcast(rk[i + 2]));
        x3 = one_round(x3, x0, x1, x2, broadcast(rk[i + 3]));
    }
    g->word[0] = x0;
    g->word[1] = x1;
    g->word[2] = x2;
    g->word[3] = x3;
}

static void crypt_two_groups(const uint32_t *rk, struct group g[2])
{
    __m128i x0 = g[0].word[0], x1 = g[0].word[1], x2 = g[0].word[2], x3 = g[0].word[3];
    __m128i y0 = g[1].word[0], y1 = g[1].word[1], y2 = g[1].word[2], y3 = g[1].word[3];
    unsigned i;

    for (i = 0; i < ROUNDS; i += 4) {
        x0 = one_round(x0, x1, x2, x3, broadcast(rk[i]));
        y0 = one_round(y0, y1, y2, y3, broadcast(rk[i]));
        x1 = one_round(x1, x2, x3, x0, broadcast(rk[i + 1]));
        y1 = one_round(y1, y2, y3, y0, broadcast(rk[i + 1]));
        x2 = one_round(x2, x3, x0, x1, broadcast(rk[i + 2]));
        y2 = one_round(y2, y3, y0, y1, broadcast(rk[i + 2]));
        x3 = one_round(x3, x0, x1, x2, broadcast(rk[i + 3]));
        y3 = one_round(y3, y0, y1, y2, broadcast(rk[i + 3]));
    }
    g[0].word[0] = x0;
    g[0].word[1] = x1;
    g[0].word[2] = x2;
    g[0].word[3] = x3;
    g[1].word[0] = y0;
    g[1].word[1] = y1;
    g[1].word[2] = y2;
    g[1].word[3] = y3;
}

/* How many of the two or more whole blocks that are left go next: 8, 4, or the last 2 or 3. */
static inline size_t next_width(size_t num_blocks)
{
    return num_blocks >= WAYS ? WAYS : num_blocks >= GROUP ? GROUP : num_blocks;
}

static inline void load_blocks(__m128i *blocks, const uint8_t *src, size_t num_blocks)
{
    size_t i;
    for (i = 0; i < num_blocks; i++) {
        blocks[i] = load(src + BLOCK_LEN * i);
    }
}

/* out = the cipher of in, num_blocks as next_width says; both have room for 8 blocks and may be the same. */
static inline void crypt_some(const uint32_t *rk, __m128i *out, const __m128i *in, size_t num_blocks)
{
    struct group g[2];

    if (num_blocks == WAYS) {
        SUBJECT_PATH("8way");
        group_from_blocks(&g[0], in);
        group_from_blocks(&g[1], in + GROUP);
        crypt_two_groups(rk, g);
        group_to_blocks(out, &g[0]);
        group_to_blocks(out + GROUP, &g[1]);
    } else if (num_blocks == GROUP) {
        SUBJECT_PATH("4way");
        group_from_blocks(&g[0], in);
        crypt_group(rk, &g[0]);
        group_to_blocks(out, &g[0]);
    } else {
        __m128i padded[GROUP];
        size_t i;
        SUBJECT_PATH("tail");
        for (i = 0; i < GROUP; i++) {
            padded[i] = i < num_blocks ? in[i] : _mm_setzero_si128();
        }
        group_from_blocks(&g[0], padded);
        crypt_group(rk, &g[0]);
        group_to_blocks(out, &g[0]);
    }
}

static inline void crypt_one(const uint32_t *rk, uint8_t *dst, const uint8_t *src)
{
    SUBJECT_PATH("block");
    crypt_block(rk, dst, src);
}

static void crypt_blocks(const uint32_t *rk, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    while (num_blocks > 1) {
        size_t n = next_width(num_blocks);
        __m128i blocks[WAYS];
        size_t i;
        load_blocks(blocks, src, n);
        crypt_some(rk, blocks, blocks, n);
        for (i = 0; i < n; i++) {
            store(dst + BLOCK_LEN * i, blocks[i]);
        }
        dst += BLOCK_LEN * n;
        src += BLOCK_LEN * n;
        num_blocks -= n;
    }
    if (num_blocks > 0) {
        crypt_one(rk, dst, src);
    }
}

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    const struct sm4_ctx *c = ctx;
    crypt_blocks(c->encrypt_keys, dst, src, num_blocks);
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    const struct sm4_ctx *c = ctx;
    crypt_blocks(c->decrypt_keys, dst, src, num_blocks);
}

static void ecb_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    (void)iv;
    encrypt_blocks(ctx, dst, src, len / BLOCK_LEN);
}

static void ecb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    (void)iv;
    decrypt_blocks(ctx, dst, src, len / BLOCK_LEN);
}

/* Every ciphertext block of a step is in a register or on the stack before its first plaintext is written: in place
 * the two are the same bytes. */
static void cbc_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct sm4_ctx *c = ctx;
    size_t num_blocks = len / BLOCK_LEN;
    __m128i chain;

    if (num_blocks == 0) {
        return;
    }
    chain = load(iv);
    while (num_blocks > 1) {
        size_t n = next_width(num_blocks);
        __m128i in[WAYS], out[WAYS];
        size_t i;
        load_blocks(in, src, n);
        crypt_some(c->decrypt_keys, out, in, n);
        for (i = 0; i < n; i++) {
            store(dst + BLOCK_LEN * i, _mm_xor_si128(out[i], chain));
            chain = in[i];
        }
        dst += BLOCK_LEN * n;
        src += BLOCK_LEN * n;
        num_blocks -= n;
    }
    if (num_blocks > 0) {
        uint8_t block[BLOCK_LEN];
        __m128i in = load(src);
        crypt_one(c->decrypt_keys, block, src);
        store(dst, _mm_xor_si128(load(block), chain));
        chain = in;
    }
    store(iv, chain);
}

/* The counter as two host integers. */
struct counter {
    uint64_t high, low;
};

static inline void counter_add(struct counter *c, uint64_t n)
{
    c->low += n;
    c->high += c->low < n;
}

/* Four counters from c on, as a group. Where the least significant word carries nowhere, the other three words are
 * the same in all of them. */
static inline void group_from_counter(struct group *g, struct counter c)
{
    if ((uint32_t)c.low <= UINT32_MAX - (GROUP - 1)) {
        g->word[0] = broadcast((uint32_t)(c.high >> 32));
        g->word[1] = broadcast((uint32_t)c.high);
        g->word[2] = broadcast((uint32_t)(c.low >> 32));
        g->word[3] = _mm_add_epi32(broadcast((uint32_t)c.low), _mm_setr_epi32(0, 1, 2, 3));
    } else {
        unsigned i;
        SUBJECT_PATH("ctr_wrap");
        for (i = 0; i < GROUP; i++) {
            g->word[i] =
                _mm_set_epi64x((int64_t)((c.low << 32) | (c.low >> 32)), (int64_t)((c.high << 32) | (c.high >> 32)));
            counter_add(&c, 1);
        }
        transpose(g->word);
    }
}

static void keystream_group(const uint32_t *rk, uint8_t keystream[GROUP * BLOCK_LEN], struct counter counter)
{
    __m128i blocks[GROUP];
    struct group g;
    size_t i;

    SUBJECT_PATH("tail");
    group_from_counter(&g, counter);
    crypt_group(rk, &g);
    group_to_blocks(blocks, &g);
    for (i = 0; i < GROUP; i++) {
        store(keystream + BLOCK_LEN * i, blocks[i]);
    }
}

/* All but a last block or a part of one; returns how many bytes that was. Not inlined: who has one block alone shall not
 * make room for eight. */
static __attribute__((noinline)) size_t ctr_wide(const uint32_t *rk, uint8_t *dst, const uint8_t *src, size_t len,
                                                 uint8_t *iv)
{
    const uint8_t *begin = src;
    struct counter counter;

    counter.high = load_be64(iv);
    counter.low = load_be64(iv + 8);
    while (len >= GROUP * BLOCK_LEN) {
        size_t n = next_width(len / BLOCK_LEN);
        __m128i blocks[WAYS];
        struct group g[2];
        size_t i;
        group_from_counter(&g[0], counter);
        counter_add(&counter, GROUP);
        if (n == WAYS) {
            SUBJECT_PATH("8way");
            group_from_counter(&g[1], counter);
            counter_add(&counter, GROUP);
            crypt_two_groups(rk, g);
            group_to_blocks(blocks + GROUP, &g[1]);
        } else {
            SUBJECT_PATH("4way");
            crypt_group(rk, &g[0]);
        }
        group_to_blocks(blocks, &g[0]);
        for (i = 0; i < n; i++) {
            store(dst + BLOCK_LEN * i, _mm_xor_si128(blocks[i], load(src + BLOCK_LEN * i)));
        }
        dst += BLOCK_LEN * n;
        src += BLOCK_LEN * n;
        len -= BLOCK_LEN * n;
    }
    if (len > BLOCK_LEN) {
        uint8_t keystream[GROUP * BLOCK_LEN];
        keystream_group(rk, keystream, counter);
        xor_bytes(dst, src, keystream, len);
        counter_add(&counter, (len + BLOCK_LEN - 1) / BLOCK_LEN);
        src += len;
    }
    store_be64(iv, counter.high);
    store_be64(iv + 8, counter.low);
    return (size_t)(src - begin);
}

static void ctr_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const uint32_t *rk = ((const struct sm4_ctx *)ctx)->encrypt_keys;
    const size_t done = len > BLOCK_LEN ? ctr_wide(rk, dst, src, len, iv) : 0;

    if (done < len) {
        uint8_t keystream[BLOCK_LEN];
        crypt_one(rk, keystream, iv);
        xor_bytes(dst + done, src + done, keystream, len - done);
        increment_be(iv, BLOCK_LEN);
    }
}

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = WAYS,
    .ctx_len = sizeof(struct sm4_ctx),
    .ctx_align = _Alignof(struct sm4_ctx),
    .setkey = setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
    .ecb = {ecb_encrypt, ecb_decrypt},
    .cbc = {NULL, cbc_decrypt}, /* encryption is one block at a time, fused or not */
    .ctr = {ctr_crypt, ctr_crypt},
};

const struct subject_leaf *sm4_x86_64_aesni_avx(uint64_t features);

const struct subject_leaf *sm4_x86_64_aesni_avx(uint64_t features)
{
    return (features & NEEDED) == NEEDED ? &leaf : NULL;
}
