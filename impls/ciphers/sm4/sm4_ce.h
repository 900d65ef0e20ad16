/* SPDX-License-Identifier: Apache-2.0
 *
 * SM4 (GB/T 32907-2016; in English draft-ribose-cfrg-sm4) with the SM4 instructions of Armv8.2.
 *
 * SM4E does four rounds on one block, word j in 32-bit lane j; eight of them are the cipher. SM4EKEY makes four round
 * keys from the four before. Decryption is encryption with the round keys in reverse order (section 7.2).
 */
#ifndef SM4_CE_H
#define SM4_CE_H

#include "neon_modes.h"
#include "sm4_block.h"

/* The four words, last first: a step of the schedule backwards. */
static const uint8_t reverse_words[16] = {12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3};
/* The 16 bytes, last first: the reverse transformation R (section 6.1), and the words' bytes as they lie in memory. */
static const uint8_t reverse_bytes[16] = {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};

/* A block in memory is big-endian words. */
NEON_INLINE uint32x4_t block_words(uint8x16_t block)
{
    return vreinterpretq_u32_u8(vrev32q_u8(block));
}

static inline int setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    const uint8x16_t reverse = vld1q_u8(reverse_words);
    struct sm4_keys *c = ctx;
    uint32x4_t rk;

    (void)policy; /* SM4 has no weak keys */
    if (key_len != 16) {
        return SUBJECT_BAD_KEY_LEN;
    }
    rk = veorq_u32(block_words(vld1q_u8(key)), vld1q_u32(fk));
    for (unsigned i = 0; i < ROUNDS; i += 4) {
        rk = vsm4ekeyq_u32(rk, vld1q_u32(ck + i));
        vst1q_u32(c->encrypt + i, rk);
        vst1q_u8((uint8_t *)(c->decrypt + (ROUNDS - 4 - i)), vqtbl1q_u8(vreinterpretq_u8_u32(rk), reverse));
    }
    return SUBJECT_OK;
}

/* The round keys of one direction, and the permutation of the end, in registers. */
struct neon_keys {
    uint32x4_t rk[8];
    uint8x16_t reverse;
};

NEON_INLINE struct neon_keys keys_from(const uint32_t *rk)
{
    return (struct neon_keys){
        {vld1q_u32(rk), vld1q_u32(rk + 4), vld1q_u32(rk + 8), vld1q_u32(rk + 12), vld1q_u32(rk + 16),
         vld1q_u32(rk + 20), vld1q_u32(rk + 24), vld1q_u32(rk + 28)},
        vld1q_u8(reverse_bytes),
    };
}

NEON_INLINE struct neon_keys encrypt_keys(const void *ctx)
{
    return keys_from(((const struct sm4_keys *)ctx)->encrypt);
}

NEON_INLINE struct neon_keys decrypt_keys(const void *ctx)
{
    return keys_from(((const struct sm4_keys *)ctx)->decrypt);
}

NEON_INLINE uint8x16_t words_block(const struct neon_keys *k, uint32x4_t x)
{
    return vqtbl1q_u8(vreinterpretq_u8_u32(x), k->reverse);
}

NEON_INLINE uint8x16_t crypt_1(const struct neon_keys *k, uint8x16_t block, int decrypting)
{
    uint32x4_t x = block_words(block);

    (void)decrypting; /* the keys are what differs */
    x = vsm4eq_u32(vsm4eq_u32(x, k->rk[0]), k->rk[1]);
    x = vsm4eq_u32(vsm4eq_u32(x, k->rk[2]), k->rk[3]);
    x = vsm4eq_u32(vsm4eq_u32(x, k->rk[4]), k->rk[5]);
    x = vsm4eq_u32(vsm4eq_u32(x, k->rk[6]), k->rk[7]);
    return words_block(k, x);
}

#endif
