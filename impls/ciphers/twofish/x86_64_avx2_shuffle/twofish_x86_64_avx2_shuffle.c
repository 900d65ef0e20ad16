/* SPDX-License-Identifier: Apache-2.0
 *
 * Twofish with AVX2 and without tables in memory: every look-up is VPSHUFB by nibbles (twofish_nibbles.h), so that neither
 * branches nor addresses depend on key or data, in setkey neither.
 *
 * A slice holds byte j of the words of 32 blocks, and its bytes go through the S-box of byte j together. Additions and
 * rotations want whole words: 32 blocks take four registers for each of the words a, b, c, d, and every round turns a and
 * b into slices and g of them back into words. Fewer than 32 blocks go by 16, with a in the lower half of a register and b
 * in the upper: g of both is computed at once.
 */
#include <immintrin.h>
#include <stddef.h>

#include "twofish_keys.h"
#include "twofish_nibbles.h"

#define WAYS 32u
#define HALF 16u
/* Once for encryption and once for decryption, whatever the compiler thinks of its size. */
#define SPECIALISED static inline __attribute__((always_inline))
#define NEEDED (SUBJECT_X86_AVX | SUBJECT_X86_AVX2)

/* What a byte of g's argument goes through, in pairs of tables for a' and b': the inner layer of a q, and the outer one
 * with a key byte. Of the last q only the inner layer is here: its outer one is the MDS matrix's. */
struct layer {
    uint8_t inner_a[16], inner_b[16], outer_a[16], outer_b[16];
};

struct schedule {
    struct layer column[MAX_K + 1][4];
};

struct shuffle_ctx {
    struct schedule s;
    uint32_t key_pair[NUM_ROUNDS][8]; /* K_2r+8 four times, K_2r+9 four times: for a register with two words in it */
    uint32_t subkey[NUM_SUBKEYS];
    uint32_t k;
};

static inline __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

static inline void store(void *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}

static inline __m256i twice(const void *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}

static inline __m256i vxor(__m256i a, __m256i b)
{
    return _mm256_xor_si256(a, b);
}

static inline __m256i low_nibbles(__m256i v)
{
    return _mm256_and_si256(v, _mm256_set1_epi8(15));
}

static inline __m256i high_nibbles(__m256i v)
{
    return low_nibbles(_mm256_srli_epi16(v, 4));
}

/* a' and b' of the bytes of slice x. */
#define FIRST(a, b, x)                                                                                      \
    do {                                                                                                    \
        const __m256i high = high_nibbles(x), low = low_nibbles(x);                                         \
        a = vxor(high, low);                                                                                \
        b = vxor(_mm256_shuffle_epi8(twice(first_high), high), _mm256_shuffle_epi8(twice(first_low), low)); \
    } while (0)

/* (a, b) through a pair of tables into the next (a, b). */
#define THROUGH(a, b, table_a, table_b)                                                              \
    do {                                                                                             \
        const __m256i both = vxor(_mm256_shuffle_epi8(table_a, a), _mm256_shuffle_epi8(table_b, b)); \
        a = low_nibbles(both);                                                                       \
        b = high_nibbles(both);                                                                      \
    } while (0)

struct four {
    __m256i v[4];
};

/* The byte y of the last q, given as its last nibbles, times the elements 01, 5B and EF of the MDS matrix. */
SPECIALISED struct four products(unsigned q_last, __m256i a, __m256i b)
{
    return (struct four){{
        vxor(_mm256_shuffle_epi8(twice(last_a[q_last][BY_01]), a),
             _mm256_shuffle_epi8(twice(last_b[q_last][BY_01]), b)),
        vxor(_mm256_shuffle_epi8(twice(last_a[q_last][BY_5B]), a),
             _mm256_shuffle_epi8(twice(last_b[q_last][BY_5B]), b)),
        vxor(_mm256_shuffle_epi8(twice(last_a[q_last][BY_EF]), a),
             _mm256_shuffle_epi8(twice(last_b[q_last][BY_EF]), b)),
    }};
}

/* Section 4.2: the MDS matrix times y_0 to y_3, column by column; row i makes slice i. Which q was the last is bit 0 of
 * q_before. */
SPECIALISED struct four mds_matrix(__m256i a0, __m256i b0, __m256i a1, __m256i b1, __m256i a2, __m256i b2, __m256i a3,
                                   __m256i b3)
{
    struct four y = products(1, a0, b0);
    __m256i z0 = y.v[BY_01], z1 = y.v[BY_5B], z2 = y.v[BY_EF], z3 = y.v[BY_EF];

    y = products(0, a1, b1);
    z0 = vxor(z0, y.v[BY_EF]);
    z1 = vxor(z1, y.v[BY_EF]);
    z2 = vxor(z2, y.v[BY_5B]);
    z3 = vxor(z3, y.v[BY_01]);
    y = products(1, a2, b2);
    z0 = vxor(z0, y.v[BY_5B]);
    z1 = vxor(z1, y.v[BY_EF]);
    z2 = vxor(z2, y.v[BY_01]);
    z3 = vxor(z3, y.v[BY_EF]);
    y = products(0, a3, b3);
    z0 = vxor(z0, y.v[BY_5B]);
    z1 = vxor(z1, y.v[BY_01]);
    z2 = vxor(z2, y.v[BY_EF]);
    z3 = vxor(z3, y.v[BY_5B]);
    return (struct four){{z0, z1, z2, z3}};
}

/* g of the slices x. */
SPECIALISED struct four g_of(const struct schedule *s, unsigned k, __m256i x0, __m256i x1, __m256i x2, __m256i x3)
{
    const struct layer *l = s->column[0], *last = s->column[k];
    __m256i a0, a1, a2, a3, b0, b1, b2, b3;

    FIRST(a0, b0, x0);
    FIRST(a1, b1, x1);
    FIRST(a2, b2, x2);
    FIRST(a3, b3, x3);
    for (; l < last; l += 4) {
        THROUGH(a0, b0, twice(l[0].inner_a), twice(l[0].inner_b));
        THROUGH(a1, b1, twice(l[1].inner_a), twice(l[1].inner_b));
        THROUGH(a2, b2, twice(l[2].inner_a), twice(l[2].inner_b));
        THROUGH(a3, b3, twice(l[3].inner_a), twice(l[3].inner_b));
        THROUGH(a0, b0, twice(l[0].outer_a), twice(l[0].outer_b));
        THROUGH(a1, b1, twice(l[1].outer_a), twice(l[1].outer_b));
        THROUGH(a2, b2, twice(l[2].outer_a), twice(l[2].outer_b));
        THROUGH(a3, b3, twice(l[3].outer_a), twice(l[3].outer_b));
    }
    THROUGH(a0, b0, twice(l[0].inner_a), twice(l[0].inner_b));
    THROUGH(a1, b1, twice(l[1].inner_a), twice(l[1].inner_b));
    THROUGH(a2, b2, twice(l[2].inner_a), twice(l[2].inner_b));
    THROUGH(a3, b3, twice(l[3].inner_a), twice(l[3].inner_b));
    return mds_matrix(a0, b0, a1, b1, a2, b2, a3, b3);
}

/* (a, b) and (c, d), which belong to the same byte, through one pair of tables: each is loaded once. */
#define THROUGH_TWO(a, b, c, d, name_a, name_b)                                                    \
    do {                                                                                           \
        const __m256i table_a = twice(name_a), table_b = twice(name_b);                            \
        const __m256i ab = vxor(_mm256_shuffle_epi8(table_a, a), _mm256_shuffle_epi8(table_b, b)); \
        const __m256i cd = vxor(_mm256_shuffle_epi8(table_a, c), _mm256_shuffle_epi8(table_b, d)); \
        a = low_nibbles(ab);                                                                       \
        b = high_nibbles(ab);                                                                      \
        c = low_nibbles(cd);                                                                       \
        d = high_nibbles(cd);                                                                      \
    } while (0)

/* g of the slices x and of the slices y together: eight chains of look-ups, none of which waits for another. */
SPECIALISED void g_of_two(struct four *gx, struct four *gy, const struct schedule *s, unsigned k, const struct four *x,
                          const struct four *y)
{
    const struct layer *l = s->column[0], *last = s->column[k];
    __m256i a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3;

    FIRST(a0, b0, x->v[0]);
    FIRST(a1, b1, x->v[1]);
    FIRST(a2, b2, x->v[2]);
    FIRST(a3, b3, x->v[3]);
    FIRST(c0, d0, y->v[0]);
    FIRST(c1, d1, y->v[1]);
    FIRST(c2, d2, y->v[2]);
    FIRST(c3, d3, y->v[3]);
    for (; l < last; l += 4) {
        THROUGH_TWO(a0, b0, c0, d0, l[0].inner_a, l[0].inner_b);
        THROUGH_TWO(a1, b1, c1, d1, l[1].inner_a, l[1].inner_b);
        THROUGH_TWO(a2, b2, c2, d2, l[2].inner_a, l[2].inner_b);
        THROUGH_TWO(a3, b3, c3, d3, l[3].inner_a, l[3].inner_b);
        THROUGH_TWO(a0, b0, c0, d0, l[0].outer_a, l[0].outer_b);
        THROUGH_TWO(a1, b1, c1, d1, l[1].outer_a, l[1].outer_b);
        THROUGH_TWO(a2, b2, c2, d2, l[2].outer_a, l[2].outer_b);
        THROUGH_TWO(a3, b3, c3, d3, l[3].outer_a, l[3].outer_b);
    }
    THROUGH_TWO(a0, b0, c0, d0, l[0].inner_a, l[0].inner_b);
    THROUGH_TWO(a1, b1, c1, d1, l[1].inner_a, l[1].inner_b);
    THROUGH_TWO(a2, b2, c2, d2, l[2].inner_a, l[2].inner_b);
    THROUGH_TWO(a3, b3, c3, d3, l[3].inner_a, l[3].inner_b);
    *gx = mds_matrix(a0, b0, a1, b1, a2, b2, a3, b3);
    *gy = mds_matrix(c0, d0, c1, d1, c2, d2, c3, d3);
}

/* Four registers of words to slices. In each half register the slices run through the words of the first register, then
 * those of the second and so on. `gather` brings together the bytes of four words that belong to one slice. */
static inline struct four to_slices(const __m256i w[4], __m256i gather)
{
    const __m256i a = _mm256_shuffle_epi8(w[0], gather), b = _mm256_shuffle_epi8(w[1], gather);
    const __m256i c = _mm256_shuffle_epi8(w[2], gather), d = _mm256_shuffle_epi8(w[3], gather);
    const __m256i ab_low = _mm256_unpacklo_epi32(a, b), ab_high = _mm256_unpackhi_epi32(a, b);
    const __m256i cd_low = _mm256_unpacklo_epi32(c, d), cd_high = _mm256_unpackhi_epi32(c, d);

    return (struct four){{_mm256_unpacklo_epi64(ab_low, cd_low), _mm256_unpackhi_epi64(ab_low, cd_low),
                          _mm256_unpacklo_epi64(ab_high, cd_high), _mm256_unpackhi_epi64(ab_high, cd_high)}};
}

static inline struct four to_words(const struct four *slice)
{
    const __m256i low_01 = _mm256_unpacklo_epi8(slice->v[0], slice->v[1]);
    const __m256i high_01 = _mm256_unpackhi_epi8(slice->v[0], slice->v[1]);
    const __m256i low_23 = _mm256_unpacklo_epi8(slice->v[2], slice->v[3]);
    const __m256i high_23 = _mm256_unpackhi_epi8(slice->v[2], slice->v[3]);

    return (struct four){{_mm256_unpacklo_epi16(low_01, low_23), _mm256_unpackhi_epi16(low_01, low_23),
                          _mm256_unpacklo_epi16(high_01, high_23), _mm256_unpackhi_epi16(high_01, high_23)}};
}

/* Byte j of the four words of a half register, j from 0; of words rotated left by 8 bits that is byte j - 1. */
#define GATHER(j) (j) & 3, ((j) & 3) + 4, ((j) & 3) + 8, ((j) & 3) + 12
static const uint8_t gather_plain[16] = {GATHER(0), GATHER(1), GATHER(2), GATHER(3)};
static const uint8_t gather_rotated[16] = {GATHER(3), GATHER(0), GATHER(1), GATHER(2)};

/* 4 x 4 words, rows to columns in each half: two blocks to a register in, one word of eight blocks out, or back. */
static inline struct four transposed(__m256i a, __m256i b, __m256i c, __m256i d)
{
    const __m256i ab_low = _mm256_unpacklo_epi32(a, b), ab_high = _mm256_unpackhi_epi32(a, b);
    const __m256i cd_low = _mm256_unpacklo_epi32(c, d), cd_high = _mm256_unpackhi_epi32(c, d);

    return (struct four){{_mm256_unpacklo_epi64(ab_low, cd_low), _mm256_unpackhi_epi64(ab_low, cd_low),
                          _mm256_unpacklo_epi64(ab_high, cd_high), _mm256_unpackhi_epi64(ab_high, cd_high)}};
}

/* 32 blocks: word j of blocks 8i to 8i + 7 in word[j][i]. */
struct wide {
    __m256i word[4][4];
};

static inline void load_eight(struct wide *x, unsigned i, const uint8_t *src, __m256i whitening)
{
    const struct four t = transposed(vxor(load(src), whitening), vxor(load(src + 32), whitening),
                                     vxor(load(src + 64), whitening), vxor(load(src + 96), whitening));

    x->word[0][i] = t.v[0];
    x->word[1][i] = t.v[1];
    x->word[2][i] = t.v[2];
    x->word[3][i] = t.v[3];
}

/* The halves change places, which undoes the last round's swap. */
static inline void store_eight(uint8_t *dst, const struct wide *x, unsigned i, __m256i whitening)
{
    const struct four t = transposed(x->word[2][i], x->word[3][i], x->word[0][i], x->word[1][i]);

    store(dst, vxor(t.v[0], whitening));
    store(dst + 32, vxor(t.v[1], whitening));
    store(dst + 64, vxor(t.v[2], whitening));
    store(dst + 96, vxor(t.v[3], whitening));
}

static inline __m256i rotl1(__m256i v)
{
    return _mm256_or_si256(_mm256_add_epi32(v, v), _mm256_srli_epi32(v, 31));
}

static inline __m256i rotr1(__m256i v)
{
    return _mm256_or_si256(_mm256_srli_epi32(v, 1), _mm256_slli_epi32(v, 31));
}

/* Eight blocks' share of a round: F, whose key is k0 and k1, goes into c and d. */
SPECIALISED void into_eight(__m256i *c, __m256i *d, __m256i t0, __m256i t1, __m256i k0, __m256i k1, int decrypting)
{
    const __m256i sum = _mm256_add_epi32(t0, t1);
    const __m256i f0 = _mm256_add_epi32(sum, k0), f1 = _mm256_add_epi32(_mm256_add_epi32(sum, t1), k1);

    *c = decrypting ? vxor(rotl1(*c), f0) : rotr1(vxor(*c, f0));
    *d = decrypting ? rotr1(vxor(*d, f1)) : vxor(rotl1(*d), f1);
}

/* A round on words (0, 1) into (2, 3), or the other way round, where `from` is 0 or 2. */
SPECIALISED void wide_round(const struct shuffle_ctx *ctx, unsigned round, struct wide *x, unsigned from,
                            int decrypting)
{
    __m256i *c = x->word[from ^ 2u], *d = x->word[(from ^ 2u) + 1];
    const struct four a = to_slices(x->word[from], twice(gather_plain));
    const struct four b = to_slices(x->word[from + 1], twice(gather_rotated));
    const __m256i k0 = _mm256_set1_epi32((int)ctx->subkey[2 * round + 8]);
    const __m256i k1 = _mm256_set1_epi32((int)ctx->subkey[2 * round + 9]);
    struct four t0, t1;

    g_of_two(&t0, &t1, &ctx->s, ctx->k, &a, &b);
    t0 = to_words(&t0);
    t1 = to_words(&t1);
    into_eight(&c[0], &d[0], t0.v[0], t1.v[0], k0, k1, decrypting);
    into_eight(&c[1], &d[1], t0.v[1], t1.v[1], k0, k1, decrypting);
    into_eight(&c[2], &d[2], t0.v[2], t1.v[2], k0, k1, decrypting);
    into_eight(&c[3], &d[3], t0.v[3], t1.v[3], k0, k1, decrypting);
}

SPECIALISED void crypt_wide(const struct shuffle_ctx *ctx, uint8_t *dst, const uint8_t *src, int decrypting)
{
    const __m256i before = twice(ctx->subkey + (decrypting ? 4 : 0)), after = twice(ctx->subkey + (decrypting ? 0 : 4));
    struct wide x;

    for (unsigned i = 0; i < 4; i++) {
        load_eight(&x, i, src + 128 * i, before);
    }
    for (unsigned r = 0; r < NUM_ROUNDS; r++) {
        wide_round(ctx, decrypting ? NUM_ROUNDS - 1 - r : r, &x, 2 * (r & 1u), decrypting);
    }
    for (unsigned i = 0; i < 4; i++) {
        store_eight(dst + 128 * i, &x, i, after);
    }
}

/* 16 blocks: words a and b of blocks 4i to 4i + 3 in the lower and the upper half of pair[0][i], c and d in pair[1][i]. */
struct paired {
    __m256i pair[2][4];
};

static const uint8_t gather_pair[32] = {GATHER(0), GATHER(1), GATHER(2), GATHER(3),
                                        GATHER(3), GATHER(0), GATHER(1), GATHER(2)};

static inline __m256i halves_swapped(__m256i v)
{
    return _mm256_permute2x128_si256(v, v, 1);
}

static inline void load_four(struct paired *x, unsigned i, const uint8_t *src, __m256i whitening)
{
    const struct four t = transposed(vxor(twice(src), whitening), vxor(twice(src + 16), whitening),
                                     vxor(twice(src + 32), whitening), vxor(twice(src + 48), whitening));

    x->pair[0][i] = _mm256_blend_epi32(t.v[0], t.v[1], 0xf0);
    x->pair[1][i] = _mm256_blend_epi32(t.v[2], t.v[3], 0xf0);
}

static inline void store_four(uint8_t *dst, const struct paired *x, unsigned i, __m256i whitening)
{
    const struct four t =
        transposed(x->pair[1][i], halves_swapped(x->pair[1][i]), x->pair[0][i], halves_swapped(x->pair[0][i]));

    for (unsigned j = 0; j < 4; j++) {
        _mm_storeu_si128((__m128i *)(void *)(dst + 16 * j), _mm256_castsi256_si128(vxor(t.v[j], whitening)));
    }
}

/* Words rotated left or right by what n says of each, 0 or 1. */
static inline __m256i rotl_by(__m256i v, __m256i n)
{
    return _mm256_or_si256(_mm256_sllv_epi32(v, n), _mm256_srlv_epi32(v, _mm256_sub_epi32(_mm256_set1_epi32(32), n)));
}

static inline __m256i rotr_by(__m256i v, __m256i n)
{
    return _mm256_or_si256(_mm256_srlv_epi32(v, n), _mm256_sllv_epi32(v, _mm256_sub_epi32(_mm256_set1_epi32(32), n)));
}

/* F of the words in `from` goes into those in `into`; before and after say which of them are rotated when. */
SPECIALISED void paired_round(const struct shuffle_ctx *ctx, unsigned round, __m256i into[4], const __m256i from[4],
                              __m256i before, __m256i after)
{
    const __m256i upper = _mm256_setr_epi32(0, 0, 0, 0, -1, -1, -1, -1), key = load(ctx->key_pair[round]);
    const struct four x = to_slices(from, load(gather_pair));
    struct four t = g_of(&ctx->s, ctx->k, x.v[0], x.v[1], x.v[2], x.v[3]);

    t = to_words(&t);
    for (unsigned i = 0; i < 4; i++) {
        /* t0 + t1 in both halves, and t1 once more in the upper one */
        const __m256i sum = _mm256_add_epi32(t.v[i], halves_swapped(t.v[i]));
        const __m256i f = _mm256_add_epi32(_mm256_add_epi32(sum, key), _mm256_and_si256(t.v[i], upper));
        into[i] = rotr_by(vxor(rotl_by(into[i], before), f), after);
    }
}

SPECIALISED void crypt_half(const struct shuffle_ctx *ctx, uint8_t *dst, const uint8_t *src, int decrypting)
{
    const __m256i first = twice(ctx->subkey + (decrypting ? 4 : 0)), last = twice(ctx->subkey + (decrypting ? 0 : 4));
    const __m256i lower_one = _mm256_setr_epi32(1, 1, 1, 1, 0, 0, 0, 0);
    const __m256i upper_one = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    const __m256i before = decrypting ? lower_one : upper_one, after = decrypting ? upper_one : lower_one;
    struct paired x;

    for (unsigned i = 0; i < 4; i++) {
        load_four(&x, i, src + 64 * i, first);
    }
    for (unsigned r = 0; r < NUM_ROUNDS; r++) {
        paired_round(ctx, decrypting ? NUM_ROUNDS - 1 - r : r, x.pair[~r & 1u], x.pair[r & 1u], before, after);
    }
    for (unsigned i = 0; i < 4; i++) {
        store_four(dst + 64 * i, &x, i, last);
    }
}

/* At most 16 blocks; fewer go with zeros behind them. */
SPECIALISED void crypt_rest(const struct shuffle_ctx *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks,
                            int decrypting)
{
    uint8_t padded[16 * HALF];

    SUBJECT_PATH("16way");
    if (num_blocks == HALF) {
        crypt_half(ctx, dst, src, decrypting);
        return;
    }
    memset(padded, 0, sizeof(padded));
    memcpy(padded, src, 16 * num_blocks);
    crypt_half(ctx, padded, padded, decrypting);
    memcpy(dst, padded, 16 * num_blocks);
}

SPECIALISED void crypt_blocks(const struct shuffle_ctx *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks,
                              int decrypting)
{
    while (num_blocks >= WAYS) {
        SUBJECT_PATH("32way");
        crypt_wide(ctx, dst, src, decrypting);
        num_blocks -= WAYS;
        dst += 16 * WAYS;
        src += 16 * WAYS;
    }
    while (num_blocks > 0) {
        const size_t n = num_blocks < HALF ? num_blocks : HALF;
        crypt_rest(ctx, dst, src, n, decrypting);
        num_blocks -= n;
        dst += 16 * n;
        src += 16 * n;
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

/* What the byte x of one column goes through on its way through h or g with this list of words. */
static void fill_schedule(struct schedule *s, const uint32_t list[MAX_K], unsigned k)
{
    for (unsigned n = k + 1; n > 0; n--) {
        for (unsigned j = 0; j < 4; j++) {
            struct layer *l = &s->column[k + 1 - n][j];
            const unsigned which = q_index(j, n - 1);
            uint32_t byte = 0;
            memcpy(l->inner_a, inner_a[which], 16);
            memcpy(l->inner_b, inner_b[which], 16);
            if (n > 1) {
                byte = byte_of(list[n - 2], j);
            }
            const __m128i share = _mm_set1_epi8((char)(MIXED_HIGH(byte >> 4) ^ MIXED_LOW(byte & 15u)));
            const __m128i plain = _mm_loadu_si128((const __m128i *)(const void *)outer_a[which]);
            _mm_storeu_si128((__m128i *)(void *)l->outer_a, _mm_xor_si128(plain, share));
            memcpy(l->outer_b, outer_b[which], 16);
        }
    }
}

/* The order in which to_words makes 32 bytes of a slice into words that lie one after the other. */
#define FOUR_FROM(i) 2 * (i), 2 * (i) + 2, 2 * (i) + 4, 2 * (i) + 6
static const uint8_t even_indices[32] = {FOUR_FROM(0), FOUR_FROM(8),  FOUR_FROM(16), FOUR_FROM(24),
                                         FOUR_FROM(4), FOUR_FROM(12), FOUR_FROM(20), FOUR_FROM(28)};

/* Section 4.3.4: h of the words that consist of four bytes 2i + odd, i from 0 to 31; 20 of them are wanted. */
static void h_of_indices(uint32_t h[32], const uint32_t list[MAX_K], unsigned k, int odd)
{
    const __m256i x = _mm256_add_epi8(load(even_indices), _mm256_set1_epi8((char)odd));
    struct schedule s;
    struct four z;

    fill_schedule(&s, list, k);
    z = g_of(&s, k, x, x, x, x);
    z = to_words(&z);
    store(h, z.v[0]);
    store(h + 8, z.v[1]);
    store(h + 16, z.v[2]);
    store(h + 24, z.v[3]);
}

static int setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct shuffle_ctx *c = ctx;
    uint32_t even[32], odd[32];
    struct key_words w;
    int status = split_key(&w, key, key_len);

    (void)policy; /* Twofish has no weak keys */
    if (status != SUBJECT_OK) {
        return status;
    }
    c->k = w.k;
    fill_schedule(&c->s, w.s, w.k);
    h_of_indices(even, w.even, w.k, 0);
    h_of_indices(odd, w.odd, w.k, 1);
    for (unsigned i = 0; i < NUM_SUBKEYS / 2; i++) {
        const uint32_t b = rotl32(odd[i], 8);
        c->subkey[2 * i] = even[i] + b;
        c->subkey[2 * i + 1] = rotl32(even[i] + 2 * b, 9);
    }
    for (unsigned r = 0; r < NUM_ROUNDS; r++) {
        for (unsigned i = 0; i < 4; i++) {
            c->key_pair[r][i] = c->subkey[2 * r + 8];
            c->key_pair[r][i + 4] = c->subkey[2 * r + 9];
        }
    }
    return SUBJECT_OK;
}

#define FUSED_RUN 64u
#include "twofish_fused.h"

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = WAYS,
    .ctx_len = sizeof(struct shuffle_ctx),
    .ctx_align = 16, /* no table of 16 bytes across two cache lines */
    .setkey = setkey,
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

const struct subject_leaf *twofish_x86_64_avx2_shuffle(uint64_t features);

const struct subject_leaf *twofish_x86_64_avx2_shuffle(uint64_t features)
{
    return (features & NEEDED) == NEEDED ? &leaf : NULL;
}
