/* SPDX-License-Identifier: Apache-2.0
 *
 * SM4 (GB/T 32907-2016; in English draft-ribose-cfrg-sm4) with NEON that every AArch64 has.
 *
 * A group is four blocks, a vector the same word of each. The S-box is four tables of 64 bytes in sixteen registers: TBL and
 * TBX take an index that is beyond a table for no index, so that the same indices, each time 64 less, go
 * through all four. Nothing is read from an address that depends on the key or the data.
 */
#include "neon_modes.h"
#include "sm4_block.h"

/* The S-box and the round keys of one direction. */
struct neon_keys {
    const uint32_t *rk;
    uint8x16x4_t sbox[4];
    uint8x16_t rotation;
};

NEON_INLINE struct neon_keys keys_from(const uint32_t *rk)
{
    /* Each word up by a byte. */
    static const uint8_t rotation[16] = {3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14};

    return (struct neon_keys){
        rk,
        {vld1q_u8_x4(sbox), vld1q_u8_x4(sbox + 64), vld1q_u8_x4(sbox + 128), vld1q_u8_x4(sbox + 192)},
        vld1q_u8(rotation),
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

/* S on each byte. */
NEON_INLINE uint8x16_t substitute(const struct neon_keys *k, uint8x16_t index)
{
    const uint8x16_t table_len = vdupq_n_u8(64);
    uint8x16_t out = vqtbl4q_u8(k->sbox[0], index);

    index = vsubq_u8(index, table_len);
    out = vqtbx4q_u8(out, k->sbox[1], index);
    index = vsubq_u8(index, table_len);
    out = vqtbx4q_u8(out, k->sbox[2], index);
    index = vsubq_u8(index, table_len);
    return vqtbx4q_u8(out, k->sbox[3], index);
}

NEON_INLINE uint32x4_t rotated_16(uint32x4_t v)
{
    return vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(v)));
}

/* x ^ L(S(t)), section 6.2: L(B) = B ^ (B <<< 24) ^ ((B ^ (B <<< 8) ^ (B <<< 16)) <<< 2). */
NEON_INLINE uint32x4_t round_word(const struct neon_keys *k, uint32x4_t x, uint32x4_t t)
{
    uint8x16_t bytes = substitute(k, vreinterpretq_u8_u32(t));
    uint32x4_t b = vreinterpretq_u32_u8(bytes);
    uint32x4_t b8 = vreinterpretq_u32_u8(vqtbl1q_u8(bytes, k->rotation));
    uint32x4_t inner = veorq_u32(veorq_u32(b, b8), rotated_16(b));

    x = veorq_u32(veorq_u32(x, b), rotated_16(b8));
    return veorq_u32(x, vsriq_n_u32(vshlq_n_u32(inner, 2), inner, 30));
}

/* A round of a group: of the words a, b, c and d the first becomes the last. */
NEON_INLINE uint32x4_t group_round(const struct neon_keys *k, uint32x4_t a, uint32x4_t b, uint32x4_t c, uint32x4_t d,
                                   uint32x4_t rk)
{
    return round_word(k, a, veorq_u32(veorq_u32(b, c), veorq_u32(d, rk)));
}

NEON_INLINE uint32x4_t zip_1(uint32x4_t a, uint32x4_t b)
{
    return vreinterpretq_u32_u64(vzip1q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
}

NEON_INLINE uint32x4_t zip_2(uint32x4_t a, uint32x4_t b)
{
    return vreinterpretq_u32_u64(vzip2q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
}

/* Blocks become words and words blocks. */
NEON_INLINE void transpose(uint32x4_t x[4])
{
    uint32x4_t a = vzip1q_u32(x[0], x[1]), b = vzip2q_u32(x[0], x[1]);
    uint32x4_t c = vzip1q_u32(x[2], x[3]), d = vzip2q_u32(x[2], x[3]);

    x[0] = zip_1(a, c);
    x[1] = zip_2(a, c);
    x[2] = zip_1(b, d);
    x[3] = zip_2(b, d);
}

/* A block in memory is big-endian words. */
NEON_INLINE void group_load(uint32x4_t x[4], const uint8x16_t blocks[4])
{
    x[0] = vreinterpretq_u32_u8(vrev32q_u8(blocks[0]));
    x[1] = vreinterpretq_u32_u8(vrev32q_u8(blocks[1]));
    x[2] = vreinterpretq_u32_u8(vrev32q_u8(blocks[2]));
    x[3] = vreinterpretq_u32_u8(vrev32q_u8(blocks[3]));
    transpose(x);
}

/* The words come out last first, section 6.1. */
NEON_INLINE void group_store(uint8x16_t blocks[4], const uint32x4_t x[4])
{
    uint32x4_t reversed[4] = {x[3], x[2], x[1], x[0]};

    transpose(reversed);
    blocks[0] = vrev32q_u8(vreinterpretq_u8_u32(reversed[0]));
    blocks[1] = vrev32q_u8(vreinterpretq_u8_u32(reversed[1]));
    blocks[2] = vrev32q_u8(vreinterpretq_u8_u32(reversed[2]));
    blocks[3] = vrev32q_u8(vreinterpretq_u8_u32(reversed[3]));
}

NEON_INLINE void crypt_4(const struct neon_keys *k, uint8x16_t blocks[4], int decrypting)
{
    uint32x4_t x[4];

    (void)decrypting; /* the keys are what differs */
    group_load(x, blocks);
    for (unsigned i = 0; i < ROUNDS; i += 4) {
        x[0] = group_round(k, x[0], x[1], x[2], x[3], vld1q_dup_u32(k->rk + i));
        x[1] = group_round(k, x[1], x[2], x[3], x[0], vld1q_dup_u32(k->rk + i + 1));
        x[2] = group_round(k, x[2], x[3], x[0], x[1], vld1q_dup_u32(k->rk + i + 2));
        x[3] = group_round(k, x[3], x[0], x[1], x[2], vld1q_dup_u32(k->rk + i + 3));
    }
    group_store(blocks, x);
}

NEON_INLINE void crypt_8(const struct neon_keys *k, uint8x16_t blocks[8], int decrypting)
{
    uint32x4_t x[4], y[4];

    (void)decrypting;
    group_load(x, blocks);
    group_load(y, blocks + 4);
    for (unsigned i = 0; i < ROUNDS; i += 4) {
        uint32x4_t rk = vld1q_dup_u32(k->rk + i);
        x[0] = group_round(k, x[0], x[1], x[2], x[3], rk);
        y[0] = group_round(k, y[0], y[1], y[2], y[3], rk);
        rk = vld1q_dup_u32(k->rk + i + 1);
        x[1] = group_round(k, x[1], x[2], x[3], x[0], rk);
        y[1] = group_round(k, y[1], y[2], y[3], y[0], rk);
        rk = vld1q_dup_u32(k->rk + i + 2);
        x[2] = group_round(k, x[2], x[3], x[0], x[1], rk);
        y[2] = group_round(k, y[2], y[3], y[0], y[1], rk);
        rk = vld1q_dup_u32(k->rk + i + 3);
        x[3] = group_round(k, x[3], x[0], x[1], x[2], rk);
        y[3] = group_round(k, y[3], y[0], y[1], y[2], rk);
    }
    group_store(blocks, x);
    group_store(blocks + 4, y);
}

/* S on each byte of one word. */
NEON_INLINE uint32_t substitute_word(const struct neon_keys *k, uint32_t word)
{
    uint8x16_t bytes = substitute(k, vreinterpretq_u8_u32(vdupq_n_u32(word)));
    return vgetq_lane_u32(vreinterpretq_u32_u8(bytes), 0);
}

NEON_INLINE uint32_t single_round(const struct neon_keys *k, uint32_t a, uint32_t b, uint32_t c, uint32_t d,
                                  uint32_t rk)
{
    uint32_t s = substitute_word(k, b ^ c ^ d ^ rk);
    return a ^ s ^ rotl32(s, 2) ^ rotl32(s, 10) ^ rotl32(s, 18) ^ rotl32(s, 24);
}

/* Of a block alone the words are in general registers, whose instructions rotate and add at once. */
NEON_INLINE uint8x16_t crypt_1(const struct neon_keys *k, uint8x16_t block, int decrypting)
{
    uint32x4_t words = vreinterpretq_u32_u8(vrev32q_u8(block));
    uint32_t a = vgetq_lane_u32(words, 0), b = vgetq_lane_u32(words, 1);
    uint32_t c = vgetq_lane_u32(words, 2), d = vgetq_lane_u32(words, 3);

    (void)decrypting;
    for (unsigned i = 0; i < ROUNDS; i += 4) {
        a = single_round(k, a, b, c, d, k->rk[i]);
        b = single_round(k, b, c, d, a, k->rk[i + 1]);
        c = single_round(k, c, d, a, b, k->rk[i + 2]);
        d = single_round(k, d, a, b, c, k->rk[i + 3]);
    }
    words = vcombine_u32(vcreate_u32((uint64_t)c << 32 | d), vcreate_u32((uint64_t)a << 32 | b));
    return vrev32q_u8(vreinterpretq_u8_u32(words));
}

#include "neon_fused.h"

/* Section 7.3, with L'(B) = B ^ (B <<< 13) ^ (B <<< 23). */
static int setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    const struct neon_keys tables = keys_from(NULL);
    struct sm4_keys *c = ctx;
    uint32_t words[4];

    (void)policy; /* SM4 has no weak keys */
    if (key_len != 16) {
        return SUBJECT_BAD_KEY_LEN;
    }
    for (unsigned i = 0; i < 4; i++) {
        words[i] = load_be32(key + 4 * i) ^ fk[i];
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t b = substitute_word(&tables, words[(i + 1) % 4] ^ words[(i + 2) % 4] ^ words[(i + 3) % 4] ^ ck[i]);
        uint32_t rk = words[i % 4] ^ b ^ rotl32(b, 13) ^ rotl32(b, 23);
        words[i % 4] = rk;
        c->encrypt[i] = rk;
        c->decrypt[ROUNDS - 1 - i] = rk;
    }
    return SUBJECT_OK;
}

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = WAYS,
    .ctx_len = sizeof(struct sm4_keys),
    .ctx_align = _Alignof(struct sm4_keys),
    .setkey = setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
    .ecb = {ecb_encrypt, ecb_decrypt},
    .cbc = {NULL, cbc_decrypt}, /* encryption is one block at a time, fused or not */
    .cfb = {NULL, cfb_decrypt},
    .ctr = {ctr_crypt, ctr_crypt},
};

const struct subject_leaf *sm4_aarch64_neon(uint64_t features);

const struct subject_leaf *sm4_aarch64_neon(uint64_t features)
{
    return (features & SUBJECT_ARM_NEON) != 0 ? &leaf : NULL;
}
