/* SPDX-License-Identifier: Apache-2.0
 *
 * ECB, CBC and CFB decryption, CTR over vectors of aes_x86_vector_xmm.h or aes_x86_vector_ymm.h, which comes first.
 *
 * A step takes eight vectors, WAYS blocks: a round takes four cycles and two of them begin in each, so that eight keep
 * the unit busy. What is left goes in steps of four vectors, two and one, then as a single block, so that no more than
 * the message is touched.
 */
#ifndef AES_X86_WIDE_H
#define AES_X86_WIDE_H

#include "aes_x86_block.h"

#define WIDE_VECS 8u
#define WAYS (WIDE_VECS * VEC_BLOCKS)
#define VEC_LEN (VEC_BLOCKS * BLOCK_LEN)

/* STEP(n) with n vectors for what is less than a wide step; less than a vector, or a block, stays. */
#define EACH_NARROW_STEP(num_blocks, STEP) \
    if ((num_blocks) >= 4 * VEC_BLOCKS) {  \
        SUBJECT_PATH("half");              \
        STEP(4u);                          \
        (num_blocks) -= 4 * VEC_BLOCKS;    \
    }                                      \
    if ((num_blocks) >= 2 * VEC_BLOCKS) {  \
        SUBJECT_PATH("quarter");           \
        STEP(2u);                          \
        (num_blocks) -= 2 * VEC_BLOCKS;    \
    }                                      \
    EACH_LAST_STEP(num_blocks, STEP)

#define EACH_STEP(num_blocks, STEP)                      \
    for (; (num_blocks) >= WAYS; (num_blocks) -= WAYS) { \
        SUBJECT_PATH("wide");                            \
        STEP(WIDE_VECS);                                 \
    }                                                    \
    EACH_NARROW_STEP(num_blocks, STEP)

/* Where a message stands. */
struct text {
    uint8_t *dst;
    const uint8_t *src;
};

ALWAYS_INLINE void text_skip(struct text *t, size_t len)
{
    t->dst += len;
    t->src += len;
}

ALWAYS_INLINE void add_key(vec *v, unsigned n, const __m128i *k)
{
    const vec key = vec_broadcast_from(k);

    UNROLL
    for (unsigned i = 0; i < n; i++) {
        v[i] = vec_xor(v[i], key);
    }
}

ALWAYS_INLINE void encrypt_round(vec *v, unsigned n, const __m128i *k)
{
    const vec key = vec_broadcast_from(k);

    UNROLL
    for (unsigned i = 0; i < n; i++) {
        v[i] = vec_aesenc(v[i], key);
    }
}

ALWAYS_INLINE void decrypt_round(vec *v, unsigned n, const __m128i *k)
{
    const vec key = vec_broadcast_from(k);

    UNROLL
    for (unsigned i = 0; i < n; i++) {
        v[i] = vec_aesdec(v[i], key);
    }
}

#define MIDDLE_ROUNDS(round, v, n, k, num_rounds) \
    round(v, n, (k) + 1);                         \
    round(v, n, (k) + 2);                         \
    round(v, n, (k) + 3);                         \
    round(v, n, (k) + 4);                         \
    round(v, n, (k) + 5);                         \
    round(v, n, (k) + 6);                         \
    round(v, n, (k) + 7);                         \
    round(v, n, (k) + 8);                         \
    round(v, n, (k) + 9);                         \
    if ((num_rounds) > 10) {                      \
        round(v, n, (k) + 10);                    \
        round(v, n, (k) + 11);                    \
        if ((num_rounds) > 12) {                  \
            round(v, n, (k) + 12);                \
            round(v, n, (k) + 13);                \
        }                                         \
    }

/* v[0 .. n) = the cipher of each of their blocks. */
ALWAYS_INLINE void encrypt_vecs(const struct aes_ctx *c, vec *v, unsigned n)
{
    const vec last = vec_broadcast_from(c->encrypt_key + c->num_rounds);

    add_key(v, n, c->encrypt_key);
    MIDDLE_ROUNDS(encrypt_round, v, n, c->encrypt_key, c->num_rounds)
    UNROLL
    for (unsigned i = 0; i < n; i++) {
        v[i] = vec_aesenclast(v[i], last);
    }
}

ALWAYS_INLINE void decrypt_vecs(const struct aes_ctx *c, vec *v, unsigned n)
{
    const vec last = vec_broadcast_from(c->decrypt_key + c->num_rounds);

    add_key(v, n, c->decrypt_key);
    MIDDLE_ROUNDS(decrypt_round, v, n, c->decrypt_key, c->num_rounds)
    UNROLL
    for (unsigned i = 0; i < n; i++) {
        v[i] = vec_aesdeclast(v[i], last);
    }
}

ALWAYS_INLINE void crypt_vecs(const struct aes_ctx *c, vec *v, unsigned n, int decrypting)
{
    if (decrypting) {
        decrypt_vecs(c, v, n);
    } else {
        encrypt_vecs(c, v, n);
    }
}

/* All bytes of each block in the other order. */
ALWAYS_INLINE vec vec_swap(vec v)
{
    return vec_shuffle8(v, vec_number(BYTE_ORDER_HIGH, BYTE_ORDER_LOW));
}

ALWAYS_INLINE void load_vecs(vec *v, const uint8_t *src, unsigned n)
{
    UNROLL
    for (unsigned i = 0; i < n; i++) {
        v[i] = vec_load(src + i * VEC_LEN);
    }
}

ALWAYS_INLINE void store_vecs(uint8_t *dst, const vec *v, unsigned n)
{
    UNROLL
    for (unsigned i = 0; i < n; i++) {
        vec_store(dst + i * VEC_LEN, v[i]);
    }
}

ALWAYS_INLINE void xor_vecs(vec *v, const uint8_t *src, unsigned n)
{
    UNROLL
    for (unsigned i = 0; i < n; i++) {
        v[i] = vec_xor(v[i], vec_load(src + i * VEC_LEN));
    }
}

/* ---- ECB ------------------------------------------------------------------------------------------------------ */

ALWAYS_INLINE void ecb_step(const struct aes_ctx *c, struct text *t, unsigned n, int decrypting)
{
    vec v[WIDE_VECS];

    load_vecs(v, t->src, n);
    crypt_vecs(c, v, n, decrypting);
    store_vecs(t->dst, v, n);
    text_skip(t, n * VEC_LEN);
}

ALWAYS_INLINE void ecb_crypt(const struct aes_ctx *c, uint8_t *dst, const uint8_t *src, size_t num_blocks,
                             int decrypting)
{
    struct text t = {dst, src};

#define STEP(n) ecb_step(c, &t, n, decrypting)
    EACH_STEP(num_blocks, STEP)
#undef STEP
    if (num_blocks > 0) {
        block_store(t.dst, crypt_block(c, block_load(t.src), decrypting));
    }
}

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    ecb_crypt(ctx, dst, src, num_blocks, 0);
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    ecb_crypt(ctx, dst, src, num_blocks, 1);
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

/* ---- CBC and CFB, decryption ---------------------------------------------------------------------------------- */

/* Adds the blocks that come one before those of src: the chain, then all of src but its last. */
ALWAYS_INLINE void xor_before(vec *v, __m128i chain, const uint8_t *src, unsigned n)
{
    v[0] = vec_xor(v[0], vec_load_after(chain, src));
    UNROLL
    for (unsigned i = 1; i < n; i++) {
        v[i] = vec_xor(v[i], vec_load(src + i * VEC_LEN - BLOCK_LEN));
    }
}

/* All ciphertext that is still wanted is read before the first store: dst may be src. */
ALWAYS_INLINE void cbc_step(const struct aes_ctx *c, struct text *t, __m128i *chain, unsigned n)
{
    vec v[WIDE_VECS];

    load_vecs(v, t->src, n);
    decrypt_vecs(c, v, n);
    xor_before(v, *chain, t->src, n);
    *chain = block_load(t->src + n * VEC_LEN - BLOCK_LEN);
    store_vecs(t->dst, v, n);
    text_skip(t, n * VEC_LEN);
}

static void cbc_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct aes_ctx *c = ctx;
    size_t num_blocks = len / BLOCK_LEN;
    struct text t = {dst, src};
    __m128i chain;

    if (num_blocks == 0) {
        return;
    }
    chain = block_load(iv);
#define STEP(n) cbc_step(c, &t, &chain, n)
    EACH_STEP(num_blocks, STEP)
#undef STEP
    if (num_blocks > 0) {
        const __m128i block = block_load(t.src);
        block_store(t.dst, block_xor(decrypt_block(c, block), chain));
        chain = block;
    }
    block_store(iv, chain);
}

/* The keystream of CFB is the cipher of the blocks one before. */
ALWAYS_INLINE void cfb_step(const struct aes_ctx *c, struct text *t, __m128i *chain, unsigned n)
{
    vec v[WIDE_VECS];

    v[0] = vec_load_after(*chain, t->src);
    UNROLL
    for (unsigned i = 1; i < n; i++) {
        v[i] = vec_load(t->src + i * VEC_LEN - BLOCK_LEN);
    }
    *chain = block_load(t->src + n * VEC_LEN - BLOCK_LEN);
    encrypt_vecs(c, v, n);
    xor_vecs(v, t->src, n);
    store_vecs(t->dst, v, n);
    text_skip(t, n * VEC_LEN);
}

/* The iv becomes the last whole block of ciphertext. */
static void cfb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct aes_ctx *c = ctx;
    size_t num_blocks = len / BLOCK_LEN, tail_len = len % BLOCK_LEN;
    struct text t = {dst, src};
    __m128i chain = block_load(iv);

#define STEP(n) cfb_step(c, &t, &chain, n)
    EACH_STEP(num_blocks, STEP)
#undef STEP
    if (num_blocks > 0) {
        const __m128i block = block_load(t.src);
        block_store(t.dst, block_xor(encrypt_block(c, chain), block));
        chain = block;
        text_skip(&t, BLOCK_LEN);
    }
    block_store(iv, chain);
    if (tail_len > 0) {
        xor_part(t.dst, t.src, encrypt_block(c, chain), tail_len);
    }
}

/* ---- CTR ------------------------------------------------------------------------------------------------------ */

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
