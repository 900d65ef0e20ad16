/* SPDX-License-Identifier: Apache-2.0
 *
 * CAST-128 (RFC 2144, whose section numbers these are) with NEON, 16 blocks side by side.
 *
 * Four blocks make a chunk: one register holds their left halves, one their right halves. Masking, rotating and joining
 * halves are vector instructions. Words leave the vector two to a general register, where indices are taken out, S-boxes
 * looked up and what they give is joined. 16 blocks go as four chunks side by side, which share the loads of keys, fewer as
 * one chunk at a time, and the last one to three blocks one by one.
 *
 * Tables are addressed by data: not constant-time. */
#include <arm_neon.h>

#include "cast5_keys.h"

#define CHUNK 4u
#define WAYS 16u
#define WIDE (WAYS / CHUNK) /* chunks side by side */
#define PAIR_LEN 16u        /* a vector holds two blocks as they lie in memory */

/* 2.2: what the S-boxes give for I, which was turned by 16 bits more: Ic and Id lie above Ia and Ib. */
ALWAYS_INLINE uint32_t look_up(enum type type, uint64_t i)
{
    const uint32_t a = S1[(uint8_t)(i >> 8)], b = S2[(uint8_t)i];
    const uint32_t c = S3[(uint8_t)(i >> 24)], d = S4[(uint8_t)(i >> 16)];

    switch (type) {
    case TYPE_1: return ((a ^ b) - c) + d;
    case TYPE_2: return ((a - b) + c) ^ d;
    default: return ((a + b) ^ c) - d;
    }
}

/* to ^ f(from) in round i. */
ALWAYS_INLINE uint32_t one_round(enum type type, uint32_t to, uint32_t from, const struct cast5_ctx *ctx, unsigned i)
{
    const uint32_t mask = ctx->mask[i];
    const uint32_t masked = type == TYPE_1 ? mask + from : type == TYPE_2 ? mask ^ from : mask - from;

    return to ^ look_up(type, rotr32(masked, ctx->right[i]));
}

/* Chunks side by side. */

typedef uint8x16_t pair;

ALWAYS_INLINE pair load(const uint8_t *p)
{
    return vld1q_u8(p);
}

ALWAYS_INLINE void store(uint8_t *p, pair v)
{
    vst1q_u8(p, v);
}

/* The half that changes next, and the other one. */
struct halves {
    uint32x4_t next[WIDE], other[WIDE];
};

/* A vector as two integers. Left to itself gcc 12 copies the vector once more. */
ALWAYS_INLINE void to_integers(uint64_t *low, uint64_t *high, uint32x4_t v)
{
    __asm__("umov %0, %2.d[0]\n\tumov %1, %2.d[1]" : "=&r"(*low), "=r"(*high) : "w"(v));
}

/* One round of some chunks, after which the halves change places. */
ALWAYS_INLINE void round_of_chunks(enum type type, struct halves *h, size_t chunks, const struct cast5_ctx *ctx,
                                   size_t i)
{
    const uint32x4_t mask = vdupq_n_u32(ctx->mask[i]);
    const int32x4_t left = vdupq_n_s32((int32_t)ctx->left[i]), right = vdupq_n_s32((int32_t)(ctx->left[i] - 32));

#pragma GCC unroll 4
    for (size_t j = 0; j < chunks; j++) {
        const uint32x4_t from = h->other[j];
        const uint32x4_t masked = type == TYPE_1   ? vaddq_u32(mask, from)
                                  : type == TYPE_2 ? veorq_u32(mask, from)
                                                   : vsubq_u32(mask, from);
        uint64_t low, high;

        /* A shift by -32, where left is 0, gives zeros, which is right. */
        to_integers(&low, &high, vorrq_u32(vshlq_u32(masked, left), vshlq_u32(masked, right)));
        const uint64_t f01 = look_up(type, low) | ((uint64_t)look_up(type, low >> 32) << 32);
        const uint64_t f23 = look_up(type, high) | ((uint64_t)look_up(type, high >> 32) << 32);
        h->other[j] = veorq_u32(h->next[j], vreinterpretq_u32_u64(vcombine_u64(vcreate_u64(f01), vcreate_u64(f23))));
        h->next[j] = from;
    }
}

/* 2: rounds 1, 4, 7, ... are of type 1, rounds 2, 5, 8, ... of type 2, rounds 3, 6, 9, ... of type 3. */
ALWAYS_INLINE void encrypt_rounds(struct halves *h, size_t chunks, const struct cast5_ctx *ctx)
{
    const size_t last = ctx->num_rounds - ctx->num_rounds % 3;

    for (size_t i = 0; i < last; i += 3) {
        round_of_chunks(TYPE_1, h, chunks, ctx, i);
        round_of_chunks(TYPE_2, h, chunks, ctx, i + 1);
        round_of_chunks(TYPE_3, h, chunks, ctx, i + 2);
    }
    if (last < ctx->num_rounds) {
        round_of_chunks(TYPE_1, h, chunks, ctx, last);
    }
}

ALWAYS_INLINE void decrypt_rounds(struct halves *h, size_t chunks, const struct cast5_ctx *ctx)
{
    const size_t last = ctx->num_rounds - ctx->num_rounds % 3;

    if (last < ctx->num_rounds) {
        round_of_chunks(TYPE_1, h, chunks, ctx, last);
    }
    for (size_t i = last; i > 0; i -= 3) {
        round_of_chunks(TYPE_3, h, chunks, ctx, i - 1);
        round_of_chunks(TYPE_2, h, chunks, ctx, i - 2);
        round_of_chunks(TYPE_1, h, chunks, ctx, i - 3);
    }
}

/* Big-endian words from or to the host's. */
ALWAYS_INLINE uint32x4_t words_of(pair v)
{
    return vreinterpretq_u32_u8(vrev32q_u8(v));
}

ALWAYS_INLINE pair pair_of(uint32x4_t words)
{
    return vrev32q_u8(vreinterpretq_u8_u32(words));
}

/* All rounds of some chunks, given as pairs of blocks. The half that changed last comes out first. */
ALWAYS_INLINE void crypt_chunks(const struct cast5_ctx *ctx, pair *pairs, size_t chunks, int decrypting)
{
    struct halves h;

    for (size_t j = 0; j < chunks; j++) {
        const uint32x4_t a = words_of(pairs[2 * j]), b = words_of(pairs[2 * j + 1]);
        h.next[j] = vuzp1q_u32(a, b);
        h.other[j] = vuzp2q_u32(a, b);
    }
    if (decrypting) {
        decrypt_rounds(&h, chunks, ctx);
    } else {
        encrypt_rounds(&h, chunks, ctx);
    }
    for (size_t j = 0; j < chunks; j++) {
        pairs[2 * j] = pair_of(vzip1q_u32(h.other[j], h.next[j]));
        pairs[2 * j + 1] = pair_of(vzip2q_u32(h.other[j], h.next[j]));
    }
}

static void encrypt_pairs(const struct cast5_ctx *ctx, pair *pairs, size_t num_pairs)
{
    if (num_pairs == WAYS / 2) {
        SUBJECT_PATH("16way");
        crypt_chunks(ctx, pairs, WIDE, 0);
    } else {
        SUBJECT_PATH("4way");
        crypt_chunks(ctx, pairs, 1, 0);
    }
}

static void decrypt_pairs(const struct cast5_ctx *ctx, pair *pairs, size_t num_pairs)
{
    if (num_pairs == WAYS / 2) {
        SUBJECT_PATH("16way");
        crypt_chunks(ctx, pairs, WIDE, 1);
    } else {
        SUBJECT_PATH("4way");
        crypt_chunks(ctx, pairs, 1, 1);
    }
}

ALWAYS_INLINE pair xor_pairs(pair a, pair b)
{
    return veorq_u8(a, b);
}

ALWAYS_INLINE pair pair_of_integers(uint64_t first, uint64_t second)
{
    return vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(first), vcreate_u64(second)));
}

ALWAYS_INLINE pair chain_from_iv(uint64_t iv)
{
    return pair_of_integers(0, iv);
}

ALWAYS_INLINE pair blocks_before(pair v, pair pair_before)
{
    return vextq_u8(pair_before, v, BLOCK_LEN);
}

ALWAYS_INLINE uint64_t second_block(pair v)
{
    return vgetq_lane_u64(vreinterpretq_u64_u8(v), 1);
}

ALWAYS_INLINE pair counters_from(uint64_t c)
{
    return pair_of_integers(c, c + 1);
}

ALWAYS_INLINE pair next_counters(pair c)
{
    return vreinterpretq_u8_u64(vaddq_u64(vreinterpretq_u64_u8(c), vdupq_n_u64(2)));
}

ALWAYS_INLINE pair pair_from_counters(pair c)
{
    return vrev64q_u8(c);
}

#include "cast5_fused.h"

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = WAYS,
    .ctx_len = sizeof(struct cast5_ctx),
    .ctx_align = _Alignof(struct cast5_ctx),
    .setkey = setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
    .ecb = {ecb_encrypt, ecb_decrypt},
    .cbc = {NULL, cbc_decrypt}, /* encryption is one block at a time, fused or not; so is that of cfb */
    .cfb = {NULL, cfb_decrypt},
    .ctr = {ctr_crypt, ctr_crypt},
};

const struct subject_leaf *cast5_aarch64_neon_16way(uint64_t features);

const struct subject_leaf *cast5_aarch64_neon_16way(uint64_t features)
{
    return (features & SUBJECT_ARM_NEON) != 0 ? &leaf : NULL;
}
