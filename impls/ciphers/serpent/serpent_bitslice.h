/* SPDX-License-Identifier: Apache-2.0
 *
 * Serpent on vectors, bitsliced: vector j of a group holds word j of its blocks, four vectors of VEC_BLOCKS * 4 words.
 * A round waits for one long chain of instructions, so two groups go side by side where there are blocks enough.
 *
 * A header serpent_vector_*.h comes first. It gives VEC_BLOCKS, the blocks in a register, a type vec and
 *   vec_load, vec_store          VEC_BLOCKS blocks, at any alignment
 *   vec_load_after(first, rest)  one block from first, VEC_BLOCKS - 1 from rest
 *   vec_xor, vec_and, vec_or, vec_and_not(a, b) = a and not b
 *   vec_add32, vec_shl, vec_shr, vec_bswap32, on each 32-bit word; shifts by a constant
 *   vec_rotl, vec_rotr           the same, where the unit has better than two shifts and an OR
 *   vec_broadcast, vec_broadcast_words   one word, or one each to four vectors
 *   vec_transpose                of blocks in four vectors to words in four vectors, and back
 *   vec_indices                  the number of the block that each word of a group belongs to
 */
#ifndef SERPENT_BITSLICE_H
#define SERPENT_BITSLICE_H

#include "serpent_block.h"
#include "serpent_vector_circuits.h"

#define BLOCK_LEN 16u
#define GROUP_VECS 4u
#define WIDE_VECS 8u
#define GROUP (GROUP_VECS * VEC_BLOCKS) /* blocks */
#define WAYS (WIDE_VECS * VEC_BLOCKS)
#define WIDE_LEN (WAYS * BLOCK_LEN)
#define VEC_LEN (VEC_BLOCKS * BLOCK_LEN)

#ifndef vec_rotl
#define vec_rotl(v, n) vec_or(vec_shl(v, n), vec_shr(v, 32 - (n)))
#define vec_rotr(v, n) vec_rotl(v, 32 - (n))
#endif

/* Single blocks take the plain keys. The others undo what the vector circuits leave complemented. */
struct serpent_ctx {
    struct serpent_keys keys;
    uint32_t encrypt_keys[SERPENT_ROUNDS + 1][4];
    uint32_t decrypt_keys[SERPENT_ROUNDS + 1][4];
};

static const uint8_t encrypt_complements[8] = {
    VECTOR_SBOX0_COMPLEMENTS, VECTOR_SBOX1_COMPLEMENTS, VECTOR_SBOX2_COMPLEMENTS, VECTOR_SBOX3_COMPLEMENTS,
    VECTOR_SBOX4_COMPLEMENTS, VECTOR_SBOX5_COMPLEMENTS, VECTOR_SBOX6_COMPLEMENTS, VECTOR_SBOX7_COMPLEMENTS};
static const uint8_t decrypt_complements[8] = {VECTOR_SBOX0_INVERSE_COMPLEMENTS, VECTOR_SBOX1_INVERSE_COMPLEMENTS,
                                               VECTOR_SBOX2_INVERSE_COMPLEMENTS, VECTOR_SBOX3_INVERSE_COMPLEMENTS,
                                               VECTOR_SBOX4_INVERSE_COMPLEMENTS, VECTOR_SBOX5_INVERSE_COMPLEMENTS,
                                               VECTOR_SBOX6_INVERSE_COMPLEMENTS, VECTOR_SBOX7_INVERSE_COMPLEMENTS};

static inline void complement_words(uint32_t words[4], unsigned mask)
{
    for (unsigned j = 0; j < 4; j++) {
        words[j] = (uint32_t)0 - ((mask >> j) & 1u);
    }
}

/* What comes complemented out of an S-box goes, through the linear transformation, into the next key. */
static int setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct serpent_ctx *c = ctx;
    int status = serpent_expand_key(&c->keys, key, key_len);

    (void)policy; /* Serpent has no weak keys */
    if (status != SUBJECT_OK) {
        return status;
    }
    memcpy(c->encrypt_keys, c->keys.round_key, sizeof c->encrypt_keys);
    memcpy(c->decrypt_keys, c->keys.round_key, sizeof c->decrypt_keys);
    for (unsigned i = 0; i < SERPENT_ROUNDS; i++) {
        uint32_t x[4];
        complement_words(x, encrypt_complements[i % 8]);
        if (i < SERPENT_ROUNDS - 1) {
            serpent_linear(x);
        }
        serpent_mix_key(c->encrypt_keys[i + 1], x);
        complement_words(x, decrypt_complements[i % 8]);
        serpent_mix_key(c->decrypt_keys[i], x);
    }
    return SUBJECT_OK;
}

/* serpent_linear() of serpent_block.h. */
static inline void vector_linear(vec x[4])
{
    x[0] = vec_rotl(x[0], 13);
    x[2] = vec_rotl(x[2], 3);
    x[1] = vec_xor(vec_xor(x[1], x[0]), x[2]);
    x[3] = vec_xor(vec_xor(x[3], x[2]), vec_shl(x[0], 3));
    x[1] = vec_rotl(x[1], 1);
    x[3] = vec_rotl(x[3], 7);
    x[0] = vec_xor(vec_xor(x[0], x[1]), x[3]);
    x[2] = vec_xor(vec_xor(x[2], x[3]), vec_shl(x[1], 7));
    x[0] = vec_rotl(x[0], 5);
    x[2] = vec_rotl(x[2], 22);
}

static inline void vector_linear_inverse(vec x[4])
{
    x[2] = vec_rotr(x[2], 22);
    x[0] = vec_rotr(x[0], 5);
    x[2] = vec_xor(vec_xor(x[2], x[3]), vec_shl(x[1], 7));
    x[0] = vec_xor(vec_xor(x[0], x[1]), x[3]);
    x[3] = vec_rotr(x[3], 7);
    x[1] = vec_rotr(x[1], 1);
    x[3] = vec_xor(vec_xor(x[3], x[2]), vec_shl(x[0], 3));
    x[1] = vec_xor(vec_xor(x[1], x[0]), x[2]);
    x[2] = vec_rotr(x[2], 3);
    x[0] = vec_rotr(x[0], 13);
}

static inline void xor_words(vec x[4], const vec k[4])
{
    x[0] = vec_xor(x[0], k[0]);
    x[1] = vec_xor(x[1], k[1]);
    x[2] = vec_xor(x[2], k[2]);
    x[3] = vec_xor(x[3], k[3]);
}

/* Both groups take a step before the next one: their chains overlap in the processor, and the temporary values of one
 * circuit fit into the registers beside eight words. */
#define EACH(step)   \
    do {             \
        step(a);     \
        if (two) {   \
            step(b); \
        }            \
    } while (0)

#define VECTOR_MIX(k)                    \
    do {                                 \
        vec words[4];                    \
        vec_broadcast_words(words, (k)); \
        xor_words(a, words);             \
        if (two) {                       \
            xor_words(b, words);         \
        }                                \
    } while (0)

#define VECTOR_ROUND(n, k)    \
    do {                      \
        VECTOR_MIX(k);        \
        EACH(vector_sbox##n); \
        EACH(vector_linear);  \
    } while (0)

#define VECTOR_ROUND_INVERSE(n, k)      \
    do {                                \
        EACH(vector_linear_inverse);    \
        EACH(vector_sbox##n##_inverse); \
        VECTOR_MIX(k);                  \
    } while (0)

/* Register by register: a compiler copies whole arrays in pieces, which the loads behind them then wait for. */
static inline void copy_words(vec to[4], const vec from[4])
{
    to[0] = from[0];
    to[1] = from[1];
    to[2] = from[2];
    to[3] = from[3];
}

/* One group, v, or two, v and w: two is a constant. */
static inline __attribute__((always_inline)) void encrypt_groups(const uint32_t (*k)[4], vec *v, vec *w, int two)
{
    vec a[4], b[4];

    copy_words(a, v);
    copy_words(b, w);

    for (unsigned i = 0;; i += 8) {
        VECTOR_ROUND(0, k[i]);
        VECTOR_ROUND(1, k[i + 1]);
        VECTOR_ROUND(2, k[i + 2]);
        VECTOR_ROUND(3, k[i + 3]);
        VECTOR_ROUND(4, k[i + 4]);
        VECTOR_ROUND(5, k[i + 5]);
        VECTOR_ROUND(6, k[i + 6]);
        VECTOR_MIX(k[i + 7]);
        EACH(vector_sbox7);
        if (i == SERPENT_ROUNDS - 8) {
            break;
        }
        EACH(vector_linear);
    }
    VECTOR_MIX(k[SERPENT_ROUNDS]);
    copy_words(v, a);
    if (two) {
        copy_words(w, b);
    }
}

static inline __attribute__((always_inline)) void decrypt_groups(const uint32_t (*k)[4], vec *v, vec *w, int two)
{
    vec a[4], b[4];

    copy_words(a, v);
    copy_words(b, w);

    VECTOR_MIX(k[SERPENT_ROUNDS]);
    for (unsigned i = SERPENT_ROUNDS - 8;; i -= 8) {
        EACH(vector_sbox7_inverse);
        VECTOR_MIX(k[i + 7]);
        VECTOR_ROUND_INVERSE(6, k[i + 6]);
        VECTOR_ROUND_INVERSE(5, k[i + 5]);
        VECTOR_ROUND_INVERSE(4, k[i + 4]);
        VECTOR_ROUND_INVERSE(3, k[i + 3]);
        VECTOR_ROUND_INVERSE(2, k[i + 2]);
        VECTOR_ROUND_INVERSE(1, k[i + 1]);
        VECTOR_ROUND_INVERSE(0, k[i]);
        if (i == 0) {
            break;
        }
        EACH(vector_linear_inverse);
    }
    copy_words(v, a);
    if (two) {
        copy_words(w, b);
    }
}

static void encrypt_two_groups(const struct serpent_ctx *c, vec v[WIDE_VECS])
{
    encrypt_groups(c->encrypt_keys, v, v + GROUP_VECS, 1);
}

static void encrypt_one_group(const struct serpent_ctx *c, vec v[GROUP_VECS])
{
    encrypt_groups(c->encrypt_keys, v, v, 0);
}

static void decrypt_two_groups(const struct serpent_ctx *c, vec v[WIDE_VECS])
{
    decrypt_groups(c->decrypt_keys, v, v + GROUP_VECS, 1);
}

static void decrypt_one_group(const struct serpent_ctx *c, vec v[GROUP_VECS])
{
    decrypt_groups(c->decrypt_keys, v, v, 0);
}

/* The words of num_blocks blocks, at most WAYS: what else is in v is padding. */
static inline void crypt_words(const struct serpent_ctx *c, vec v[WIDE_VECS], size_t num_blocks, int decrypting)
{
    if (num_blocks > GROUP) {
        SUBJECT_PATH("two_groups");
        if (decrypting) {
            decrypt_two_groups(c, v);
        } else {
            encrypt_two_groups(c, v);
        }
    } else {
        SUBJECT_PATH("one_group");
        if (decrypting) {
            decrypt_one_group(c, v);
        } else {
            encrypt_one_group(c, v);
        }
    }
}

static inline void crypt_block(const struct serpent_ctx *c, uint8_t *dst, const uint8_t *src, int decrypting)
{
    SUBJECT_PATH("block");
    if (decrypting) {
        serpent_decrypt_block(&c->keys, dst, src);
    } else {
        serpent_encrypt_block(&c->keys, dst, src);
    }
}

/* Both groups between blocks and words: the transposition is its own inverse. */
static inline void transpose_groups(vec v[WIDE_VECS])
{
    vec_transpose(v);
    vec_transpose(v + GROUP_VECS);
}

/* WAYS blocks, vector by vector: a loop would be taken for a copy of bytes, which goes in pieces. */
static inline void load_blocks(vec v[WIDE_VECS], const uint8_t *src)
{
    v[0] = vec_load(src);
    v[1] = vec_load(src + VEC_LEN);
    v[2] = vec_load(src + 2 * VEC_LEN);
    v[3] = vec_load(src + 3 * VEC_LEN);
    v[4] = vec_load(src + 4 * VEC_LEN);
    v[5] = vec_load(src + 5 * VEC_LEN);
    v[6] = vec_load(src + 6 * VEC_LEN);
    v[7] = vec_load(src + 7 * VEC_LEN);
}

static inline void store_blocks(uint8_t *dst, const vec v[WIDE_VECS])
{
    vec_store(dst, v[0]);
    vec_store(dst + VEC_LEN, v[1]);
    vec_store(dst + 2 * VEC_LEN, v[2]);
    vec_store(dst + 3 * VEC_LEN, v[3]);
    vec_store(dst + 4 * VEC_LEN, v[4]);
    vec_store(dst + 5 * VEC_LEN, v[5]);
    vec_store(dst + 6 * VEC_LEN, v[6]);
    vec_store(dst + 7 * VEC_LEN, v[7]);
}

static inline void load_words(vec v[WIDE_VECS], const uint8_t *src)
{
    load_blocks(v, src);
    transpose_groups(v);
}

static inline void store_words(uint8_t *dst, vec v[WIDE_VECS])
{
    transpose_groups(v);
    store_blocks(dst, v);
}

#endif
