/* SPDX-License-Identifier: Apache-2.0
 *
 * Twofish by tables, one block at a time, for little-endian hosts: full keying (section 5.1 of the submission:
 * key-dependent S-boxes and MDS matrix in four tables of 256 words).
 */
#ifndef TWOFISH_SINGLE_H
#define TWOFISH_SINGLE_H

#include <stddef.h>

#include "twofish_keys.h"

struct tabled_ctx {
    uint32_t g[4][256];           /* g(X) is the XOR of g[j][byte j of X] */
    uint32_t subkey[NUM_SUBKEYS]; /* K_0 to K_39 */
};

/* Assembly counts on these. */
_Static_assert(offsetof(struct tabled_ctx, g) == 0, "tables lie at displacements of 0, 1024, 2048 and 3072");
_Static_assert(offsetof(struct tabled_ctx, subkey) == 4096, "subkeys follow the tables");

/* Byte j of h before the MDS matrix (section 4.3.2). */
static inline uint32_t h_byte(unsigned j, uint32_t x, const uint32_t list[MAX_K], unsigned k)
{
    for (unsigned n = k; n > 0; n--) {
        x = q[q_index(j, n)][x] ^ byte_of(list[n - 1], j);
    }
    return q[q_index(j, 0)][x];
}

/* h of four equal bytes x (section 4.3.4). */
static uint32_t h_of_equal_bytes(uint32_t x, const uint32_t list[MAX_K], unsigned k)
{
    uint32_t z = 0;

    for (unsigned j = 0; j < 4; j++) {
        z ^= mds[j][h_byte(j, x, list, k)];
    }
    return z;
}

static int tabled_setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct tabled_ctx *c = ctx;
    struct key_words w;
    int status = split_key(&w, key, key_len);

    (void)policy; /* Twofish has no weak keys */
    if (status != SUBJECT_OK) {
        return status;
    }
    for (unsigned j = 0; j < 4; j++) {
        for (uint32_t x = 0; x < 256; x++) {
            c->g[j][x] = mds[j][h_byte(j, x, w.s, w.k)];
        }
    }
    for (uint32_t i = 0; i < NUM_SUBKEYS; i += 2) {
        const uint32_t a = h_of_equal_bytes(i, w.even, w.k);
        const uint32_t b = rotl32(h_of_equal_bytes(i + 1, w.odd, w.k), 8);
        c->subkey[i] = a + b;
        c->subkey[i + 1] = rotl32(a + 2 * b, 9);
    }
    return SUBJECT_OK;
}

static inline uint32_t g(const struct tabled_ctx *ctx, uint32_t x)
{
    return ctx->g[0][byte_of(x, 0)] ^ ctx->g[1][byte_of(x, 1)] ^ ctx->g[2][byte_of(x, 2)] ^ ctx->g[3][byte_of(x, 3)];
}

/* g of x rotated left by 8 bits. */
static inline uint32_t g_rotated(const struct tabled_ctx *ctx, uint32_t x)
{
    return ctx->g[1][byte_of(x, 0)] ^ ctx->g[2][byte_of(x, 1)] ^ ctx->g[3][byte_of(x, 2)] ^ ctx->g[0][byte_of(x, 3)];
}

/* Section 4.1, one round: F of (a, b) goes into (c, d). The caller swaps the halves. */
static inline void encrypt_round(const struct tabled_ctx *ctx, const uint32_t *k, uint32_t a, uint32_t b, uint32_t *c,
                                 uint32_t *d)
{
    const uint32_t t1 = g_rotated(ctx, b);
    const uint32_t sum = g(ctx, a) + t1;

    *c = rotr32(*c ^ (sum + k[0]), 1);
    *d = rotl32(*d, 1) ^ (sum + t1 + k[1]);
}

static inline void decrypt_round(const struct tabled_ctx *ctx, const uint32_t *k, uint32_t a, uint32_t b, uint32_t *c,
                                 uint32_t *d)
{
    const uint32_t t1 = g_rotated(ctx, b);
    const uint32_t sum = g(ctx, a) + t1;

    *c = rotl32(*c, 1) ^ (sum + k[0]);
    *d = rotr32(*d ^ (sum + t1 + k[1]), 1);
}

/* In one store: the next to read the block may load it whole. */
static inline void store_words(uint8_t *dst, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    const uint32_t words __attribute__((vector_size(16))) = {a, b, c, d};

    memcpy(dst, &words, sizeof(words));
}

static void encrypt_one(const struct tabled_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    const uint32_t *k = ctx->subkey;
    uint32_t a = load_le32(src) ^ k[0], b = load_le32(src + 4) ^ k[1];
    uint32_t c = load_le32(src + 8) ^ k[2], d = load_le32(src + 12) ^ k[3];

    SUBJECT_PATH("1way");
    for (const uint32_t *rk = k + 8; rk < k + NUM_SUBKEYS; rk += 4) {
        encrypt_round(ctx, rk, a, b, &c, &d);
        encrypt_round(ctx, rk + 2, c, d, &a, &b);
    }
    store_words(dst, c ^ k[4], d ^ k[5], a ^ k[6], b ^ k[7]);
}

static void decrypt_one(const struct tabled_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    const uint32_t *k = ctx->subkey;
    uint32_t a = load_le32(src) ^ k[4], b = load_le32(src + 4) ^ k[5];
    uint32_t c = load_le32(src + 8) ^ k[6], d = load_le32(src + 12) ^ k[7];

    SUBJECT_PATH("1way");
    for (const uint32_t *rk = k + NUM_SUBKEYS - 4; rk > k + 4; rk -= 4) {
        decrypt_round(ctx, rk + 2, a, b, &c, &d);
        decrypt_round(ctx, rk, c, d, &a, &b);
    }
    store_words(dst, c ^ k[0], d ^ k[1], a ^ k[2], b ^ k[3]);
}

#endif
