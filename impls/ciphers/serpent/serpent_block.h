/* SPDX-License-Identifier: Apache-2.0
 *
 * Serpent, one block at a time, in bitslice mode (R. Anderson, E. Biham, L. Knudsen: "Serpent: A Proposal for the
 * Advanced Encryption Standard", 1998; its section titles are quoted below), and its key schedule. A block is four
 * little-endian words X0 to X3, the least significant word first, and so are the eight words of a key: the byte order
 * of the NESSIE test vectors. In bitslice mode the initial and final permutations fall away, and bit i of the four
 * words is the input of the i-th of 32 equal S-boxes.
 */
#ifndef SERPENT_BLOCK_H
#define SERPENT_BLOCK_H

#include "serpent_circuits.h"
#include "subject.h"

#define SERPENT_ROUNDS 32u
#define SERPENT_MAX_KEY_LEN 32u
#define SERPENT_PREKEYS 132u             /* four for each round key */
#define SERPENT_PHI UINT32_C(0x9e3779b9) /* "The Key Schedule": "the fractional part of the golden ratio" */

/* What the stack has to be cleared of behind a block, and behind a key schedule (subject_wipe.h). */
#define SERPENT_BLOCK_FRAME 256
#define SERPENT_KEY_FRAME 1536

struct serpent_keys {
    uint32_t round_key[SERPENT_ROUNDS + 1][4];
};

static inline void serpent_mix_key(uint32_t x[4], const uint32_t k[4])
{
    x[0] ^= k[0];
    x[1] ^= k[1];
    x[2] ^= k[2];
    x[3] ^= k[3];
}

/* "Linear Transformation". */
static inline void serpent_linear(uint32_t x[4])
{
    x[0] = rotl32(x[0], 13);
    x[2] = rotl32(x[2], 3);
    x[1] = x[1] ^ x[0] ^ x[2];
    x[3] = x[3] ^ x[2] ^ (x[0] << 3);
    x[1] = rotl32(x[1], 1);
    x[3] = rotl32(x[3], 7);
    x[0] = x[0] ^ x[1] ^ x[3];
    x[2] = x[2] ^ x[3] ^ (x[1] << 7);
    x[0] = rotl32(x[0], 5);
    x[2] = rotl32(x[2], 22);
}

/* The steps of serpent_linear() backwards. */
static inline void serpent_linear_inverse(uint32_t x[4])
{
    x[2] = rotr32(x[2], 22);
    x[0] = rotr32(x[0], 5);
    x[2] = x[2] ^ x[3] ^ (x[1] << 7);
    x[0] = x[0] ^ x[1] ^ x[3];
    x[3] = rotr32(x[3], 7);
    x[1] = rotr32(x[1], 1);
    x[3] = x[3] ^ x[2] ^ (x[0] << 3);
    x[1] = x[1] ^ x[0] ^ x[2];
    x[2] = rotr32(x[2], 3);
    x[0] = rotr32(x[0], 13);
}

/* "The Cipher": R_i(X) = L(S_i(X xor K_i)), where S_i is S-box i mod 8. */
#define SERPENT_ROUND(n, x, k) \
    do {                       \
        serpent_mix_key(x, k); \
        sbox##n(x);            \
        serpent_linear(x);     \
    } while (0)

#define SERPENT_ROUND_INVERSE(n, x, k) \
    do {                               \
        serpent_linear_inverse(x);     \
        sbox##n##_inverse(x);          \
        serpent_mix_key(x, k);         \
    } while (0)

static inline void serpent_load(uint32_t x[4], const uint8_t *src)
{
    x[0] = load_le32(src);
    x[1] = load_le32(src + 4);
    x[2] = load_le32(src + 8);
    x[3] = load_le32(src + 12);
}

static inline void serpent_store(uint8_t *dst, const uint32_t x[4])
{
    store_le32(dst, x[0]);
    store_le32(dst + 4, x[1]);
    store_le32(dst + 8, x[2]);
    store_le32(dst + 12, x[3]);
}

/* "The Cipher": "In the last round, this linear transformation is replaced by an additional key mixing operation". */
static inline void serpent_encrypt_block(const struct serpent_keys *keys, uint8_t *dst, const uint8_t *src)
{
    const uint32_t (*k)[4] = keys->round_key;
    uint32_t x[4];

    serpent_load(x, src);
    for (;;) {
        SERPENT_ROUND(0, x, k[0]);
        SERPENT_ROUND(1, x, k[1]);
        SERPENT_ROUND(2, x, k[2]);
        SERPENT_ROUND(3, x, k[3]);
        SERPENT_ROUND(4, x, k[4]);
        SERPENT_ROUND(5, x, k[5]);
        SERPENT_ROUND(6, x, k[6]);
        serpent_mix_key(x, k[7]);
        sbox7(x);
        k += 8;
        if (k == keys->round_key + SERPENT_ROUNDS) {
            break;
        }
        serpent_linear(x);
    }
    serpent_mix_key(x, k[0]);
    serpent_store(dst, x);
}

static inline void serpent_decrypt_block(const struct serpent_keys *keys, uint8_t *dst, const uint8_t *src)
{
    const uint32_t (*k)[4] = keys->round_key + SERPENT_ROUNDS;
    uint32_t x[4];

    serpent_load(x, src);
    serpent_mix_key(x, k[0]);
    for (;;) {
        k -= 8;
        sbox7_inverse(x);
        serpent_mix_key(x, k[7]);
        SERPENT_ROUND_INVERSE(6, x, k[6]);
        SERPENT_ROUND_INVERSE(5, x, k[5]);
        SERPENT_ROUND_INVERSE(4, x, k[4]);
        SERPENT_ROUND_INVERSE(3, x, k[3]);
        SERPENT_ROUND_INVERSE(2, x, k[2]);
        SERPENT_ROUND_INVERSE(1, x, k[1]);
        SERPENT_ROUND_INVERSE(0, x, k[0]);
        if (k == keys->round_key) {
            break;
        }
        serpent_linear_inverse(x);
    }
    serpent_store(dst, x);
}

/* "The Key Schedule": w_i = (w_{i-8} xor w_{i-5} xor w_{i-3} xor w_{i-1} xor PHI xor i) <<< 11. w[0] is w_{-8}: the
 * first eight words are the key. */
static inline void serpent_expand(uint32_t w[8 + SERPENT_PREKEYS])
{
    for (uint32_t i = 0; i < SERPENT_PREKEYS; i++) {
        w[i + 8] = rotl32(w[i] ^ w[i + 3] ^ w[i + 5] ^ w[i + 7] ^ SERPENT_PHI ^ i, 11);
    }
}

/* "The Key Schedule": {k_0..k_3} = S_3(w_0..w_3), {k_4..k_7} = S_2(w_4..w_7) and so on, four w_i each. */
#define SERPENT_DERIVE(n, k, w)                           \
    do {                                                  \
        uint32_t x[4] = {(w)[0], (w)[1], (w)[2], (w)[3]}; \
        sbox##n(x);                                       \
        memcpy(k, x, sizeof x);                           \
    } while (0)

static inline void serpent_derive(uint32_t k[SERPENT_ROUNDS + 1][4], const uint32_t w[SERPENT_PREKEYS])
{
    for (unsigned r = 0; r < SERPENT_ROUNDS; r += 8) {
        SERPENT_DERIVE(3, k[r], w + 4 * r);
        SERPENT_DERIVE(2, k[r + 1], w + 4 * r + 4);
        SERPENT_DERIVE(1, k[r + 2], w + 4 * r + 8);
        SERPENT_DERIVE(0, k[r + 3], w + 4 * r + 12);
        SERPENT_DERIVE(7, k[r + 4], w + 4 * r + 16);
        SERPENT_DERIVE(6, k[r + 5], w + 4 * r + 20);
        SERPENT_DERIVE(5, k[r + 6], w + 4 * r + 24);
        SERPENT_DERIVE(4, k[r + 7], w + 4 * r + 28);
    }
    SERPENT_DERIVE(3, k[SERPENT_ROUNDS], w + 4 * SERPENT_ROUNDS);
}

/* Refuses a key that is too long before it writes anything. */
static inline int serpent_expand_key(struct serpent_keys *keys, const uint8_t *key, size_t key_len)
{
    uint8_t padded[SERPENT_MAX_KEY_LEN + 1] = {0};
    uint32_t w[8 + SERPENT_PREKEYS];

    if (key_len > SERPENT_MAX_KEY_LEN) {
        return SUBJECT_BAD_KEY_LEN;
    }
    /* "The Key Schedule": a short key becomes a full one "by appending one '1' bit to the MSB end, followed by as many
     * '0' bits as required to make up 256 bits". The spare byte takes the bit that a full key has no room for. */
    if (key_len > 0) {
        memcpy(padded, key, key_len);
    }
    padded[key_len] = 1;
    for (size_t i = 0; i < 8; i++) {
        w[i] = load_le32(padded + 4 * i);
    }
    serpent_expand(w);
    serpent_derive(keys->round_key, w + 8);
    return SUBJECT_OK;
}

#endif
