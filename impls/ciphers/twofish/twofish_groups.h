/* SPDX-License-Identifier: Apache-2.0
 *
 * Twofish in groups of blocks, for the file that includes this one and defines before
 *   vec                       a vector type; VEC(op) names the intrinsic for op on it
 *   vec_xor, vec_or           of two vectors
 *   vec_g, vec_g_rotated      g of each word, and g of it rotated left by 8 bits, for a struct tabled_ctx
 *   load_row, store_row       row i of a group's blocks, with a whitening key of four words: a vector from or to memory
 *   GROUP_BYTES               bytes of a group's blocks
 * Register j of a group holds word j of each block. Additions, rotations and keys are one vector instruction for all of
 * them, which leaves the integer units to the look-ups. While one group waits for its look-ups others' go on. All of it is
 * inlined: a compiler takes the assembly for longer than it is, and a round that is called has its words in memory, where
 * the next one waits for them.
 */
#ifndef TWOFISH_GROUPS_H
#define TWOFISH_GROUPS_H

#include "twofish_tabled.h"

#define MAX_GROUPS 4u
#define ALWAYS_INLINE static inline __attribute__((always_inline))

struct group {
    vec a, b, c, d;
};

static inline vec rotl1(vec v)
{
    return vec_or(VEC(add_epi32)(v, v), VEC(srli_epi32)(v, 31));
}

static inline vec rotr1(vec v)
{
    return vec_or(VEC(srli_epi32)(v, 1), VEC(slli_epi32)(v, 31));
}

/* F of (a, b): section 4.1. What does not wait for the second g is summed before. */
ALWAYS_INLINE void group_f(vec *f0, vec *f1, const struct tabled_ctx *ctx, const uint32_t *k, const struct group *x)
{
    const vec t1 = vec_g_rotated(ctx, x->b), k0 = VEC(set1_epi32)((int)k[0]), k1 = VEC(set1_epi32)((int)k[1]);
    const vec once = VEC(add_epi32)(t1, k0), twice = VEC(add_epi32)(VEC(add_epi32)(t1, t1), k1);
    const vec t0 = vec_g(ctx, x->a);

    *f0 = VEC(add_epi32)(t0, once);
    *f1 = VEC(add_epi32)(t0, twice);
}

/* One round: F goes into (c, d), and the halves change places. */
ALWAYS_INLINE void encrypt_group_round(const struct tabled_ctx *ctx, const uint32_t *k, struct group *x)
{
    vec f0, f1;

    group_f(&f0, &f1, ctx, k, x);
    *x = (struct group){rotr1(vec_xor(x->c, f0)), vec_xor(rotl1(x->d), f1), x->a, x->b};
}

ALWAYS_INLINE void decrypt_group_round(const struct tabled_ctx *ctx, const uint32_t *k, struct group *x)
{
    vec f0, f1;

    group_f(&f0, &f1, ctx, k, x);
    *x = (struct group){vec_xor(rotl1(x->c), f0), rotr1(vec_xor(x->d, f1)), x->a, x->b};
}

/* Rows to columns in each 128 bits: word j of four blocks from or to one register. */
ALWAYS_INLINE struct group transposed(vec a, vec b, vec c, vec d)
{
    const vec ab_low = VEC(unpacklo_epi32)(a, b), ab_high = VEC(unpackhi_epi32)(a, b);
    const vec cd_low = VEC(unpacklo_epi32)(c, d), cd_high = VEC(unpackhi_epi32)(c, d);

    return (struct group){VEC(unpacklo_epi64)(ab_low, cd_low), VEC(unpackhi_epi64)(ab_low, cd_low),
                          VEC(unpacklo_epi64)(ab_high, cd_high), VEC(unpackhi_epi64)(ab_high, cd_high)};
}

ALWAYS_INLINE struct group load_group(const uint8_t *src, const uint32_t *k)
{
    return transposed(load_row(src, 0, k), load_row(src, 1, k), load_row(src, 2, k), load_row(src, 3, k));
}

/* The halves change places, which undoes the last round's swap. */
ALWAYS_INLINE void store_group(uint8_t *dst, const struct group *x, const uint32_t *k)
{
    const struct group y = transposed(x->c, x->d, x->a, x->b);

    store_row(dst, 0, y.a, k);
    store_row(dst, 1, y.b, k);
    store_row(dst, 2, y.c, k);
    store_row(dst, 3, y.d, k);
}

/* num groups side by side, a constant of at most MAX_GROUPS. */
ALWAYS_INLINE void encrypt_groups(const struct tabled_ctx *ctx, uint8_t *dst, const uint8_t *src, unsigned num)
{
    const uint32_t *k = ctx->subkey;
    struct group x[MAX_GROUPS];

#pragma GCC unroll 4
    for (unsigned i = 0; i < num; i++) {
        x[i] = load_group(src + GROUP_BYTES * i, k);
    }
    for (const uint32_t *rk = k + 8; rk < k + NUM_SUBKEYS; rk += 4) {
#pragma GCC unroll 4
        for (unsigned i = 0; i < num; i++) {
            encrypt_group_round(ctx, rk, &x[i]);
        }
#pragma GCC unroll 4
        for (unsigned i = 0; i < num; i++) {
            encrypt_group_round(ctx, rk + 2, &x[i]);
        }
    }
#pragma GCC unroll 4
    for (unsigned i = 0; i < num; i++) {
        store_group(dst + GROUP_BYTES * i, &x[i], k + 4);
    }
}

ALWAYS_INLINE void decrypt_groups(const struct tabled_ctx *ctx, uint8_t *dst, const uint8_t *src, unsigned num)
{
    const uint32_t *k = ctx->subkey;
    struct group x[MAX_GROUPS];

#pragma GCC unroll 4
    for (unsigned i = 0; i < num; i++) {
        x[i] = load_group(src + GROUP_BYTES * i, k + 4);
    }
    for (const uint32_t *rk = k + NUM_SUBKEYS - 4; rk > k + 4; rk -= 4) {
#pragma GCC unroll 4
        for (unsigned i = 0; i < num; i++) {
            decrypt_group_round(ctx, rk + 2, &x[i]);
        }
#pragma GCC unroll 4
        for (unsigned i = 0; i < num; i++) {
            decrypt_group_round(ctx, rk, &x[i]);
        }
    }
#pragma GCC unroll 4
    for (unsigned i = 0; i < num; i++) {
        store_group(dst + GROUP_BYTES * i, &x[i], k);
    }
}

#endif
