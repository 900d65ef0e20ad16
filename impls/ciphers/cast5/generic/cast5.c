/* SPDX-License-Identifier: Apache-2.0
 *
 * CAST-128 (CAST5) in the notation of RFC 2144, for any byte order. Section numbers are the RFC's. */
#include "cast5_sbox.h"
#include "subject.h"

#define BLOCK_LEN 8u
#define MIN_KEY_LEN 5u
#define MAX_KEY_LEN 16u
#define SHORT_KEY_LEN 10u /* 80 bits: the longest key with 12 rounds */

/* 2.1: each round has a 32-bit masking key and a 5-bit rotation key. */
struct round_key {
    uint32_t km;
    uint32_t kr;
};

struct cast5_ctx {
    struct round_key round[16];
    uint32_t num_rounds; /* 12 or 16 */
};

/* 2.2: the bytes Ia (most significant) to Id of I. */
#define IA(i) ((i) >> 24)
#define IB(i) ((uint8_t)((i) >> 16))
#define IC(i) ((uint8_t)((i) >> 8))
#define ID(i) ((uint8_t)(i))

/* 2.2, the three round functions; + and - are modulo 2^32. */
static inline uint32_t f1(uint32_t d, const struct round_key *k)
{
    uint32_t i = rotl32(k->km + d, k->kr);
    return ((S1[IA(i)] ^ S2[IB(i)]) - S3[IC(i)]) + S4[ID(i)];
}

static inline uint32_t f2(uint32_t d, const struct round_key *k)
{
    uint32_t i = rotl32(k->km ^ d, k->kr);
    return ((S1[IA(i)] - S2[IB(i)]) + S3[IC(i)]) ^ S4[ID(i)];
}

static inline uint32_t f3(uint32_t d, const struct round_key *k)
{
    uint32_t i = rotl32(k->km - d, k->kr);
    return ((S1[IA(i)] + S2[IB(i)]) ^ S3[IC(i)]) - S4[ID(i)];
}

/* 2: Li = Ri-1, Ri = Li-1 ^ f(Ri-1, Kmi, Kri). Not moving the halves, l and r take the part of Ri in turn. Rounds
 * 1, 4, 7, ... are of type 1, rounds 2, 5, 8, ... of type 2, rounds 3, 6, 9, ... of type 3. */
static void encrypt_block(const struct cast5_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    const struct round_key *k = ctx->round;
    uint32_t l = load_be32(src);
    uint32_t r = load_be32(src + 4);

    l ^= f1(r, &k[0]);
    r ^= f2(l, &k[1]);
    l ^= f3(r, &k[2]);
    r ^= f1(l, &k[3]);
    l ^= f2(r, &k[4]);
    r ^= f3(l, &k[5]);
    l ^= f1(r, &k[6]);
    r ^= f2(l, &k[7]);
    l ^= f3(r, &k[8]);
    r ^= f1(l, &k[9]);
    l ^= f2(r, &k[10]);
    r ^= f3(l, &k[11]);
    if (ctx->num_rounds == 16) {
        l ^= f1(r, &k[12]);
        r ^= f2(l, &k[13]);
        l ^= f3(r, &k[14]);
        r ^= f1(l, &k[15]);
    }
    /* "Exchange final blocks L16, R16 and concatenate". */
    store_be32(dst, r);
    store_be32(dst + 4, l);
}

/* 2: decryption "is identical to the encryption algorithm given above, except that the rounds (and therefore the
 * subkey pairs) are used in reverse order". */
static void decrypt_block(const struct cast5_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    const struct round_key *k = ctx->round;
    uint32_t r = load_be32(src);
    uint32_t l = load_be32(src + 4);

    if (ctx->num_rounds == 16) {
        r ^= f1(l, &k[15]);
        l ^= f3(r, &k[14]);
        r ^= f2(l, &k[13]);
        l ^= f1(r, &k[12]);
    }
    r ^= f3(l, &k[11]);
    l ^= f2(r, &k[10]);
    r ^= f1(l, &k[9]);
    l ^= f3(r, &k[8]);
    r ^= f2(l, &k[7]);
    l ^= f1(r, &k[6]);
    r ^= f3(l, &k[5]);
    l ^= f2(r, &k[4]);
    r ^= f1(l, &k[3]);
    l ^= f3(r, &k[2]);
    r ^= f2(l, &k[1]);
    l ^= f1(r, &k[0]);
    store_be32(dst, l);
    store_be32(dst + 4, r);
}

/* 2.4: z0..zF from x0..xF. */
static void z_from_x(uint8_t z[16], const uint8_t x[16])
{
    store_be32(&z[0x0], load_be32(&x[0x0]) ^ S5[x[0xD]] ^ S6[x[0xF]] ^ S7[x[0xC]] ^ S8[x[0xE]] ^ S7[x[0x8]]);
    store_be32(&z[0x4], load_be32(&x[0x8]) ^ S5[z[0x0]] ^ S6[z[0x2]] ^ S7[z[0x1]] ^ S8[z[0x3]] ^ S8[x[0xA]]);
    store_be32(&z[0x8], load_be32(&x[0xC]) ^ S5[z[0x7]] ^ S6[z[0x6]] ^ S7[z[0x5]] ^ S8[z[0x4]] ^ S5[x[0x9]]);
    store_be32(&z[0xC], load_be32(&x[0x4]) ^ S5[z[0xA]] ^ S6[z[0x9]] ^ S7[z[0xB]] ^ S8[z[0x8]] ^ S6[x[0xB]]);
}

/* 2.4: x0..xF from z0..zF. */
static void x_from_z(uint8_t x[16], const uint8_t z[16])
{
    store_be32(&x[0x0], load_be32(&z[0x8]) ^ S5[z[0x5]] ^ S6[z[0x7]] ^ S7[z[0x4]] ^ S8[z[0x6]] ^ S7[z[0x0]]);
    store_be32(&x[0x4], load_be32(&z[0x0]) ^ S5[x[0x0]] ^ S6[x[0x2]] ^ S7[x[0x1]] ^ S8[x[0x3]] ^ S8[z[0x2]]);
    store_be32(&x[0x8], load_be32(&z[0x4]) ^ S5[x[0x7]] ^ S6[x[0x6]] ^ S7[x[0x5]] ^ S8[x[0x4]] ^ S5[z[0x1]]);
    store_be32(&x[0xC], load_be32(&z[0xC]) ^ S5[x[0xA]] ^ S6[x[0x9]] ^ S7[x[0xB]] ^ S8[x[0x8]] ^ S6[z[0x3]]);
}

/* 2.4: K1..K16 into k[0..15]. K17..K32 follow by the same formulas from the x0..xF that K13..K16 left behind. */
static void sixteen_subkeys(uint32_t k[16], uint8_t x[16])
{
    uint8_t z[16];

    z_from_x(z, x);
    k[0] = S5[z[0x8]] ^ S6[z[0x9]] ^ S7[z[0x7]] ^ S8[z[0x6]] ^ S5[z[0x2]];
    k[1] = S5[z[0xA]] ^ S6[z[0xB]] ^ S7[z[0x5]] ^ S8[z[0x4]] ^ S6[z[0x6]];
    k[2] = S5[z[0xC]] ^ S6[z[0xD]] ^ S7[z[0x3]] ^ S8[z[0x2]] ^ S7[z[0x9]];
    k[3] = S5[z[0xE]] ^ S6[z[0xF]] ^ S7[z[0x1]] ^ S8[z[0x0]] ^ S8[z[0xC]];
    x_from_z(x, z);
    k[4] = S5[x[0x3]] ^ S6[x[0x2]] ^ S7[x[0xC]] ^ S8[x[0xD]] ^ S5[x[0x8]];
    k[5] = S5[x[0x1]] ^ S6[x[0x0]] ^ S7[x[0xE]] ^ S8[x[0xF]] ^ S6[x[0xD]];
    k[6] = S5[x[0x7]] ^ S6[x[0x6]] ^ S7[x[0x8]] ^ S8[x[0x9]] ^ S7[x[0x3]];
    k[7] = S5[x[0x5]] ^ S6[x[0x4]] ^ S7[x[0xA]] ^ S8[x[0xB]] ^ S8[x[0x7]];
    z_from_x(z, x);
    k[8] = S5[z[0x3]] ^ S6[z[0x2]] ^ S7[z[0xC]] ^ S8[z[0xD]] ^ S5[z[0x9]];
    k[9] = S5[z[0x1]] ^ S6[z[0x0]] ^ S7[z[0xE]] ^ S8[z[0xF]] ^ S6[z[0xC]];
    k[10] = S5[z[0x7]] ^ S6[z[0x6]] ^ S7[z[0x8]] ^ S8[z[0x9]] ^ S7[z[0x2]];
    k[11] = S5[z[0x5]] ^ S6[z[0x4]] ^ S7[z[0xA]] ^ S8[z[0xB]] ^ S8[z[0x6]];
    x_from_z(x, z);
    k[12] = S5[x[0x8]] ^ S6[x[0x9]] ^ S7[x[0x7]] ^ S8[x[0x6]] ^ S5[x[0x3]];
    k[13] = S5[x[0xA]] ^ S6[x[0xB]] ^ S7[x[0x5]] ^ S8[x[0x4]] ^ S6[x[0x7]];
    k[14] = S5[x[0xC]] ^ S6[x[0xD]] ^ S7[x[0x3]] ^ S8[x[0x2]] ^ S7[x[0x8]];
    k[15] = S5[x[0xE]] ^ S6[x[0xF]] ^ S7[x[0x1]] ^ S8[x[0x0]] ^ S8[x[0xD]];
}

static int setkey(void *context, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct cast5_ctx *ctx = context;
    uint8_t x[16] = {0};
    uint32_t km[16], kr[16];

    (void)policy; /* "an absence of weak and semi-weak keys" (1) */
    if (key_len < MIN_KEY_LEN || key_len > MAX_KEY_LEN) {
        return SUBJECT_BAD_KEY_LEN;
    }

    /* 2.5: keys shorter than 128 bits are padded with zero bytes in the rightmost positions; up to and including 80
     * bits the algorithm uses 12 rounds, beyond them all 16. */
    memcpy(x, key, key_len);
    ctx->num_rounds = key_len <= SHORT_KEY_LEN ? 12 : 16;

    /* 2.4.1: Kmi = Ki, Kri = K16+i, and of Kri "only the least significant 5 bits are used". */
    sixteen_subkeys(km, x);
    sixteen_subkeys(kr, x);
    for (size_t i = 0; i < 16; i++) {
        ctx->round[i].km = km[i];
        ctx->round[i].kr = kr[i] & 31u;
    }
    return SUBJECT_OK;
}

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks > 0; num_blocks--) {
        SUBJECT_PATH("block");
        encrypt_block(ctx, dst, src);
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks > 0; num_blocks--) {
        SUBJECT_PATH("block");
        decrypt_block(ctx, dst, src);
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
}

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = 1,
    .ctx_len = sizeof(struct cast5_ctx),
    .ctx_align = _Alignof(struct cast5_ctx),
    .setkey = setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
};

const struct subject_leaf *cast5_generic(uint64_t features);

const struct subject_leaf *cast5_generic(uint64_t features)
{
    (void)features;
    return &leaf;
}
