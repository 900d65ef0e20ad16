/* SPDX-License-Identifier: Apache-2.0
 *
 * SM4 with AVX2: eight blocks make a group, whose four registers hold word j of each; two groups go side by side.
 *
 * AESENCLAST with a zero key gives AES's S-box. The state stays mapped into AES's field from the first round to the
 * last, so that SM4's S-box and linear transformation are two affine look-ups behind it, each by low and high nibble
 * (derive_affine.py has the reasons and proves it). ShiftRows is undone by the shuffles that rotate words. No byte is
 * swapped: bytes of a word stand in the order of memory, and what rotates words to the left moves them down.
 *
 * The file that includes this one defines SUB_AND_SHIFT, instructions that put both halves of %[low] through AESENCLAST
 * with the zeros at (%[constants]) for a key; %[high] is free in them.
 */
#ifndef SM4_AVX2_H
#define SM4_AVX2_H

#include <immintrin.h>

#include "sm4_block.h"

#define BLOCK_LEN 16u
#define VEC_LEN 32u
#define GROUP_VECS 4
#define WIDE_VECS 8
#define GROUP 8u
#define WAYS 16u
#define WIDE_LEN (WAYS * BLOCK_LEN)

/* The round keys for single blocks and, mapped and with the S-box's constant, for groups. */
struct sm4_ctx {
    struct sm4_keys plain, mapped;
};

/* One direction of them. */
struct schedule {
    const uint32_t *plain, *mapped;
};

/* As derive_affine.py prints them. */
#define INTO_CONSTANT 0x3e
static const uint8_t into_lo[16] = {0x00, 0x8c, 0x30, 0xbc, 0x85, 0x09, 0xb5, 0x39,
                                    0x9f, 0x13, 0xaf, 0x23, 0x1a, 0x96, 0x2a, 0xa6};
static const uint8_t into_hi[16] = {0x00, 0xdc, 0x2e, 0xf2, 0xc5, 0x19, 0xeb, 0x37,
                                    0x08, 0xd4, 0x26, 0xfa, 0xcd, 0x11, 0xe3, 0x3f};
static const uint8_t first_lo[16] = {0x0b, 0x8d, 0xd8, 0x5e, 0x73, 0xf5, 0xa0, 0x26,
                                     0x17, 0x91, 0xc4, 0x42, 0x6f, 0xe9, 0xbc, 0x3a};
static const uint8_t first_hi[16] = {0x00, 0xeb, 0xdc, 0x37, 0xf0, 0x1b, 0x2c, 0xc7,
                                     0xcd, 0x26, 0x11, 0xfa, 0x3d, 0xd6, 0xe1, 0x0a};
static const uint8_t second_lo[16] = {0x76, 0xa5, 0x7b, 0xa8, 0xd6, 0x05, 0xdb, 0x08,
                                      0x34, 0xe7, 0x39, 0xea, 0x94, 0x47, 0x99, 0x4a};
static const uint8_t second_hi[16] = {0x00, 0xb4, 0x49, 0xfd, 0x82, 0x36, 0xcb, 0x7f,
                                      0xbc, 0x08, 0xf5, 0x41, 0x3e, 0x8a, 0x77, 0xc3};
static const uint8_t from_lo[16] = {0x00, 0x85, 0xd9, 0x5c, 0x2e, 0xab, 0xf7, 0x72,
                                    0x80, 0x05, 0x59, 0xdc, 0xae, 0x2b, 0x77, 0xf2};
static const uint8_t from_hi[16] = {0x00, 0x55, 0x57, 0x02, 0x44, 0x11, 0x13, 0x46,
                                    0xaf, 0xfa, 0xf8, 0xad, 0xeb, 0xbe, 0xbc, 0xe9};

/* ShiftRows (FIPS 197, 5.1.2) brings byte r of word c from word c + r, so byte r of word c went to word c - r. Byte m of
 * a word that is rotated left by 8 * n bits is byte r = m + n of the same word. */
#define PLACE(c, r) (uint8_t)(4 * (((c) - (r)) & 3) + (r))
#define UNSHIFT_WORD(c, n) \
    PLACE(c, (0 + (n)) & 3), PLACE(c, (1 + (n)) & 3), PLACE(c, (2 + (n)) & 3), PLACE(c, (3 + (n)) & 3)
#define UNSHIFT_BLOCK(n) UNSHIFT_WORD(0, n), UNSHIFT_WORD(1, n), UNSHIFT_WORD(2, n), UNSHIFT_WORD(3, n)
#define UNSHIFT(n) UNSHIFT_BLOCK(n), UNSHIFT_BLOCK(n)
#define NIBBLES 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f

/* What the rounds have as operands in memory, 32 bytes each. */
static const _Alignas(32) struct {
    uint8_t zero[32], nibbles[32], unshift[32], unshift_rotl8[32], unshift_rotl16[32], unshift_rotl24[32];
} constants = {
    .nibbles = {NIBBLES, NIBBLES, NIBBLES, NIBBLES},
    .unshift = {UNSHIFT(0)},
    .unshift_rotl8 = {UNSHIFT(1)},
    .unshift_rotl16 = {UNSHIFT(2)},
    .unshift_rotl24 = {UNSHIFT(3)},
};
static const uint8_t swap_words[16] = {3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12};

static inline __m128i load_block(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

static inline void store(uint8_t *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v);
}

static inline __m256i broadcast(uint32_t word)
{
    return _mm256_set1_epi32((int)word);
}

static inline __m256i twice(const uint8_t table[16])
{
    return _mm256_broadcastsi128_si256(load_block(table));
}

static inline __m256i permute(__m256i v, const uint8_t order[16])
{
    return _mm256_shuffle_epi8(v, twice(order));
}

static inline __m256i low_nibbles(__m256i v)
{
    return _mm256_and_si256(v, _mm256_set1_epi8(0x0f));
}

static inline __m256i high_nibbles(__m256i v)
{
    return low_nibbles(_mm256_srli_epi32(v, 4));
}

static inline __m256i look_up(const uint8_t lo[16], const uint8_t hi[16], __m256i low, __m256i high)
{
    return _mm256_xor_si256(_mm256_shuffle_epi8(twice(lo), low), _mm256_shuffle_epi8(twice(hi), high));
}

static inline __m256i map(const uint8_t lo[16], const uint8_t hi[16], __m256i v)
{
    return look_up(lo, hi, low_nibbles(v), high_nibbles(v));
}

static inline void map_words(const uint8_t lo[16], const uint8_t hi[16], __m256i v[GROUP_VECS])
{
    v[0] = map(lo, hi, v[0]);
    v[1] = map(lo, hi, v[1]);
    v[2] = map(lo, hi, v[2]);
    v[3] = map(lo, hi, v[3]);
}

/* x0 ^= T(x1 ^ x2 ^ x3 ^ rk), T = L(S(.)), sections 6.1 and 6.2, all of it mapped. In assembly, because there are just as
 * many registers as words of state, tables and intermediate values: a compiler that holds other constants in some leaves
 * the state to wait for its way through memory. What is ready last is added last: x1, and in the end the fourth byte. */
/* clang-format off */
#define ROUND(x0, x1, x2, x3, at)                    \
    "vpbroadcastd " at "(%[rk]), %[low]\n\t"         \
    "vpxor %[" x2 "], %[low], %[low]\n\t"            \
    "vpxor %[" x3 "], %[low], %[low]\n\t"            \
    "vpxor %[" x1 "], %[low], %[low]\n\t"            \
    SUB_AND_SHIFT                                    \
    "vpsrld $4, %[low], %[high]\n\t"                 \
    "vpand 32(%[constants]), %[low], %[low]\n\t"     \
    "vpand 32(%[constants]), %[high], %[high]\n\t"   \
    "vpshufb %[low], %[second_lo], %[g]\n\t"         \
    "vpshufb %[low], %[first_lo], %[f]\n\t"          \
    "vpshufb %[high], %[second_hi], %[low]\n\t"      \
    "vpshufb %[high], %[first_hi], %[high]\n\t"      \
    "vpxor %[low], %[g], %[g]\n\t"                   \
    "vpxor %[high], %[f], %[f]\n\t"                  \
    "vpshufb 96(%[constants]), %[g], %[low]\n\t"     \
    "vpshufb 128(%[constants]), %[g], %[high]\n\t"   \
    "vpxor %[f], %[g], %[g]\n\t"                     \
    "vpshufb 64(%[constants]), %[f], %[f]\n\t"       \
    "vpshufb 160(%[constants]), %[g], %[g]\n\t"      \
    "vpxor %[low], %[" x0 "], %[" x0 "]\n\t"         \
    "vpxor %[high], %[f], %[f]\n\t"                  \
    "vpxor %[f], %[" x0 "], %[" x0 "]\n\t"           \
    "vpxor %[g], %[" x0 "], %[" x0 "]\n\t"

#define FOUR_ROUNDS                     \
    ROUND("x0", "x1", "x2", "x3", "0")  \
    ROUND("x1", "x2", "x3", "x0", "4")  \
    ROUND("x2", "x3", "x0", "x1", "8")  \
    ROUND("x3", "x0", "x1", "x2", "12")

#define FOUR_ROUNDS_OF_TWO              \
    ROUND("x0", "x1", "x2", "x3", "0")  \
    ROUND("y0", "y1", "y2", "y3", "0")  \
    ROUND("x1", "x2", "x3", "x0", "4")  \
    ROUND("y1", "y2", "y3", "y0", "4")  \
    ROUND("x2", "x3", "x0", "x1", "8")  \
    ROUND("y2", "y3", "y0", "y1", "8")  \
    ROUND("x3", "x0", "x1", "x2", "12") \
    ROUND("y3", "y0", "y1", "y2", "12")
/* clang-format on */

#define SCRATCH [low] "=&x"(low), [high] "=&x"(high), [f] "=&x"(f), [g] "=&x"(g)
#define CONSTANTS                                                                                                  \
    [constants] "r"(&constants), "m"(constants), [first_lo] "x"(twice(first_lo)), [first_hi] "x"(twice(first_hi)), \
        [second_lo] "x"(twice(second_lo)), [second_hi] "x"(twice(second_hi))

/* With the reverse transformation R, section 6.1: the words come out last first. */
static inline void store_reversed(__m256i v[GROUP_VECS], __m256i x0, __m256i x1, __m256i x2, __m256i x3)
{
    v[0] = x3;
    v[1] = x2;
    v[2] = x1;
    v[3] = x0;
    map_words(from_lo, from_hi, v);
}

static void crypt_group(const uint32_t *rk, __m256i v[GROUP_VECS])
{
    __m256i low, high, f, g;

    SUBJECT_PATH("one_group");
    map_words(into_lo, into_hi, v);
    __m256i x0 = v[0], x1 = v[1], x2 = v[2], x3 = v[3];
    for (const uint32_t *end = rk + ROUNDS; rk < end; rk += 4) {
        __asm__(FOUR_ROUNDS
                : [x0] "+x"(x0), [x1] "+x"(x1), [x2] "+x"(x2), [x3] "+x"(x3), SCRATCH
                : [rk] "r"(rk), "m"(*(const uint32_t (*)[4])rk), CONSTANTS);
    }
    store_reversed(v, x0, x1, x2, x3);
}

static void crypt_two_groups(const uint32_t *rk, __m256i v[WIDE_VECS])
{
    __m256i low, high, f, g;

    SUBJECT_PATH("two_groups");
    map_words(into_lo, into_hi, v);
    map_words(into_lo, into_hi, v + GROUP_VECS);
    __m256i x0 = v[0], x1 = v[1], x2 = v[2], x3 = v[3];
    __m256i y0 = v[4], y1 = v[5], y2 = v[6], y3 = v[7];
    for (const uint32_t *end = rk + ROUNDS; rk < end; rk += 4) {
        __asm__(FOUR_ROUNDS_OF_TWO
                : [x0] "+x"(x0), [x1] "+x"(x1), [x2] "+x"(x2), [x3] "+x"(x3), [y0] "+x"(y0), [y1] "+x"(y1),
                  [y2] "+x"(y2), [y3] "+x"(y3), SCRATCH
                : [rk] "r"(rk), "m"(*(const uint32_t (*)[4])rk), CONSTANTS);
    }
    store_reversed(v, x0, x1, x2, x3);
    store_reversed(v + GROUP_VECS, y0, y1, y2, y3);
}

/* Two to WAYS blocks as words; what stands in the places of the others does not matter. */
static inline void crypt_words(const struct schedule *keys, __m256i v[WIDE_VECS], size_t num_blocks)
{
    if (num_blocks > GROUP) {
        crypt_two_groups(keys->mapped, v);
    } else {
        crypt_group(keys->mapped, v);
    }
}

static inline void crypt_one(const struct schedule *keys, uint8_t *dst, const uint8_t *src)
{
    SUBJECT_PATH("block");
    crypt_block(keys->plain, dst, src);
}

static int setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct sm4_ctx *c = ctx;

    (void)policy; /* SM4 has no weak keys */
    if (key_len != 16) {
        return SUBJECT_BAD_KEY_LEN;
    }
    expand_key(&c->plain, key);
    for (size_t at = 0; at < sizeof c->mapped; at += VEC_LEN) {
        __m256i words = permute(load((const uint8_t *)&c->plain + at), swap_words);
        store((uint8_t *)&c->mapped + at,
              _mm256_xor_si256(map(into_lo, into_hi, words), _mm256_set1_epi8(INTO_CONSTANT)));
    }
    return SUBJECT_OK;
}

static inline struct schedule schedule_of(const struct sm4_ctx *c, int decrypting)
{
    return decrypting ? (struct schedule){c->plain.decrypt, c->mapped.decrypt}
                      : (struct schedule){c->plain.encrypt, c->mapped.encrypt};
}

/* Rows to columns and back: the shuffles keep to their 128-bit half, so that even blocks stand in the lower one. */
static inline void transpose(__m256i v[GROUP_VECS])
{
    const __m256i a = _mm256_unpacklo_epi32(v[0], v[1]);
    const __m256i b = _mm256_unpackhi_epi32(v[0], v[1]);
    const __m256i c = _mm256_unpacklo_epi32(v[2], v[3]);
    const __m256i d = _mm256_unpackhi_epi32(v[2], v[3]);

    v[0] = _mm256_unpacklo_epi64(a, c);
    v[1] = _mm256_unpackhi_epi64(a, c);
    v[2] = _mm256_unpacklo_epi64(b, d);
    v[3] = _mm256_unpackhi_epi64(b, d);
}

static inline void transpose_groups(__m256i v[WIDE_VECS])
{
    transpose(v);
    transpose(v + GROUP_VECS);
}

static inline void load_blocks(__m256i v[WIDE_VECS], const uint8_t *src)
{
    v[0] = load(src);
    v[1] = load(src + VEC_LEN);
    v[2] = load(src + 2 * VEC_LEN);
    v[3] = load(src + 3 * VEC_LEN);
    v[4] = load(src + 4 * VEC_LEN);
    v[5] = load(src + 5 * VEC_LEN);
    v[6] = load(src + 6 * VEC_LEN);
    v[7] = load(src + 7 * VEC_LEN);
}

static inline void store_blocks(uint8_t *dst, const __m256i v[WIDE_VECS])
{
    store(dst, v[0]);
    store(dst + VEC_LEN, v[1]);
    store(dst + 2 * VEC_LEN, v[2]);
    store(dst + 3 * VEC_LEN, v[3]);
    store(dst + 4 * VEC_LEN, v[4]);
    store(dst + 5 * VEC_LEN, v[5]);
    store(dst + 6 * VEC_LEN, v[6]);
    store(dst + 7 * VEC_LEN, v[7]);
}

static inline void xor_vecs(__m256i v[WIDE_VECS], const __m256i w[WIDE_VECS])
{
    v[0] = _mm256_xor_si256(v[0], w[0]);
    v[1] = _mm256_xor_si256(v[1], w[1]);
    v[2] = _mm256_xor_si256(v[2], w[2]);
    v[3] = _mm256_xor_si256(v[3], w[3]);
    v[4] = _mm256_xor_si256(v[4], w[4]);
    v[5] = _mm256_xor_si256(v[5], w[5]);
    v[6] = _mm256_xor_si256(v[6], w[6]);
    v[7] = _mm256_xor_si256(v[7], w[7]);
}

#endif
