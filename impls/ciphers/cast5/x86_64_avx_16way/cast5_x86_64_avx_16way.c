/* SPDX-License-Identifier: Apache-2.0
 *
 * CAST-128 (RFC 2144, whose section numbers these are) with AVX, 16 blocks side by side.
 *
 * Four blocks make a chunk: one register holds their left halves, one their right halves. Masking, rotating and joining
 * what the S-boxes give are vector instructions; indices are taken byte by byte in general registers, and what they
 * address is loaded straight into lanes (cast5_rounds.S). 16 blocks go as four chunks side by side, fewer as one chunk
 * at a time, and the last one to three blocks in plain C.
 *
 * Tables are addressed by data: not constant-time. */
#include <immintrin.h>

#include "cast5_sbox.h"
#include "subject.h"
#include "subject_asm.h"

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

/* 2.1: round i has the masking key mask[i] and a rotation key. left[i] turns the word by 16 bits more than that: Ia and
 * Ib, which are joined first, then lie in the low half, where an instruction each takes them out. right[i] is what a
 * shift to the right needs to complete the turn. cast5_rounds.S knows this layout, and looks one round ahead of the
 * first and the last. */
struct cast5_ctx {
    uint32_t num_rounds; /* 12 or 16 */
    uint32_t mask[MAX_ROUNDS];
    uint32_t left[MAX_ROUNDS];
    uint32_t right[MAX_ROUNDS];
    uint32_t looked_at; /* 0 */
};

_Static_assert(offsetof(struct cast5_ctx, mask) == 4 && offsetof(struct cast5_ctx, left) == 4 + 64 &&
                   offsetof(struct cast5_ctx, right) == 4 + 128 && sizeof(struct cast5_ctx) == 4 + 192 + 4,
               "the layout that cast5_rounds.S knows");

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

/* The bytes of z (first and third row of four subkeys) or x (second and fourth) from which K1 to K16 come: indices into
 * S5, S6, S7 and S8, and into the box that is joined last, which is S5 to S8 in turn. */
static const uint8_t subkey_bytes[16][5] = {
    /* clang-format off */
    {0x8, 0x9, 0x7, 0x6, 0x2}, {0xA, 0xB, 0x5, 0x4, 0x6}, {0xC, 0xD, 0x3, 0x2, 0x9}, {0xE, 0xF, 0x1, 0x0, 0xC},
    {0x3, 0x2, 0xC, 0xD, 0x8}, {0x1, 0x0, 0xE, 0xF, 0xD}, {0x7, 0x6, 0x8, 0x9, 0x3}, {0x5, 0x4, 0xA, 0xB, 0x7},
    {0x3, 0x2, 0xC, 0xD, 0x9}, {0x1, 0x0, 0xE, 0xF, 0xC}, {0x7, 0x6, 0x8, 0x9, 0x2}, {0x5, 0x4, 0xA, 0xB, 0x6},
    {0x8, 0x9, 0x7, 0x6, 0x3}, {0xA, 0xB, 0x5, 0x4, 0x7}, {0xC, 0xD, 0x3, 0x2, 0x8}, {0xE, 0xF, 0x1, 0x0, 0xD},
    /* clang-format on */
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
    sixteen_subkeys(ctx->left, x);
    for (unsigned i = 0; i < MAX_ROUNDS; i++) {
        ctx->left[i] = (ctx->left[i] + 16) & 31u; /* 2.4.1: of Kri five bits count */
        ctx->right[i] = 32 - ctx->left[i];
    }
    ctx->looked_at = 0;
    return SUBJECT_OK;
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

/* What big-endian words stand in a block, first in the upper half; and back. */
ALWAYS_INLINE uint64_t swap_block(uint64_t v)
{
    return __builtin_bswap64(v);
}

/* One block at a time. */

/* to ^ f(from) in round i. Nothing but the chain through a and b has to wait for them. */
ALWAYS_INLINE uint32_t one_round(enum type type, uint32_t to, uint32_t from, const struct cast5_ctx *ctx, unsigned i)
{
    uint32_t mask = ctx->mask[i];
    uint32_t v = rotl32(type == TYPE_1 ? mask + from : type == TYPE_2 ? mask ^ from : mask - from, ctx->left[i]);
    size_t a, b, c, d;

    /* Left to themselves compilers need five instructions, or copies of v. */
    __asm__("movzbl %b[v], %k[b]\n\t"
            "movzbl %h[v], %k[a]\n\t"
            "shrl $16, %[v]"
            : [v] "+Q"(v), [b] "=&r"(b), [a] "=&R"(a)
            :
            : "cc");
    c = v >> 8;
    d = (uint8_t)v;

    switch (type) {
    case TYPE_1: return to ^ (((S1[a] ^ S2[b]) - S3[c]) + S4[d]);
    case TYPE_2: return (to ^ S4[d]) ^ ((S1[a] - S2[b]) + S3[c]);
    default: return to ^ (((S1[a] + S2[b]) ^ S3[c]) - S4[d]);
    }
}

/* 2: the halves l and r take the part of Ri in turn, and come out exchanged. */
static void encrypt_block(const struct cast5_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    uint64_t block = swap_block(load_block(src));
    uint32_t l = (uint32_t)(block >> 32);
    uint32_t r = (uint32_t)block;

    SUBJECT_PATH("block");
    l = one_round(TYPE_1, l, r, ctx, 0);
    r = one_round(TYPE_2, r, l, ctx, 1);
    l = one_round(TYPE_3, l, r, ctx, 2);
    r = one_round(TYPE_1, r, l, ctx, 3);
    l = one_round(TYPE_2, l, r, ctx, 4);
    r = one_round(TYPE_3, r, l, ctx, 5);
    l = one_round(TYPE_1, l, r, ctx, 6);
    r = one_round(TYPE_2, r, l, ctx, 7);
    l = one_round(TYPE_3, l, r, ctx, 8);
    r = one_round(TYPE_1, r, l, ctx, 9);
    l = one_round(TYPE_2, l, r, ctx, 10);
    r = one_round(TYPE_3, r, l, ctx, 11);
    if (ctx->num_rounds == 16) {
        l = one_round(TYPE_1, l, r, ctx, 12);
        r = one_round(TYPE_2, r, l, ctx, 13);
        l = one_round(TYPE_3, l, r, ctx, 14);
        r = one_round(TYPE_1, r, l, ctx, 15);
    }
    store_block(dst, swap_block(((uint64_t)r << 32) | l));
}

/* 2: the same rounds in reverse order. */
static void decrypt_block(const struct cast5_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    uint64_t block = swap_block(load_block(src));
    uint32_t r = (uint32_t)(block >> 32);
    uint32_t l = (uint32_t)block;

    SUBJECT_PATH("block");
    if (ctx->num_rounds == 16) {
        r = one_round(TYPE_1, r, l, ctx, 15);
        l = one_round(TYPE_3, l, r, ctx, 14);
        r = one_round(TYPE_2, r, l, ctx, 13);
        l = one_round(TYPE_1, l, r, ctx, 12);
    }
    r = one_round(TYPE_3, r, l, ctx, 11);
    l = one_round(TYPE_2, l, r, ctx, 10);
    r = one_round(TYPE_1, r, l, ctx, 9);
    l = one_round(TYPE_3, l, r, ctx, 8);
    r = one_round(TYPE_2, r, l, ctx, 7);
    l = one_round(TYPE_1, l, r, ctx, 6);
    r = one_round(TYPE_3, r, l, ctx, 5);
    l = one_round(TYPE_2, l, r, ctx, 4);
    r = one_round(TYPE_1, r, l, ctx, 3);
    l = one_round(TYPE_3, l, r, ctx, 2);
    r = one_round(TYPE_2, r, l, ctx, 1);
    l = one_round(TYPE_1, l, r, ctx, 0);
    store_block(dst, swap_block(((uint64_t)l << 32) | r));
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

/* Big-endian words from or to the host's. */
ALWAYS_INLINE __m128i swap_words(__m128i v)
{
    return _mm_shuffle_epi8(v, _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12));
}

#define EVEN_WORDS 0x88
#define ODD_WORDS 0xdd
#define SELECT_WORDS(a, b, which) _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), (which)))

typedef void SUBJECT_ASM_ABI rounds_fn(const struct cast5_ctx *ctx, __m128i *halves, const uint32_t *const boxes[4]);

rounds_fn cast5_rounds_encrypt_16, cast5_rounds_decrypt_16, cast5_rounds_encrypt_4, cast5_rounds_decrypt_4;

static const uint32_t *const boxes[4] = {S1, S2, S3, S4};

/* All rounds of some chunks, given as pairs of blocks. 2: each round changes the half that the one before did not, the
 * first one the first half, and the halves come out exchanged; decrypting, too. */
ALWAYS_INLINE void crypt_chunks(const struct cast5_ctx *ctx, __m128i *pairs, size_t chunks, rounds_fn *rounds)
{
    __m128i halves[2 * WIDE];

    for (size_t i = 0; i < chunks; i++) {
        __m128i a = swap_words(pairs[2 * i]);
        __m128i b = swap_words(pairs[2 * i + 1]);
        halves[i] = SELECT_WORDS(a, b, EVEN_WORDS);
        halves[chunks + i] = SELECT_WORDS(a, b, ODD_WORDS);
    }
    SUBJECT_ASM_CALL (*rounds)(ctx, halves, boxes);
    for (size_t i = 0; i < chunks; i++) {
        pairs[2 * i] = swap_words(_mm_unpacklo_epi32(halves[chunks + i], halves[i]));
        pairs[2 * i + 1] = swap_words(_mm_unpackhi_epi32(halves[chunks + i], halves[i]));
    }
}

/* How many pairs of blocks go next side by side: those of 16 blocks, of 4, or none. */
ALWAYS_INLINE size_t next_pairs(size_t num_blocks)
{
    return num_blocks >= WAYS ? WAYS / 2 : num_blocks >= CHUNK ? CHUNK / 2 : 0;
}

static void encrypt_pairs(const struct cast5_ctx *ctx, __m128i *pairs, size_t num_pairs)
{
    if (num_pairs == WAYS / 2) {
        SUBJECT_PATH("16way");
        crypt_chunks(ctx, pairs, WIDE, cast5_rounds_encrypt_16);
    } else {
        SUBJECT_PATH("4way");
        crypt_chunks(ctx, pairs, 1, cast5_rounds_encrypt_4);
    }
}

static void decrypt_pairs(const struct cast5_ctx *ctx, __m128i *pairs, size_t num_pairs)
{
    if (num_pairs == WAYS / 2) {
        SUBJECT_PATH("16way");
        crypt_chunks(ctx, pairs, WIDE, cast5_rounds_decrypt_16);
    } else {
        SUBJECT_PATH("4way");
        crypt_chunks(ctx, pairs, 1, cast5_rounds_decrypt_4);
    }
}

typedef void crypt_pairs_fn(const struct cast5_ctx *ctx, __m128i *pairs, size_t num_pairs);
typedef void crypt_block_fn(const struct cast5_ctx *ctx, uint8_t *dst, const uint8_t *src);

/* Inlined, so that neither function is called through a pointer. */
ALWAYS_INLINE void crypt_blocks(const struct cast5_ctx *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks,
                                crypt_pairs_fn *crypt_pairs, crypt_block_fn *crypt_block)
{
    for (size_t n = next_pairs(num_blocks); n > 0; n = next_pairs(num_blocks)) {
        __m128i pairs[WAYS / 2];
        for (size_t i = 0; i < n; i++) {
            pairs[i] = load(src + PAIR_LEN * i);
        }
        crypt_pairs(ctx, pairs, n);
        for (size_t i = 0; i < n; i++) {
            store(dst + PAIR_LEN * i, pairs[i]);
        }
        dst += PAIR_LEN * n;
        src += PAIR_LEN * n;
        num_blocks -= 2 * n;
    }
    for (; num_blocks > 0; num_blocks--) {
        crypt_block(ctx, dst, src);
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
}

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    crypt_blocks(ctx, dst, src, num_blocks, encrypt_pairs, encrypt_block);
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    crypt_blocks(ctx, dst, src, num_blocks, decrypt_pairs, decrypt_block);
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
