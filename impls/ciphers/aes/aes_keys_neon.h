/* SPDX-License-Identifier: Apache-2.0
 *
 * Key expansion of AES (FIPS 197, section 5.2) for code that holds a block as a vector of its bytes. A word's first byte is its
 * lowest here.
 */
#ifndef AES_KEYS_NEON_H
#define AES_KEYS_NEON_H

#include "subject.h"

#define AES_BLOCK_LEN 16u
#define AES_MAX_ROUNDS 14u

/* The last num_rounds + 1 of them are the keys, in the order of their use; those before are zero. */
struct aes_round_keys {
    uint32_t num_rounds;
    uint8_t bytes[(AES_MAX_ROUNDS + 1) * AES_BLOCK_LEN];
};

/* Round key i of AES_MAX_ROUNDS + 1. */
static inline uint8_t *aes_round_key(struct aes_round_keys *keys, uint32_t i)
{
    return keys->bytes + i * AES_BLOCK_LEN;
}

typedef uint32_t aes_sub_word_fn(uint32_t word);

static inline int aes_expand_key(struct aes_round_keys *keys, const uint8_t *key, size_t key_len, uint32_t policy,
                                 aes_sub_word_fn *sub_word)
{
    const size_t nk = key_len / 4;
    uint8_t *w;
    uint32_t word, rcon = 1;

    (void)policy; /* AES has no weak keys */
    if (key_len != 16 && key_len != 24 && key_len != 32) {
        return SUBJECT_BAD_KEY_LEN;
    }
    memset(keys, 0, sizeof(*keys));
    keys->num_rounds = (uint32_t)nk + 6; /* figure 4 */
    w = aes_round_key(keys, AES_MAX_ROUNDS - keys->num_rounds);
    memcpy(w, key, key_len);
    word = load_le32(w + key_len - 4);
    for (size_t i = nk, j = 0; i < 4 * (keys->num_rounds + 1); i++) {
        if (j == 0) {
            word = sub_word(rotr32(word, 8)) ^ rcon;
            rcon = (rcon << 1) ^ ((rcon >> 7) * 0x11bu);
        } else if (nk > 6 && j == 4) {
            word = sub_word(word);
        }
        word ^= load_le32(w + 4 * (i - nk));
        store_le32(w + 4 * i, word);
        j = j + 1 == nk ? 0 : j + 1;
    }
    return SUBJECT_OK;
}

#endif
