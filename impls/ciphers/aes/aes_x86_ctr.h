/* SPDX-License-Identifier: Apache-2.0
 *
 * CTR over the steps of aes_x86_wide.h, and its counter, which is LRW's index too.
 */
#ifndef AES_X86_CTR_H
#define AES_X86_CTR_H

#include "aes_x86_wide.h"

/* The counter as two host integers. */
struct counter {
    uint64_t high, low;
};

ALWAYS_INLINE struct counter counter_load(const uint8_t *p)
{
    return (struct counter){load_be64(p), load_be64(p + 8)};
}

ALWAYS_INLINE struct counter counter_plus(struct counter counter, uint64_t n)
{
    const uint64_t low = counter.low + n;
    return (struct counter){counter.high + (low < n), low};
}

/* As a number of 128 bits. */
ALWAYS_INLINE __m128i counter_number(struct counter counter)
{
    return _mm_set_epi64x((int64_t)counter.high, (int64_t)counter.low);
}

ALWAYS_INLINE void counter_store(uint8_t *p, struct counter counter)
{
    block_store(p, block_swap(counter_number(counter)));
}

/* The counter of the next block, and the blocks of the next vector but for what their last bytes carry. */
struct counters {
    struct counter number;
    vec blocks;
};

ALWAYS_INLINE struct counters counters_from(struct counter number)
{
    const vec same = vec_swap(vec_broadcast(counter_number(number)));

    return (struct counters){number, vec_add64(same, vec_multiples(UINT64_C(1) << 56, 0))};
}

/* num_blocks further, fewer than 256: where the last byte has carried nowhere, it alone counts, in its place. */
ALWAYS_INLINE void counters_skip(struct counters *counters, unsigned num_blocks)
{
    const struct counter number = counter_plus(counters->number, num_blocks);

    if ((uint8_t)number.low < num_blocks) {
        *counters = counters_from(number);
    } else {
        counters->number = number;
        counters->blocks = vec_add64(counters->blocks, vec_number((uint64_t)num_blocks << 56, 0));
    }
}

/* Counter blocks from `number` on, whatever it carries. */
static __attribute__((noinline)) void wrapping_blocks(uint8_t *blocks, struct counter number, unsigned num_blocks)
{
    SUBJECT_PATH("ctr_wrap");
    for (unsigned i = 0; i < num_blocks; i++) {
        counter_store(blocks + i * BLOCK_LEN, counter_plus(number, i));
    }
}

/* The next blocks: where the last byte carries nowhere as above; where the lower half carries nowhere, that counts. */
ALWAYS_INLINE void counter_vecs(vec *v, const struct counters *counters, unsigned n)
{
    const unsigned num_after = n * VEC_BLOCKS - 1;
    const struct counter number = counters->number;

    if ((uint8_t)number.low <= UINT8_MAX - num_after) {
        UNROLL
        for (unsigned i = 0; i < n; i++) {
            v[i] = vec_add64(counters->blocks, vec_number((uint64_t)i * VEC_BLOCKS << 56, 0));
        }
    } else if (number.low <= UINT64_MAX - num_after) {
        const vec first = vec_add64(vec_broadcast(counter_number(number)), vec_multiples(0, 1));
        UNROLL
        for (unsigned i = 0; i < n; i++) {
            v[i] = vec_swap(vec_add64(first, vec_number(0, i * VEC_BLOCKS)));
        }
    } else {
        uint8_t blocks[WIDE_VECS * VEC_LEN];
        wrapping_blocks(blocks, number, n * VEC_BLOCKS);
        load_vecs(v, blocks, n);
    }
}

ALWAYS_INLINE void ctr_step(const struct aes_ctx *c, struct text *t, struct counters *counters, unsigned n)
{
    vec v[WIDE_VECS];

    counter_vecs(v, counters, n);
    counters_skip(counters, n * VEC_BLOCKS);
    encrypt_vecs(c, v, n);
    xor_vecs(v, t->src, n);
    store_vecs(t->dst, v, n);
    text_skip(t, n * VEC_LEN);
}

static void ctr_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct aes_ctx *c = ctx;
    size_t num_blocks = len / BLOCK_LEN, tail_len = len % BLOCK_LEN;
    struct text t = {dst, src};
    struct counters counters = counters_from(counter_load(iv));

#define STEP(n) ctr_step(c, &t, &counters, n)
    EACH_STEP(num_blocks, STEP)
#undef STEP
    if (num_blocks > 0) {
        block_store(t.dst, block_xor(encrypt_block(c, vec_first(counters.blocks)), block_load(t.src)));
        counters_skip(&counters, 1);
        text_skip(&t, BLOCK_LEN);
    }
    if (tail_len > 0) {
        xor_part(t.dst, t.src, encrypt_block(c, vec_first(counters.blocks)), tail_len);
        counters_skip(&counters, 1);
    }
    counter_store(iv, counters.number);
}

#endif
