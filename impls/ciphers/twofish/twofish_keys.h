/* SPDX-License-Identifier: Apache-2.0
 *
 * What Twofish's key gives, for the implementations beside the generic one, which judges them and shares nothing with
 * them but the fixed tables. After the submission (B. Schneier et al.: "Twofish: A 128-Bit Block Cipher", 15 June 1998).
 */
#ifndef TWOFISH_KEYS_H
#define TWOFISH_KEYS_H

#include "subject.h"
#include "twofish_tables.h"

#define NUM_ROUNDS 16u
#define NUM_SUBKEYS 40u
#define MAX_K 4u /* k of section 4.3: key length in 64-bit units */

/* Section 4.3: the lists M_e, M_o and S, of k words each. */
struct key_words {
    unsigned k;
    uint32_t even[MAX_K], odd[MAX_K], s[MAX_K];
};

/* Section 4.3.2, figure 2: bit n of q_before[j] says which of q0 and q1 byte j goes through before the n words L_0 to
 * L_(n-1) are still to come; bit 0 is the last of all. */
static const uint8_t q_before[4] = {0x19, 0x0c, 0x03, 0x16};

/* Which q stands before the last n words of the list, in byte j. */
static inline unsigned q_index(unsigned j, unsigned n)
{
    return ((unsigned)q_before[j] >> n) & 1u;
}

static inline uint32_t byte_of(uint32_t x, unsigned j)
{
    return (x >> (8u * j)) & 0xffu;
}

/* The Reed-Solomon code of section 4.3 as a remainder: r * x modulo the generator
 * x^4 + (a + 1/a) x^3 + a x^2 + (a + 1/a) x + 1, where a is the root of w(x). The highest coefficient is the highest byte. */
static inline uint32_t rs_times_x(uint32_t r)
{
    const uint32_t top = r >> 24;
    const uint32_t by_a = ((top << 1) ^ ((0u - (top >> 7)) & RS_POLYNOMIAL)) & 0xffu;
    const uint32_t over_a = (top >> 1) ^ ((0u - (top & 1u)) & (RS_POLYNOMIAL >> 1));
    const uint32_t both = by_a ^ over_a;

    return (r << 8) ^ (both << 24) ^ (by_a << 16) ^ (both << 8) ^ top;
}

/* The word S_i of eight key bytes. */
static inline uint32_t rs_code(const uint8_t m[8])
{
    uint32_t r = load_le32(m + 4);

    for (unsigned i = 0; i < 4; i++) {
        r = rs_times_x(r);
    }
    r ^= load_le32(m);
    for (unsigned i = 0; i < 4; i++) {
        r = rs_times_x(r);
    }
    return r;
}

/* Neither branches nor addresses depend on the key. key_len is in bytes; a wrong one is refused. */
static inline int split_key(struct key_words *w, const uint8_t *key, size_t key_len)
{
    if (key_len != 16 && key_len != 24 && key_len != 32) {
        return SUBJECT_BAD_KEY_LEN;
    }
    w->k = (unsigned)(key_len / 8);
    for (unsigned i = 0; i < w->k; i++) {
        w->even[i] = load_le32(key + 8 * i);
        w->odd[i] = load_le32(key + 8 * i + 4);
        w->s[w->k - 1 - i] = rs_code(key + 8 * i);
    }
    return SUBJECT_OK;
}

#endif
