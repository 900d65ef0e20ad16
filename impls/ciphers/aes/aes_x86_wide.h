/* SPDX-License-Identifier: Apache-2.0
 *
 * ECB, CBC and CFB decryption over vectors of aes_x86_vector_xmm.h or aes_x86_vector_ymm.h, which comes first.
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

#endif
