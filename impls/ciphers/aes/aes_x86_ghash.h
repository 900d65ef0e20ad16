/* SPDX-License-Identifier: Apache-2.0
 *
 * GHASH (SP 800-38D, section 6.4) with carry-less multiplication.
 *
 * The first bit of a block is the coefficient of x^0, so that with its bytes in the other order bit i of the number is
 * that of x^(127 - i). Of two such numbers the product of 255 bits has x^(254 - i) at bit i. One factor is kept as
 * a * x^-1 (a "power" below); then the product's bit i stands for x^(255 - i), and its upper half is the remainder but
 * for what the lower half folds into it.
 */
#ifndef AES_X86_GHASH_H
#define AES_X86_GHASH_H

#include "aes_x86_wide.h"

/* Below this many blocks powers cost more than they save. */
#define GHASH_FEW 4u

/* The halves of 256-bit products, not reduced, by Karatsuba: `cross` is that of the sums of the factors' halves. */
struct products {
    vec low, cross, high;
};

ALWAYS_INLINE vec halves_sum(vec a)
{
    return vec_xor(a, vec_shuffle32(a, 0x4e));
}

ALWAYS_INLINE struct products no_products(void)
{
    const vec zero = vec_number(0, 0);
    return (struct products){zero, zero, zero};
}

ALWAYS_INLINE void add_product(struct products *p, vec a, vec power, vec power_sum)
{
    p->low = vec_xor(p->low, vec_clmul(a, power, 0x00));
    p->high = vec_xor(p->high, vec_clmul(a, power, 0x11));
    p->cross = vec_xor(p->cross, vec_clmul(halves_sum(a), power_sum, 0x00));
}

/* x^128 = 1 + x + x^2 + x^7: the lowest 64 bits fold into the 128 above them, as they are (1) and shifted right by 1, 2
 * and 7; then the same once more. */
ALWAYS_INLINE vec reduce(struct products p)
{
    const vec fold = vec_number(0, UINT64_C(0xc2) << 56);
    const vec middle = vec_xor(p.cross, vec_xor(p.low, p.high));
    vec low = vec_xor(p.low, vec_shl_bytes(middle, 8)), high = vec_xor(p.high, vec_shr_bytes(middle, 8));

    low = vec_xor(vec_shuffle32(low, 0x4e), vec_clmul(low, fold, 0x00));
    low = vec_xor(vec_shuffle32(low, 0x4e), vec_clmul(low, fold, 0x00));
    return vec_xor(high, low);
}

/* a * b of a block and a power, or of two powers. */
ALWAYS_INLINE vec ghash_multiply(vec a, vec power)
{
    struct products p = no_products();

    add_product(&p, a, power, halves_sum(power));
    return reduce(p);
}

/* h * x^-1, h a block: bits move up, and the one that leaves is x^-1 = x^127 + x^6 + x + 1. */
ALWAYS_INLINE __m128i first_power(const uint8_t *h)
{
    const uint64_t high = load_be64(h), low = load_be64(h + 8), out = 0 - (high >> 63);

    return _mm_set_epi64x((int64_t)(((high << 1) | (low >> 63)) ^ (out & UINT64_C(0xc2) << 56)),
                          (int64_t)((low << 1) ^ (out & 1)));
}

struct powers {
    uint8_t power[WAYS * BLOCK_LEN]; /* the last is the first power, each before it one higher */
    uint8_t sum[WAYS * BLOCK_LEN];   /* of the halves of each */
};

/* The first `num` powers, a power of two: from 1 to k they give those to 2k. */
static void make_powers(struct powers *p, __m128i first, size_t num)
{
    uint8_t *end = p->power + WAYS * BLOCK_LEN;

    block_store(end - BLOCK_LEN, first);
    for (size_t k = 1; k < num; k *= 2) {
        const vec highest = vec_broadcast(block_load(end - k * BLOCK_LEN));
        size_t i = k;
        for (; i >= VEC_BLOCKS; i -= VEC_BLOCKS) {
            const uint8_t *from = end - i * BLOCK_LEN;
            vec_store(end - (i + k) * BLOCK_LEN, ghash_multiply(vec_load(from), highest));
        }
        if (i > 0) {
            const vec only = vec_alone(block_load(end - BLOCK_LEN));
            block_store(end - (k + 1) * BLOCK_LEN, vec_first(ghash_multiply(only, highest)));
        }
    }
    for (size_t i = WAYS - num; i < WAYS; i++) {
        const __m128i a = block_load(p->power + i * BLOCK_LEN);
        block_store(p->sum + i * BLOCK_LEN, block_xor(a, _mm_shuffle_epi32(a, 0x4e)));
    }
}

/* y becomes the hash of WAYS blocks behind it. */
ALWAYS_INLINE __m128i ghash_wide(const struct powers *p, __m128i y, const uint8_t *src)
{
    struct products sum = no_products();

    UNROLL
    for (unsigned i = WIDE_VECS; i-- > 1;) {
        add_product(&sum, vec_swap(vec_load(src + i * VEC_LEN)), vec_load(p->power + i * VEC_LEN),
                    vec_load(p->sum + i * VEC_LEN));
    }
    add_product(&sum, vec_xor(vec_swap(vec_load(src)), vec_alone(y)), vec_load(p->power), vec_load(p->sum));
    return vec_fold(reduce(sum));
}

/* The same of num_blocks blocks, for which there are powers. */
ALWAYS_INLINE __m128i ghash_rest(const struct powers *p, __m128i y, const uint8_t *src, size_t num_blocks)
{
    struct products sum = no_products();
    size_t at = (WAYS - num_blocks) * BLOCK_LEN;
    vec behind = vec_alone(y);

    for (; num_blocks >= VEC_BLOCKS; num_blocks -= VEC_BLOCKS) {
        const vec a = vec_xor(vec_swap(vec_load(src)), behind);
        add_product(&sum, a, vec_load(p->power + at), vec_load(p->sum + at));
        behind = vec_alone(_mm_setzero_si128());
        at += VEC_LEN;
        src += VEC_LEN;
    }
    if (num_blocks > 0) {
        const vec a = vec_xor(vec_swap(vec_alone(block_load(src))), behind);
        add_product(&sum, a, vec_alone(block_load(p->power + at)), vec_alone(block_load(p->sum + at)));
    }
    return vec_fold(reduce(sum));
}

static void ghash(const uint8_t *h, uint8_t *y, const uint8_t *src, size_t num_blocks)
{
    const __m128i first = first_power(h);
    __m128i hash = block_swap(block_load(y));

    if (num_blocks >= GHASH_FEW) {
        struct powers p;
        size_t num = GHASH_FEW;
        while (num < WAYS && 2 * num <= num_blocks) {
            num *= 2;
        }
        make_powers(&p, first, num);
        if (num == WAYS) {
            for (; num_blocks >= WAYS; num_blocks -= WAYS) {
                SUBJECT_PATH("ghash_wide");
                hash = ghash_wide(&p, hash, src);
                src += WAYS * BLOCK_LEN;
            }
        }
        while (num_blocks > 0) {
            const size_t n = num_blocks < num ? num_blocks : num;
            SUBJECT_PATH("ghash_rest");
            hash = ghash_rest(&p, hash, src, n);
            src += n * BLOCK_LEN;
            num_blocks -= n;
        }
    }
    for (; num_blocks > 0; num_blocks--) {
        SUBJECT_PATH("ghash_block");
        hash = vec_first(ghash_multiply(vec_alone(block_xor(hash, block_swap(block_load(src)))), vec_alone(first)));
        src += BLOCK_LEN;
    }
    block_store(y, block_swap(hash));
}

#endif
