/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys of CAST-128 (RFC 2144, whose section numbers these are), and its blocks as integers, for the implementations
 * beside the generic one, which judges them and shares nothing with them but the S-boxes. For little-endian hosts. */
#ifndef CAST5_KEYS_H
#define CAST5_KEYS_H

#include <stddef.h>

#include "cast5_sbox.h"
#include "subject.h"

#define BLOCK_LEN 8u
#define MAX_ROUNDS 16u
#define MIN_KEY_LEN 5u
#define MAX_KEY_LEN 16u
#define SHORT_KEY_LEN 10u /* 80 bits: the longest key with 12 rounds */

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* 2.1: round i has the masking key mask[i] and a rotation key. left[i] turns the word by 16 bits more than that: Ia and
 * Ib, which are joined first, then lie in the low half, where an instruction each takes them out. right[i] is what a
 * shift to the right needs to complete the turn. The x86-64 cast5_rounds.S knows this layout, and looks one round ahead
 * of the first and the last. */
struct cast5_ctx {
    uint32_t num_rounds; /* 12 or 16 */
    uint32_t mask[MAX_ROUNDS];
    uint32_t left[MAX_ROUNDS];
    uint32_t right[MAX_ROUNDS];
    uint32_t looked_at; /* 0 */
};

_Static_assert(offsetof(struct cast5_ctx, mask) == 4 && offsetof(struct cast5_ctx, left) == 4 + 64 &&
                   offsetof(struct cast5_ctx, right) == 4 + 128 && sizeof(struct cast5_ctx) == 4 + 192 + 4,
               "the layout that cast5_rounds.S knows");

/* 2.2: the three round functions. */
enum type { TYPE_1, TYPE_2, TYPE_3 };

/* Key schedule, 2.4. */

/* One of the steps from x0..xF to z0..zF and back. Those back have the same indices as those forth, but for 8 added
 * to each index of the words that a step starts from, modulo 16: `turned` is 0 or 8. */
static void mix(uint8_t out[16], const uint8_t in[16], unsigned turned)
{
#define IN(i) in[(i) ^ turned]
    store_be32(&out[0], load_be32(&IN(0x0)) ^ S5[IN(0xD)] ^ S6[IN(0xF)] ^ S7[IN(0xC)] ^ S8[IN(0xE)] ^ S7[IN(0x8)]);
    store_be32(&out[4], load_be32(&IN(0x8)) ^ S5[out[0]] ^ S6[out[2]] ^ S7[out[1]] ^ S8[out[3]] ^ S8[IN(0xA)]);
    store_be32(&out[8], load_be32(&IN(0xC)) ^ S5[out[7]] ^ S6[out[6]] ^ S7[out[5]] ^ S8[out[4]] ^ S5[IN(0x9)]);
    store_be32(&out[12], load_be32(&IN(0x4)) ^ S5[out[10]] ^ S6[out[9]] ^ S7[out[11]] ^ S8[out[8]] ^ S6[IN(0xB)]);
#undef IN
}

/* The bytes of z (first and third row of four subkeys) or x (second and fourth) from which K1 to K16 come: indices into
 * S5, S6, S7 and S8, and into the box that is joined last, which is S5 to S8 in turn. */
static const uint8_t subkey_bytes[16][5] = {
    /* clang-format off */
    {0x8, 0x9, 0x7, 0x6, 0x2}, {0xA, 0xB, 0x5, 0x4, 0x6}, {0xC, 0xD, 0x3, 0x2, 0x9}, {0xE, 0xF, 0x1, 0x0, 0xC},
    {0x3, 0x2, 0xC, 0xD, 0x8}, {0x1, 0x0, 0xE, 0xF, 0xD}, {0x7, 0x6, 0x8, 0x9, 0x3}, {0x5, 0x4, 0xA, 0xB, 0x7},
    {0x3, 0x2, 0xC, 0xD, 0x9}, {0x1, 0x0, 0xE, 0xF, 0xC}, {0x7, 0x6, 0x8, 0x9, 0x2}, {0x5, 0x4, 0xA, 0xB, 0x6},
    {0x8, 0x9, 0x7, 0x6, 0x3}, {0xA, 0xB, 0x5, 0x4, 0x7}, {0xC, 0xD, 0x3, 0x2, 0x8}, {0xE, 0xF, 0x1, 0x0, 0xD},
    /* clang-format on */
};

/* K1..K16, or K17..K32 from the x that the first sixteen left behind. */
static void sixteen_subkeys(uint32_t k[16], uint8_t x[16])
{
    static const uint32_t *const last[4] = {S5, S6, S7, S8};
    uint8_t z[16];

    for (unsigned i = 0; i < 16; i++) {
        const uint8_t *n = subkey_bytes[i];
        const uint8_t *from = i / 4 % 2 == 0 ? z : x;

        if (i % 8 == 0) {
            mix(z, x, 0);
        } else if (i % 8 == 4) {
            mix(x, z, 8);
        }
        k[i] = S5[from[n[0]]] ^ S6[from[n[1]]] ^ S7[from[n[2]]] ^ S8[from[n[3]]] ^ last[i % 4][from[n[4]]];
    }
}

static int setkey(void *context, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct cast5_ctx *ctx = context;
    uint8_t x[16] = {0};

    (void)policy; /* 1: no weak keys */
    if (key_len < MIN_KEY_LEN || key_len > MAX_KEY_LEN) {
        return SUBJECT_BAD_KEY_LEN;
    }
    /* 2.5: shorter keys are padded with zeros; up to 80 bits there are 12 rounds. */
    memcpy(x, key, key_len);
    ctx->num_rounds = key_len <= SHORT_KEY_LEN ? 12 : 16;
    sixteen_subkeys(ctx->mask, x);
    sixteen_subkeys(ctx->left, x);
    for (unsigned i = 0; i < MAX_ROUNDS; i++) {
        ctx->left[i] = (ctx->left[i] + 16) & 31u; /* 2.4.1: of Kri five bits count */
        ctx->right[i] = 32 - ctx->left[i];
    }
    ctx->looked_at = 0;
    return SUBJECT_OK;
}

ALWAYS_INLINE uint64_t load_block(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, BLOCK_LEN);
    return v;
}

ALWAYS_INLINE void store_block(uint8_t *p, uint64_t v)
{
    memcpy(p, &v, BLOCK_LEN);
}

/* What big-endian words stand in a block, first in the upper half; and back. */
ALWAYS_INLINE uint64_t swap_block(uint64_t v)
{
    return __builtin_bswap64(v);
}

#endif
