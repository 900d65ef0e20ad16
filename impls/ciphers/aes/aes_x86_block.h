/* SPDX-License-Identifier: Apache-2.0
 *
 * AES (FIPS 197) on x86-64: the context, the key schedule and single blocks, which both widths share.
 *
 * AESENC is a whole round of the cipher, AESDEC one of the equivalent inverse cipher (section 5.3.5), whose round keys
 * have gone through AESIMC, which is InvMixColumns. Neither addresses a table, so all is constant-time.
 */
#ifndef AES_X86_BLOCK_H
#define AES_X86_BLOCK_H

#include <immintrin.h>

#include "subject.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

#define BLOCK_LEN 16u
#define MAX_ROUNDS 14u

struct aes_ctx {
    __m128i encrypt_key[MAX_ROUNDS + 1];
    __m128i decrypt_key[MAX_ROUNDS + 1]; /* in the order of their use */
    uint32_t num_rounds;                 /* Nr: 10, 12 or 14 */
};

ALWAYS_INLINE __m128i block_load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

ALWAYS_INLINE void block_store(uint8_t *p, __m128i v)
{
    _mm_storeu_si128((__m128i *)(void *)p, v);
}

ALWAYS_INLINE __m128i block_xor(__m128i a, __m128i b)
{
    return _mm_xor_si128(a, b);
}

/* Where the bytes of a block in the other order come from. */
#define BYTE_ORDER_HIGH INT64_C(0x0001020304050607)
#define BYTE_ORDER_LOW INT64_C(0x08090a0b0c0d0e0f)

/* All bytes in the other order: between the bytes of a block and a number of 128 bits. */
ALWAYS_INLINE __m128i block_swap(__m128i v)
{
    return _mm_shuffle_epi8(v, _mm_set_epi64x(BYTE_ORDER_HIGH, BYTE_ORDER_LOW));
}

/* ---- key schedule, section 5.2 ------------------------------------------------------------------------------ */

/* SubWord(RotWord(w)) xor rcon in every word, w the word that `from` names. AESENCLAST is ShiftRows, SubBytes and a key:
 * of four equal columns ShiftRows changes none. */
ALWAYS_INLINE __m128i sub_rot_word(__m128i words, __m128i from, uint32_t rcon)
{
    return _mm_aesenclast_si128(_mm_shuffle_epi8(words, from), _mm_set1_epi32((int)rcon));
}

/* Each word xor all words before it: the chain w[i] = w[i - 1] xor w[i - nk] but for what starts it. */
ALWAYS_INLINE __m128i sum_of_words(__m128i words)
{
    words = block_xor(words, _mm_slli_si128(words, 4));
    return block_xor(words, _mm_slli_si128(words, 8));
}

ALWAYS_INLINE uint32_t next_rcon(uint32_t rcon)
{
    return (rcon << 1) ^ ((rcon >> 7) * 0x11bu);
}

static void expand_128(__m128i *k, const uint8_t *key)
{
    const __m128i rotated_3 = _mm_set1_epi32(0x0c0f0e0d);
    __m128i words = block_load(key);
    uint32_t rcon = 1;

    k[0] = words;
    for (unsigned r = 1; r <= 10; r++) {
        words = block_xor(sum_of_words(words), sub_rot_word(words, rotated_3, rcon));
        k[r] = words;
        rcon = next_rcon(rcon);
    }
}

/* Six words a step, which lie across the round keys; the last step's two words beyond the schedule fall in the 14th. */
static void expand_192(__m128i *k, const uint8_t *key)
{
    const __m128i rotated_1 = _mm_set1_epi32(0x04070605);
    uint8_t *to = (uint8_t *)k;
    __m128i first = block_load(key), last = _mm_loadl_epi64((const __m128i *)(const void *)(key + 16));
    uint32_t rcon = 1;

    block_store(to, first);
    _mm_storel_epi64((__m128i *)(void *)(to + 16), last);
    for (unsigned step = 0; step < 8; step++) {
        to += 24;
        first = block_xor(sum_of_words(first), sub_rot_word(last, rotated_1, rcon));
        last = block_xor(block_xor(last, _mm_slli_si128(last, 4)), _mm_shuffle_epi32(first, 0xff));
        block_store(to, first);
        _mm_storel_epi64((__m128i *)(void *)(to + 16), last);
        rcon = next_rcon(rcon);
    }
}

static void expand_256(__m128i *k, const uint8_t *key)
{
    const __m128i rotated_3 = _mm_set1_epi32(0x0c0f0e0d), plain_3 = _mm_set1_epi32(0x0f0e0d0c);
    __m128i even = block_load(key), odd = block_load(key + 16);
    uint32_t rcon = 1;

    k[0] = even;
    k[1] = odd;
    for (unsigned r = 2; r < 14; r += 2) {
        even = block_xor(sum_of_words(even), sub_rot_word(odd, rotated_3, rcon));
        odd = block_xor(sum_of_words(odd), sub_rot_word(even, plain_3, 0));
        k[r] = even;
        k[r + 1] = odd;
        rcon = next_rcon(rcon);
    }
    k[14] = block_xor(sum_of_words(even), sub_rot_word(odd, rotated_3, rcon));
}

static int setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct aes_ctx *c = ctx;
    uint32_t nr = (uint32_t)(key_len / 4) + 6; /* figure 4 */

    (void)policy; /* AES has no weak keys */
    switch (key_len) {
    case 16: expand_128(c->encrypt_key, key); break;
    case 24: expand_192(c->encrypt_key, key); break;
    case 32: expand_256(c->encrypt_key, key); break;
    default: return SUBJECT_BAD_KEY_LEN;
    }
    c->num_rounds = nr;
    c->decrypt_key[0] = c->encrypt_key[nr];
    for (uint32_t r = 1; r < nr; r++) {
        c->decrypt_key[r] = _mm_aesimc_si128(c->encrypt_key[nr - r]);
    }
    c->decrypt_key[nr] = c->encrypt_key[0];
    return SUBJECT_OK;
}

/* ---- single blocks ------------------------------------------------------------------------------------------- */

#define FOUR_ROUNDS(x, op, k) op(op(op(op(x, (k)[0]), (k)[1]), (k)[2]), (k)[3])
#define TWO_ROUNDS(x, op, k) op(op(x, (k)[0]), (k)[1])

/* All rounds between the first key and the last. */
ALWAYS_INLINE __m128i encrypt_middle(const struct aes_ctx *c, __m128i x)
{
    const __m128i *k = c->encrypt_key;

    x = _mm_aesenc_si128(FOUR_ROUNDS(FOUR_ROUNDS(x, _mm_aesenc_si128, k + 1), _mm_aesenc_si128, k + 5), k[9]);
    if (c->num_rounds > 10) {
        x = TWO_ROUNDS(x, _mm_aesenc_si128, k + 10);
        if (c->num_rounds > 12) {
            x = TWO_ROUNDS(x, _mm_aesenc_si128, k + 12);
        }
    }
    return x;
}

ALWAYS_INLINE __m128i decrypt_middle(const struct aes_ctx *c, __m128i x)
{
    const __m128i *k = c->decrypt_key;

    x = _mm_aesdec_si128(FOUR_ROUNDS(FOUR_ROUNDS(x, _mm_aesdec_si128, k + 1), _mm_aesdec_si128, k + 5), k[9]);
    if (c->num_rounds > 10) {
        x = TWO_ROUNDS(x, _mm_aesdec_si128, k + 10);
        if (c->num_rounds > 12) {
            x = TWO_ROUNDS(x, _mm_aesdec_si128, k + 12);
        }
    }
    return x;
}

ALWAYS_INLINE __m128i encrypt_block(const struct aes_ctx *c, __m128i x)
{
    SUBJECT_PATH("block");
    return _mm_aesenclast_si128(encrypt_middle(c, block_xor(x, c->encrypt_key[0])), c->encrypt_key[c->num_rounds]);
}

ALWAYS_INLINE __m128i decrypt_block(const struct aes_ctx *c, __m128i x)
{
    SUBJECT_PATH("block");
    return _mm_aesdeclast_si128(decrypt_middle(c, block_xor(x, c->decrypt_key[0])), c->decrypt_key[c->num_rounds]);
}

ALWAYS_INLINE __m128i crypt_block(const struct aes_ctx *c, __m128i x, int decrypting)
{
    return decrypting ? decrypt_block(c, x) : encrypt_block(c, x);
}

/* A last block of fewer bytes: no more than these is read or written. */
ALWAYS_INLINE void xor_part(uint8_t *dst, const uint8_t *src, __m128i keystream, size_t len)
{
    uint8_t bytes[BLOCK_LEN];

    block_store(bytes, keystream);
    xor_bytes(dst, src, bytes, len);
}

#endif
