/* SPDX-License-Identifier: Apache-2.0
 *
 * CAST-128 (RFC 2144, whose section numbers these are) with AVX, 16 blocks side by side.
 *
 * Four blocks make a chunk: one register holds their left halves, one their right halves. Masking and rotating are
 * vector instructions. I then goes to two general registers, from which the indices are taken byte by byte; what they
 * address is loaded straight into lanes, so that the joining of the four S-boxes is vector instructions again. One
 * round of a chunk is one long chain, hence four chunks side by side where there are 16 blocks. With fewer there is
 * one chunk at a time, and with less than four blocks plain C.
 *
 * Tables are addressed by data: not constant-time. */
#include <immintrin.h>

#include "cast5_sbox.h"
#include "subject.h"

#define BLOCK_LEN 8u
#define CHUNK 4u
#define WAYS 16u
#define WIDE (WAYS / CHUNK) /* chunks side by side */
#define PAIR_LEN 16u        /* a vector holds two blocks as they lie in memory */
#define MAX_ROUNDS 16u
#define MIN_KEY_LEN 5u
#define MAX_KEY_LEN 16u
#define SHORT_KEY_LEN 10u /* 80 bits: the longest key with 12 rounds */

#define NEEDED (SUBJECT_X86_SSSE3 | SUBJECT_X86_SSE41 | SUBJECT_X86_AVX)

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* 2.1: round i has the masking key mask[i] and the rotation key turn[i]. */
struct cast5_ctx {
    uint32_t mask[MAX_ROUNDS];
    uint32_t turn[MAX_ROUNDS];
    uint32_t num_rounds; /* 12 or 16 */
};

/* 2.2: the three round functions. */
enum type { TYPE_1, TYPE_2, TYPE_3 };

/* Key schedule, 2.4. */

/* One of the steps from x0..xF to z0..zF and back. Those back have the same indices as those forth, but for 8 added
 * to each index of the words that a step starts from, modulo 16: `turned` is 0 or 8. */
static void mix(uint8_t out[16], const uint8_t in[16], unsigned turned)
{
#define IN(i) in[(i) ^ turned]
    store_be32(&out[0], load_be32(&IN(0x0)) ^ S5[IN(0xD)] ^ S6[IN(0xF)] ^ S7[IN(0xC)] ^ S8[IN(0xE)] ^ S7[IN(0x8)]);
    store_be32(&out[4], load_be32(&IN(0x8)) ^ S5[out[0]] ^ S6[out[2]] ^ S7[out[1]] ^ S8[out[3]] ^ S8[IN(0xA)]);
    store_be32(&out[8], load_be32(&IN(0xC)) ^ S5[out[7]] ^ S6[out[6]] ^ S7[out[5]] ^ S8[out[4]] ^ S5[IN(0x9)]);
    store_be32(&out[12], load_be32(&IN(0x4)) ^ S5[out[10]] ^ S6[out[9]] ^ S7[out[11]] ^ S8[out[8]] ^ S6[IN(0xB)]);
#undef IN
}

/* The bytes of z (first and third row of four subkeys) or x from which K1 to K16 come: indices into S5, S6, S7, S8, and
 * of the box that is joined last, which is S5 to S8 in turn. */
static const uint8_t subkey_bytes[16][5] = {
    {0x8, 0x9, 0x7, 0x6, 0x2}, {0xA, 0xB, 0x5, 0x4, 0x6}, {0xC, 0xD, 0x3, 0x2, 0x9}, {0xE, 0xF, 0x1, 0x0, 0xC},
    {0x3, 0x2, 0xC, 0xD, 0x8}, {0x1, 0x0, 0xE, 0xF, 0xD}, {0x7, 0x6, 0x8, 0x9, 0x3}, {0x5, 0x4, 0xA, 0xB, 0x7},
    {0x3, 0x2, 0xC, 0xD, 0x9}, {0x1, 0x0, 0xE, 0xF, 0xC}, {0x7, 0x6, 0x8, 0x9, 0x2}, {0x5, 0x4, 0xA, 0xB, 0x6},
    {0x8, 0x9, 0x7, 0x6, 0x3}, {0xA, 0xB, 0x5, 0x4, 0x7}, {0xC, 0xD, 0x3, 0x2, 0x8}, {0xE, 0xF, 0x1, 0x0, 0xD},
};

/* K1..K16, or K17..K32 from the x that the first sixteen left behind. */
static void sixteen_subkeys(uint32_t k[16], uint8_t x[16])
{
    static const uint32_t *const last[4] = {S5, S6, S7, S8};
    uint8_t z[16];

    for (unsigned i = 0; i < 16; i++) {
        const uint8_t *n = subkey_bytes[i];
        const uint8_t *from = i / 4 % 2 == 0 ? z : x;

        if (i % 8 == 0) {
            mix(z, x, 0);
        } else if (i % 8 == 4) {
            mix(x, z, 8);
        }
        k[i] = S5[from[n[0]]] ^ S6[from[n[1]]] ^ S7[from[n[2]]] ^ S8[from[n[3]]] ^ last[i % 4][from[n[4]]];
    }
}

static int setkey(void *context, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct cast5_ctx *ctx = context;
    uint8_t x[16] = {0};

    (void)policy; /* 1: no weak keys */
    if (key_len < MIN_KEY_LEN || key_len > MAX_KEY_LEN) {
        return SUBJECT_BAD_KEY_LEN;
    }
    /* 2.5: shorter keys are padded with zeros; up to 80 bits there are 12 rounds. */
    memcpy(x, key, key_len);
    ctx->num_rounds = key_len <= SHORT_KEY_LEN ? 12 : 16;
    sixteen_subkeys(ctx->mask, x);
    sixteen_subkeys(ctx->turn, x);
    for (unsigned i = 0; i < MAX_ROUNDS; i++) {
        ctx->turn[i] &= 31u; /* 2.4.1 */
    }
    return SUBJECT_OK;
}

/* One block at a time. */

ALWAYS_INLINE uint32_t f(enum type type, uint32_t d, const struct cast5_ctx *ctx, unsigned i)
{
    uint32_t v = type == TYPE_1 ? ctx->mask[i] + d : type == TYPE_2 ? ctx->mask[i] ^ d : ctx->mask[i] - d;
    uint32_t a, b, c;

    v = rotl32(v, ctx->turn[i]);
    a = S1[v >> 24];
    b = S2[(uint8_t)(v >> 16)];
    c = S3[(uint8_t)(v >> 8)];
    d = S4[(uint8_t)v];
    return type == TYPE_1 ? ((a ^ b) - c) + d : type == TYPE_2 ? ((a - b) + c) ^ d : ((a + b) ^ c) - d;
}

/* 2: the halves l and r take the part of Ri in turn, and come out exchanged. */
static void encrypt_block(const struct cast5_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    uint32_t l = load_be32(src);
    uint32_t r = load_be32(src + 4);

    SUBJECT_PATH("block");
    l ^= f(TYPE_1, r, ctx, 0);
    r ^= f(TYPE_2, l, ctx, 1);
    l ^= f(TYPE_3, r, ctx, 2);
    r ^= f(TYPE_1, l, ctx, 3);
    l ^= f(TYPE_2, r, ctx, 4);
    r ^= f(TYPE_3, l, ctx, 5);
    l ^= f(TYPE_1, r, ctx, 6);
    r ^= f(TYPE_2, l, ctx, 7);
    l ^= f(TYPE_3, r, ctx, 8);
    r ^= f(TYPE_1, l, ctx, 9);
    l ^= f(TYPE_2, r, ctx, 10);
    r ^= f(TYPE_3, l, ctx, 11);
    if (ctx->num_rounds == 16) {
        l ^= f(TYPE_1, r, ctx, 12);
        r ^= f(TYPE_2, l, ctx, 13);
        l ^= f(TYPE_3, r, ctx, 14);
        r ^= f(TYPE_1, l, ctx, 15);
    }
    store_be32(dst, r);
    store_be32(dst + 4, l);
}

/* 2: the same rounds in reverse order. */
static void decrypt_block(const struct cast5_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    uint32_t r = load_be32(src);
    uint32_t l = load_be32(src + 4);

    SUBJECT_PATH("block");
    if (ctx->num_rounds == 16) {
        r ^= f(TYPE_1, l, ctx, 15);
        l ^= f(TYPE_3, r, ctx, 14);
        r ^= f(TYPE_2, l, ctx, 13);
        l ^= f(TYPE_1, r, ctx, 12);
    }
    r ^= f(TYPE_3, l, ctx, 11);
    l ^= f(TYPE_2, r, ctx, 10);
    r ^= f(TYPE_1, l, ctx, 9);
    l ^= f(TYPE_3, r, ctx, 8);
    r ^= f(TYPE_2, l, ctx, 7);
    l ^= f(TYPE_1, r, ctx, 6);
    r ^= f(TYPE_3, l, ctx, 5);
    l ^= f(TYPE_2, r, ctx, 4);
    r ^= f(TYPE_1, l, ctx, 3);
    l ^= f(TYPE_3, r, ctx, 2);
    r ^= f(TYPE_2, l, ctx, 1);
    l ^= f(TYPE_1, r, ctx, 0);
    store_be32(dst, l);
    store_be32(dst + 4, r);
}

/* Chunks side by side. */

ALWAYS_INLINE __m128i load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

ALWAYS_INLINE void store(uint8_t *p, __m128i v)
{
    _mm_storeu_si128((__m128i *)(void *)p, v);
}

ALWAYS_INLINE __m128i lane_0(uint32_t v)
{
    return _mm_cvtsi32_si128((int)v);
}

/* In a, b, c or d an instruction each takes out the lowest byte and the one above it; the next two come down by a
 * shift, which the compiler must not turn into four shifts of the whole. */
#define IN_BYTE_REGISTER(v) __asm__("" : "+Q"(v))
#define NEXT_BYTES(v)        \
    do {                     \
        (v) >>= 16;          \
        IN_BYTE_REGISTER(v); \
    } while (0)
#define LOW(v) ((uint8_t)(v))
#define HIGH(v) ((uint8_t)((v) >> 8))
#define INSERT(v, word, lane) _mm_insert_epi32((v), (int)(word), (lane))

struct boxes {
    __m128i s1, s2, s3, s4;
};

/* The S-boxes on the bytes Ia to Id of four words. */
ALWAYS_INLINE struct boxes look_up(__m128i v)
{
    uint64_t first = (uint64_t)_mm_cvtsi128_si64(v);
    uint64_t second = (uint64_t)_mm_extract_epi64(v, 1);
    struct boxes out;

    IN_BYTE_REGISTER(first);
    IN_BYTE_REGISTER(second);
    out.s4 = lane_0(S4[LOW(first)]);
    out.s3 = lane_0(S3[HIGH(first)]);
    NEXT_BYTES(first);
    out.s2 = lane_0(S2[LOW(first)]);
    out.s1 = lane_0(S1[HIGH(first)]);
    NEXT_BYTES(first);
    out.s4 = INSERT(out.s4, S4[LOW(first)], 1);
    out.s3 = INSERT(out.s3, S3[HIGH(first)], 1);
    NEXT_BYTES(first);
    out.s2 = INSERT(out.s2, S2[LOW(first)], 1);
    out.s1 = INSERT(out.s1, S1[HIGH(first)], 1);
    out.s4 = INSERT(out.s4, S4[LOW(second)], 2);
    out.s3 = INSERT(out.s3, S3[HIGH(second)], 2);
    NEXT_BYTES(second);
    out.s2 = INSERT(out.s2, S2[LOW(second)], 2);
    out.s1 = INSERT(out.s1, S1[HIGH(second)], 2);
    NEXT_BYTES(second);
    out.s4 = INSERT(out.s4, S4[LOW(second)], 3);
    out.s3 = INSERT(out.s3, S3[HIGH(second)], 3);
    NEXT_BYTES(second);
    out.s2 = INSERT(out.s2, S2[LOW(second)], 3);
    out.s1 = INSERT(out.s1, S1[HIGH(second)], 3);
    return out;
}

/* Kmi in every lane; the counts of the two shifts that make up the rotation by Kri. */
struct round_key {
    __m128i mask, left, right;
};

ALWAYS_INLINE __m128i f_chunk(enum type type, __m128i d, struct round_key k)
{
    __m128i v = type == TYPE_1   ? _mm_add_epi32(k.mask, d)
                : type == TYPE_2 ? _mm_xor_si128(k.mask, d)
                                 : _mm_sub_epi32(k.mask, d);
    struct boxes s = look_up(_mm_or_si128(_mm_sll_epi32(v, k.left), _mm_srl_epi32(v, k.right)));

    switch (type) {
    case TYPE_1: return _mm_add_epi32(_mm_sub_epi32(_mm_xor_si128(s.s1, s.s2), s.s3), s.s4);
    case TYPE_2: return _mm_xor_si128(_mm_add_epi32(_mm_sub_epi32(s.s1, s.s2), s.s3), s.s4);
    default: return _mm_sub_epi32(_mm_xor_si128(_mm_add_epi32(s.s1, s.s2), s.s3), s.s4);
    }
}

/* to ^= f(from) in round i. A shift by 32, where Kri is 0, gives zeros, which is right. */
ALWAYS_INLINE void one_round(enum type type, const struct cast5_ctx *ctx, unsigned i, __m128i *to, const __m128i *from,
                             unsigned chunks)
{
    struct round_key k;

    k.mask = _mm_set1_epi32((int)ctx->mask[i]);
    k.left = lane_0(ctx->turn[i]);
    k.right = _mm_sub_epi32(lane_0(32), k.left);
    to[0] = _mm_xor_si128(to[0], f_chunk(type, from[0], k));
    if (chunks == WIDE) {
        to[1] = _mm_xor_si128(to[1], f_chunk(type, from[1], k));
        to[2] = _mm_xor_si128(to[2], f_chunk(type, from[2], k));
        to[3] = _mm_xor_si128(to[3], f_chunk(type, from[3], k));
    }
}

/* Types repeat after three rounds and halves after two: six rounds make a loop, and 16 rounds are 6 + 6 + 4. */
ALWAYS_INLINE void encrypt_rounds(const struct cast5_ctx *ctx, __m128i *l, __m128i *r, unsigned chunks)
{
    for (unsigned i = 0;; i += 6) {
        one_round(TYPE_1, ctx, i, l, r, chunks);
        one_round(TYPE_2, ctx, i + 1, r, l, chunks);
        one_round(TYPE_3, ctx, i + 2, l, r, chunks);
        one_round(TYPE_1, ctx, i + 3, r, l, chunks);
        if (i + 4 == MAX_ROUNDS) {
            return;
        }
        one_round(TYPE_2, ctx, i + 4, l, r, chunks);
        one_round(TYPE_3, ctx, i + 5, r, l, chunks);
        if (i + 6 == ctx->num_rounds) {
            return;
        }
    }
}

/* The same in reverse: 16 rounds are 4 + 6 + 6. i is the round above the six. */
ALWAYS_INLINE void decrypt_rounds(const struct cast5_ctx *ctx, __m128i *l, __m128i *r, unsigned chunks)
{
    for (unsigned i = ctx->num_rounds == MAX_ROUNDS ? 18 : 12; i > 0; i -= 6) {
        if (i <= 12) {
            one_round(TYPE_3, ctx, i - 1, r, l, chunks);
            one_round(TYPE_2, ctx, i - 2, l, r, chunks);
        }
        one_round(TYPE_1, ctx, i - 3, r, l, chunks);
        one_round(TYPE_3, ctx, i - 4, l, r, chunks);
        one_round(TYPE_2, ctx, i - 5, r, l, chunks);
        one_round(TYPE_1, ctx, i - 6, l, r, chunks);
    }
}

/* Big-endian words from or to the host's. */
ALWAYS_INLINE __m128i swap_words(__m128i v)
{
    return _mm_shuffle_epi8(v, _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12));
}

#define EVEN_WORDS 0x88
#define ODD_WORDS 0xdd
#define SELECT_WORDS(a, b, which) _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), (which)))

/* The first and the second words of each chunk's four blocks. */
ALWAYS_INLINE void halves_from_pairs(__m128i *first, __m128i *second, const __m128i *pairs, unsigned chunks)
{
    for (unsigned i = 0; i < chunks; i++) {
        __m128i a = swap_words(pairs[2 * i]);
        __m128i b = swap_words(pairs[2 * i + 1]);
        first[i] = SELECT_WORDS(a, b, EVEN_WORDS);
        second[i] = SELECT_WORDS(a, b, ODD_WORDS);
    }
}

ALWAYS_INLINE void halves_to_pairs(__m128i *pairs, const __m128i *first, const __m128i *second, unsigned chunks)
{
    for (unsigned i = 0; i < chunks; i++) {
        pairs[2 * i] = swap_words(_mm_unpacklo_epi32(first[i], second[i]));
        pairs[2 * i + 1] = swap_words(_mm_unpackhi_epi32(first[i], second[i]));
    }
}

static void encrypt_16(const struct cast5_ctx *ctx, __m128i pairs[WAYS / 2])
{
    __m128i l[WIDE], r[WIDE];

    SUBJECT_PATH("16way");
    halves_from_pairs(l, r, pairs, WIDE);
    encrypt_rounds(ctx, l, r, WIDE);
    halves_to_pairs(pairs, r, l, WIDE);
}

static void encrypt_4(const struct cast5_ctx *ctx, __m128i pairs[CHUNK / 2])
{
    __m128i l[1], r[1];

    SUBJECT_PATH("4way");
    halves_from_pairs(l, r, pairs, 1);
    encrypt_rounds(ctx, l, r, 1);
    halves_to_pairs(pairs, r, l, 1);
}

static void decrypt_16(const struct cast5_ctx *ctx, __m128i pairs[WAYS / 2])
{
    __m128i l[WIDE], r[WIDE];

    SUBJECT_PATH("16way");
    halves_from_pairs(r, l, pairs, WIDE);
    decrypt_rounds(ctx, l, r, WIDE);
    halves_to_pairs(pairs, l, r, WIDE);
}

static void decrypt_4(const struct cast5_ctx *ctx, __m128i pairs[CHUNK / 2])
{
    __m128i l[1], r[1];

    SUBJECT_PATH("4way");
    halves_from_pairs(r, l, pairs, 1);
    decrypt_rounds(ctx, l, r, 1);
    halves_to_pairs(pairs, l, r, 1);
}

/* How many pairs of blocks go next side by side: those of 16 blocks, of 4, or none. */
ALWAYS_INLINE size_t next_pairs(size_t num_blocks)
{
    return num_blocks >= WAYS ? WAYS / 2 : num_blocks >= CHUNK ? CHUNK / 2 : 0;
}

ALWAYS_INLINE void encrypt_pairs(const struct cast5_ctx *ctx, __m128i *pairs, size_t num_pairs)
{
    if (num_pairs == WAYS / 2) {
        encrypt_16(ctx, pairs);
    } else {
        encrypt_4(ctx, pairs);
    }
}

ALWAYS_INLINE void decrypt_pairs(const struct cast5_ctx *ctx, __m128i *pairs, size_t num_pairs)
{
    if (num_pairs == WAYS / 2) {
        decrypt_16(ctx, pairs);
    } else {
        decrypt_4(ctx, pairs);
    }
}

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (size_t n = next_pairs(num_blocks); n > 0; n = next_pairs(num_blocks)) {
        __m128i pairs[WAYS / 2];
        for (size_t i = 0; i < n; i++) {
            pairs[i] = load(src + PAIR_LEN * i);
        }
        encrypt_pairs(ctx, pairs, n);
        for (size_t i = 0; i < n; i++) {
            store(dst + PAIR_LEN * i, pairs[i]);
        }
        dst += PAIR_LEN * n;
        src += PAIR_LEN * n;
        num_blocks -= 2 * n;
    }
    for (; num_blocks > 0; num_blocks--) {
        encrypt_block(ctx, dst, src);
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (size_t n = next_pairs(num_blocks); n > 0; n = next_pairs(num_blocks)) {
        __m128i pairs[WAYS / 2];
        for (size_t i = 0; i < n; i++) {
            pairs[i] = load(src + PAIR_LEN * i);
        }
        decrypt_pairs(ctx, pairs, n);
        for (size_t i = 0; i < n; i++) {
            store(dst + PAIR_LEN * i, pairs[i]);
        }
        dst += PAIR_LEN * n;
        src += PAIR_LEN * n;
        num_blocks -= 2 * n;
    }
    for (; num_blocks > 0; num_blocks--) {
        decrypt_block(ctx, dst, src);
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
}

/* Modes. Of each step all input is in registers or on the stack before its first output is written: in place the two
 * are the same bytes. */

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

ALWAYS_INLINE uint64_t load_block(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, BLOCK_LEN);
    return v;
}

ALWAYS_INLINE void store_block(uint8_t *p, uint64_t v)
{
    memcpy(p, &v, BLOCK_LEN);
}

/* The iv as the second block of a pair. */
ALWAYS_INLINE __m128i chain_from_iv(uint64_t iv)
{
    return _mm_set_epi64x((int64_t)iv, 0);
}

/* The two blocks that stand before each block of pair, of which the first is the second of the pair before. */
ALWAYS_INLINE __m128i blocks_before(__m128i pair, __m128i pair_before)
{
    return _mm_alignr_epi8(pair, pair_before, BLOCK_LEN);
}

static void cbc_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    size_t num_blocks = len / BLOCK_LEN;
    uint64_t before;

    if (num_blocks == 0) {
        return;
    }
    before = load_block(iv);
    for (size_t n = next_pairs(num_blocks); n > 0; n = next_pairs(num_blocks)) {
        __m128i chain = chain_from_iv(before), in[WAYS / 2], out[WAYS / 2];
        for (size_t i = 0; i < n; i++) {
            in[i] = out[i] = load(src + PAIR_LEN * i);
        }
        decrypt_pairs(ctx, out, n);
        for (size_t i = 0; i < n; i++) {
            store(dst + PAIR_LEN * i, _mm_xor_si128(out[i], blocks_before(in[i], chain)));
            chain = in[i];
        }
        before = (uint64_t)_mm_extract_epi64(chain, 1);
        dst += PAIR_LEN * n;
        src += PAIR_LEN * n;
        num_blocks -= 2 * n;
    }
    for (; num_blocks > 0; num_blocks--) {
        uint64_t block = load_block(src);
        decrypt_block(ctx, dst, src);
        store_block(dst, load_block(dst) ^ before);
        before = block;
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
    store_block(iv, before);
}

static void cfb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    uint8_t keystream[BLOCK_LEN];

    for (size_t n = next_pairs(len / BLOCK_LEN); n > 0; n = next_pairs(len / BLOCK_LEN)) {
        __m128i chain = chain_from_iv(load_block(iv)), in[WAYS / 2], out[WAYS / 2];
        for (size_t i = 0; i < n; i++) {
            in[i] = load(src + PAIR_LEN * i);
            out[i] = blocks_before(in[i], chain);
            chain = in[i];
        }
        encrypt_pairs(ctx, out, n);
        for (size_t i = 0; i < n; i++) {
            store(dst + PAIR_LEN * i, _mm_xor_si128(out[i], in[i]));
        }
        store_block(iv, (uint64_t)_mm_extract_epi64(chain, 1));
        dst += PAIR_LEN * n;
        src += PAIR_LEN * n;
        len -= PAIR_LEN * n;
    }
    for (; len >= BLOCK_LEN; len -= BLOCK_LEN) {
        encrypt_block(ctx, keystream, iv);
        memcpy(iv, src, BLOCK_LEN);
        xor_bytes(dst, iv, keystream, BLOCK_LEN);
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
    if (len > 0) {
        encrypt_block(ctx, keystream, iv);
        xor_bytes(dst, src, keystream, len);
    }
}

/* The counters c and c + 1 as the blocks of a pair. */
ALWAYS_INLINE __m128i pair_from_counters(__m128i c)
{
    return _mm_shuffle_epi8(c, _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8));
}

static void ctr_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    uint64_t counter = load_be64(iv);
    uint8_t keystream[BLOCK_LEN];

    for (size_t n = next_pairs(len / BLOCK_LEN); n > 0; n = next_pairs(len / BLOCK_LEN)) {
        __m128i c = _mm_set_epi64x((int64_t)(counter + 1), (int64_t)counter), pairs[WAYS / 2];
        for (size_t i = 0; i < n; i++) {
            pairs[i] = pair_from_counters(c);
            c = _mm_add_epi64(c, _mm_set1_epi64x(2));
        }
        encrypt_pairs(ctx, pairs, n);
        for (size_t i = 0; i < n; i++) {
            store(dst + PAIR_LEN * i, _mm_xor_si128(pairs[i], load(src + PAIR_LEN * i)));
        }
        counter += 2 * n;
        dst += PAIR_LEN * n;
        src += PAIR_LEN * n;
        len -= PAIR_LEN * n;
    }
    while (len > 0) {
        size_t part = len < BLOCK_LEN ? len : BLOCK_LEN;
        store_be64(keystream, counter++);
        encrypt_block(ctx, keystream, keystream);
        xor_bytes(dst, src, keystream, part);
        dst += part;
        src += part;
        len -= part;
    }
    store_be64(iv, counter);
}

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = WAYS,
    .ctx_len = sizeof(struct cast5_ctx),
    .ctx_align = _Alignof(struct cast5_ctx),
    .setkey = setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
    .ecb = {ecb_encrypt, ecb_decrypt},
    .cbc = {NULL, cbc_decrypt}, /* encryption is one block at a time, fused or not; so is that of cfb */
    .cfb = {NULL, cfb_decrypt},
    .ctr = {ctr_crypt, ctr_crypt},
};

const struct subject_leaf *cast5_x86_64_avx_16way(uint64_t features);

const struct subject_leaf *cast5_x86_64_avx_16way(uint64_t features)
{
    return (features & NEEDED) == NEEDED ? &leaf : NULL;
}
