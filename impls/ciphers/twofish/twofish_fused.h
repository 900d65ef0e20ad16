/* SPDX-License-Identifier: Apache-2.0
 *
 * Fused modes over the block functions of the file that includes this one, which defines before
 *   encrypt_blocks, decrypt_blocks   subject_blocks_fn, static: any number of blocks, dst may be src
 *   FUSED_RUN                        blocks to a run: a multiple of the widths of wide code, and small enough for the stack
 * A run gathers what the block functions want in a buffer, so that wide code gets whole widths whatever the mode, and
 * everything of src that is still wanted has been read before the same place of dst is written.
 */
#ifndef TWOFISH_FUSED_H
#define TWOFISH_FUSED_H

#include "subject.h"

#define BLOCK_LEN 16u

/* A block in one register, whatever the processor. */
typedef uint64_t whole_block __attribute__((vector_size(16)));

static inline whole_block load_block(const uint8_t *p)
{
    whole_block v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static inline void store_block(uint8_t *p, whole_block v)
{
    memcpy(p, &v, sizeof(v));
}

/* As load_be64 and store_be64 do, but in one instruction wherever the compiler finds the number. */
static inline uint64_t load_number(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return __builtin_bswap64(v);
}

static inline void store_number(uint8_t *p, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(p, &v, sizeof(v));
}

static inline size_t fused_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* dst = a xor b over whole blocks, from the first on; dst may be a or b. */
static inline void xor_blocks(uint8_t *dst, const uint8_t *a, const uint8_t *b, size_t num_blocks)
{
    for (; num_blocks > 0; num_blocks--) {
        store_block(dst, load_block(a) ^ load_block(b));
        dst += BLOCK_LEN;
        a += BLOCK_LEN;
        b += BLOCK_LEN;
    }
}

/* The same over bytes. */
static inline void xor_stream(uint8_t *dst, const uint8_t *src, const uint8_t *keystream, size_t len)
{
    const size_t whole = len / BLOCK_LEN * BLOCK_LEN;

    xor_blocks(dst, src, keystream, len / BLOCK_LEN);
    if (whole < len) {
        xor_bytes(dst + whole, src + whole, keystream + whole, len - whole);
    }
}

static void ecb_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    (void)iv;
    encrypt_blocks(ctx, dst, src, len / BLOCK_LEN);
}

static void ecb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    (void)iv;
    decrypt_blocks(ctx, dst, src, len / BLOCK_LEN);
}

/* Within a run the last block comes first: in place a block is needed until the one behind it is done. */
static void cbc_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    uint8_t out[FUSED_RUN * BLOCK_LEN];

    for (size_t run; len >= BLOCK_LEN; len -= run) {
        run = fused_min(len / BLOCK_LEN, FUSED_RUN) * BLOCK_LEN;
        decrypt_blocks(ctx, out, src, run / BLOCK_LEN);
        const whole_block chain = load_block(iv);
        store_block(iv, load_block(src + run - BLOCK_LEN));
        for (size_t at = run - BLOCK_LEN; at > 0; at -= BLOCK_LEN) {
            store_block(dst + at, load_block(out + at) ^ load_block(src + at - BLOCK_LEN));
        }
        store_block(dst, load_block(out) ^ chain);
        dst += run;
        src += run;
    }
}

static void cfb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    uint8_t keystream[FUSED_RUN * BLOCK_LEN];

    for (size_t run; len > 0; len -= run) {
        run = fused_min(len, sizeof(keystream));
        const size_t last = (run - 1) / BLOCK_LEN * BLOCK_LEN;
        memcpy(keystream, iv, BLOCK_LEN);
        for (size_t at = 0; at < last; at += BLOCK_LEN) {
            store_block(keystream + at + BLOCK_LEN, load_block(src + at));
        }
        if (run - last == BLOCK_LEN) {
            store_block(iv, load_block(src + last));
        }
        encrypt_blocks(ctx, keystream, keystream, last / BLOCK_LEN + 1);
        xor_stream(dst, src, keystream, run);
        dst += run;
        src += run;
    }
}

static void ctr_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    uint8_t keystream[FUSED_RUN * BLOCK_LEN];
    uint64_t high = load_number(iv), low = load_number(iv + 8);

    for (size_t run; len > 0; len -= run) {
        run = fused_min(len, sizeof(keystream));
        const size_t num_blocks = (run + BLOCK_LEN - 1) / BLOCK_LEN;
        for (size_t i = 0; i < num_blocks; i++) {
            store_number(keystream + BLOCK_LEN * i, high);
            store_number(keystream + BLOCK_LEN * i + 8, low);
            low++;
            high += low == 0;
        }
        encrypt_blocks(ctx, keystream, keystream, num_blocks);
        xor_stream(dst, src, keystream, run);
        dst += run;
        src += run;
    }
    store_number(iv, high);
    store_number(iv + 8, low);
}

/* dst = the cipher of src xor masks, xor masks. */
static inline void crypt_masked(const void *ctx, subject_blocks_fn *blocks, uint8_t *dst, const uint8_t *src,
                                const uint8_t *masks, size_t num_blocks)
{
    xor_blocks(dst, src, masks, num_blocks);
    blocks(ctx, dst, dst, num_blocks);
    xor_blocks(dst, dst, masks, num_blocks);
}

/* An element of GF(2^128) modulo x^128 + x^7 + x^2 + x + 1, bit 63 of high the highest coefficient. */
struct element {
    uint64_t high, low;
};

static inline struct element element_add(struct element a, struct element b)
{
    return (struct element){a.high ^ b.high, a.low ^ b.low};
}

static inline struct element times_x(struct element a)
{
    return (struct element){(a.high << 1) | (a.low >> 63), (a.low << 1) ^ ((0 - (a.high >> 63)) & UINT64_C(0x87))};
}

static inline struct element times_x4(struct element a)
{
    const uint64_t over = a.high >> 60;

    return (struct element){(a.high << 4) | (a.low >> 60),
                            (a.low << 4) ^ over ^ (over << 1) ^ (over << 2) ^ (over << 7)};
}

/* key2 * index by Horner's rule, four bits of the index at a time: the index is public and may steer, key2 may not. */
static struct element lrw_product(struct element key2, struct element index)
{
    struct element multiples[16], product = {0, 0};

    multiples[0] = product;
    multiples[1] = key2;
    for (unsigned i = 2; i < 16; i += 2) {
        multiples[i] = times_x(multiples[i / 2]);
        multiples[i + 1] = element_add(multiples[i], key2);
    }
    for (unsigned at = 64; at > 0; at -= 4) {
        product = element_add(times_x4(product), multiples[(index.high >> (at - 4)) & 15u]);
    }
    for (unsigned at = 64; at > 0; at -= 4) {
        product = element_add(times_x4(product), multiples[(index.low >> (at - 4)) & 15u]);
    }
    return product;
}

/* The tweak T = K2 * I of the running index I. From I to I + 1 it changes by K2 * (2^(n+1) - 1), n the number of I's
 * trailing ones: steps holds the first num_steps of these products, and only as many as were needed. */
struct lrw_tweak {
    struct element key2, power, index, tweak;
    unsigned num_steps;
    struct element steps[128];
};

static inline unsigned trailing_ones(struct element index)
{
    if (index.low != UINT64_MAX) {
        return (unsigned)__builtin_ctzll(~index.low);
    }
    return index.high != UINT64_MAX ? 64u + (unsigned)__builtin_ctzll(~index.high) : 127u;
}

static inline void lrw_next(struct lrw_tweak *t, uint8_t *mask)
{
    const unsigned ones = trailing_ones(t->index);

    store_number(mask, t->tweak.high);
    store_number(mask + 8, t->tweak.low);
    for (; t->num_steps <= ones; t->num_steps++) {
        t->power = times_x(t->power);
        t->steps[t->num_steps] = element_add(t->steps[t->num_steps - 1], t->power);
    }
    t->tweak = element_add(t->tweak, t->steps[ones]);
    t->index.low++;
    t->index.high += t->index.low == 0;
}

static void lrw_crypt(const void *ctx, subject_blocks_fn *blocks, const uint8_t *key2, uint8_t *dst, const uint8_t *src,
                      size_t len, uint8_t *index)
{
    uint8_t masks[FUSED_RUN * BLOCK_LEN];
    struct lrw_tweak t;

    if (len == 0) {
        return;
    }
    t.key2 = t.power = t.steps[0] = (struct element){load_number(key2), load_number(key2 + 8)};
    t.num_steps = 1;
    t.index = (struct element){load_number(index), load_number(index + 8)};
    t.tweak = lrw_product(t.key2, t.index);
    for (size_t run; len > 0; len -= run) {
        run = fused_min(len, sizeof(masks));
        for (size_t at = 0; at < run; at += BLOCK_LEN) {
            lrw_next(&t, masks + at);
        }
        crypt_masked(ctx, blocks, dst, src, masks, run / BLOCK_LEN);
        dst += run;
        src += run;
    }
    store_number(index, t.index.high);
    store_number(index + 8, t.index.low);
}

static void lrw_encrypt(const void *ctx, const uint8_t *key2, uint8_t *dst, const uint8_t *src, size_t len,
                        uint8_t *index)
{
    lrw_crypt(ctx, encrypt_blocks, key2, dst, src, len, index);
}

static void lrw_decrypt(const void *ctx, const uint8_t *key2, uint8_t *dst, const uint8_t *src, size_t len,
                        uint8_t *index)
{
    lrw_crypt(ctx, decrypt_blocks, key2, dst, src, len, index);
}

/* XTS writes the same field with its lowest coefficients first. */
static inline void store_tweak(uint8_t *p, struct element tweak)
{
    memcpy(p, &tweak.low, sizeof(tweak.low));
    memcpy(p + 8, &tweak.high, sizeof(tweak.high));
}

/* Ciphertext stealing (IEEE Std 1619-2018, 5.3.2 and 5.4.2): the last whole block and the tail_len bytes behind it. The
 * block goes first, under the earlier of the two tweaks when encrypting and the later when decrypting; its end fills the
 * tail up to a block, which takes the other tweak and the block's place. */
static void xts_steal(const void *ctx, subject_blocks_fn *blocks, uint8_t *dst, const uint8_t *src, size_t tail_len,
                      const uint8_t *first_mask, const uint8_t *second_mask)
{
    uint8_t first[BLOCK_LEN], second[BLOCK_LEN];

    crypt_masked(ctx, blocks, first, src, first_mask, 1);
    memcpy(second, first, BLOCK_LEN);
    memcpy(second, src + BLOCK_LEN, tail_len);
    memcpy(dst + BLOCK_LEN, first, tail_len);
    crypt_masked(ctx, blocks, dst, second, second_mask, 1);
}

static void xts_crypt(const void *ctx, const void *tweak_ctx, subject_blocks_fn *blocks, int decrypting, uint8_t *dst,
                      const uint8_t *src, size_t len, const uint8_t *iv)
{
    uint8_t masks[FUSED_RUN * BLOCK_LEN];
    const size_t tail_len = len % BLOCK_LEN;
    size_t whole = len - tail_len - (tail_len != 0 ? BLOCK_LEN : 0);
    struct element tweak;

    if (len < BLOCK_LEN) {
        return;
    }
    encrypt_blocks(tweak_ctx, masks, iv, 1);
    tweak = (struct element){load_le64(masks + 8), load_le64(masks)};
    for (size_t run; whole > 0; whole -= run) {
        run = fused_min(whole, sizeof(masks));
        for (size_t at = 0; at < run; at += BLOCK_LEN) {
            store_tweak(masks + at, tweak);
            tweak = times_x(tweak);
        }
        crypt_masked(ctx, blocks, dst, src, masks, run / BLOCK_LEN);
        dst += run;
        src += run;
    }
    if (tail_len != 0) {
        store_tweak(masks, tweak);
        store_tweak(masks + BLOCK_LEN, times_x(tweak));
        xts_steal(ctx, blocks, dst, src, tail_len, masks + (decrypting ? BLOCK_LEN : 0),
                  masks + (decrypting ? 0 : BLOCK_LEN));
    }
}

static void xts_encrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                        const uint8_t *iv)
{
    xts_crypt(ctx, tweak_ctx, encrypt_blocks, 0, dst, src, len, iv);
}

static void xts_decrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                        const uint8_t *iv)
{
    xts_crypt(ctx, tweak_ctx, decrypt_blocks, 1, dst, src, len, iv);
}

#endif
