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

#include "cast5_keys.h"
#include "subject_asm.h"

#define CHUNK 4u
#define WAYS 16u
#define WIDE (WAYS / CHUNK) /* chunks side by side */
#define PAIR_LEN 16u        /* a vector holds two blocks as they lie in memory */

#define NEEDED (SUBJECT_X86_SSSE3 | SUBJECT_X86_SSE41 | SUBJECT_X86_AVX)

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

/* Chunks side by side. */

typedef __m128i pair;

ALWAYS_INLINE pair load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

ALWAYS_INLINE void store(uint8_t *p, pair v)
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

static void encrypt_pairs(const struct cast5_ctx *ctx, pair *pairs, size_t num_pairs)
{
    if (num_pairs == WAYS / 2) {
        SUBJECT_PATH("16way");
        crypt_chunks(ctx, pairs, WIDE, cast5_rounds_encrypt_16);
    } else {
        SUBJECT_PATH("4way");
        crypt_chunks(ctx, pairs, 1, cast5_rounds_encrypt_4);
    }
}

static void decrypt_pairs(const struct cast5_ctx *ctx, pair *pairs, size_t num_pairs)
{
    if (num_pairs == WAYS / 2) {
        SUBJECT_PATH("16way");
        crypt_chunks(ctx, pairs, WIDE, cast5_rounds_decrypt_16);
    } else {
        SUBJECT_PATH("4way");
        crypt_chunks(ctx, pairs, 1, cast5_rounds_decrypt_4);
    }
}

ALWAYS_INLINE pair xor_pairs(pair a, pair b)
{
    return _mm_xor_si128(a, b);
}

/* The iv as the second block of a pair. */
ALWAYS_INLINE pair chain_from_iv(uint64_t iv)
{
    return _mm_set_epi64x((int64_t)iv, 0);
}

/* The two blocks that stand before each block of v, of which the first is the second of the pair before. */
ALWAYS_INLINE pair blocks_before(pair v, pair pair_before)
{
    return _mm_alignr_epi8(v, pair_before, BLOCK_LEN);
}

ALWAYS_INLINE uint64_t second_block(pair v)
{
    return (uint64_t)_mm_extract_epi64(v, 1);
}

/* Two counters: c and the one behind it. */
ALWAYS_INLINE pair counters_from(uint64_t c)
{
    return _mm_set_epi64x((int64_t)(c + 1), (int64_t)c);
}

ALWAYS_INLINE pair next_counters(pair c)
{
    return _mm_add_epi64(c, _mm_set1_epi64x(2));
}

/* The counters c and c + 1 as the blocks of a pair. */
ALWAYS_INLINE pair pair_from_counters(pair c)
{
    return _mm_shuffle_epi8(c, _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8));
}

#include "cast5_fused.h"

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
