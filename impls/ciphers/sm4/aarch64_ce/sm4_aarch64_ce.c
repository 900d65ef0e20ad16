/* SPDX-License-Identifier: Apache-2.0
 *
 * SM4 (GB/T 32907-2016; in English draft-ribose-cfrg-sm4) with the SM4 instructions of Armv8.2.
 *
 * SM4E does four rounds on one block, word j in 32-bit lane j; eight of them are the cipher. SM4EKEY makes four round
 * keys from the four before. A block's SM4E waits for the one before it, so up to eight blocks go side by side.
 * Decryption is encryption with the round keys in reverse order (section 7.2).
 */
#include <arm_neon.h>

#include "subject.h"

#define ROUNDS 32
#define WAYS 8
#define HALF_WAYS 4
#define BLOCK_LEN 16u

#define NEEDED (SUBJECT_ARM_NEON | SUBJECT_ARM_SM4)

struct sm4_ctx {
    uint32_t encrypt_keys[ROUNDS];
    uint32_t decrypt_keys[ROUNDS];
};

/* Section 7.3: byte j of CK[i] is (4i + j) * 7 mod 256, j = 0 the most significant. */
#define CK_BYTE(i, j) ((((4u * (i) + (j)) * 7u) & 0xffu) << (24u - 8u * (j)))
#define CK(i) (CK_BYTE(i, 0u) | CK_BYTE(i, 1u) | CK_BYTE(i, 2u) | CK_BYTE(i, 3u))
#define CK8(i) CK(i), CK(i + 1u), CK(i + 2u), CK(i + 3u), CK(i + 4u), CK(i + 5u), CK(i + 6u), CK(i + 7u)

static const uint32_t fk[4] = {0xa3b1bac6u, 0x56aa3350u, 0x677d9197u, 0xb27022dcu};
static const uint32_t ck[ROUNDS] = {CK8(0u), CK8(8u), CK8(16u), CK8(24u)};

/* A block in memory is big-endian words. */
static inline uint32x4_t load_block(const uint8_t *src)
{
    return vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(src)));
}

static inline void store_block(uint8_t *dst, uint32x4_t v)
{
    vst1q_u8(dst, vrev32q_u8(vreinterpretq_u8_u32(v)));
}

/* The four words, last first: the reverse transformation R (section 6.1), or a step of the schedule backwards. */
static inline uint32x4_t reverse_words(uint32x4_t v)
{
    v = vrev64q_u32(v);
    return vextq_u32(v, v, 2);
}

static int setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct sm4_ctx *c = ctx;
    uint32x4_t rk;
    unsigned i;

    (void)policy; /* SM4 has no weak keys */
    if (key_len != 16) {
        return SUBJECT_BAD_KEY_LEN;
    }
    rk = veorq_u32(load_block(key), vld1q_u32(fk));
    for (i = 0; i < ROUNDS; i += 4) {
        rk = vsm4ekeyq_u32(rk, vld1q_u32(ck + i));
        vst1q_u32(c->encrypt_keys + i, rk);
        vst1q_u32(c->decrypt_keys + (ROUNDS - 4 - i), reverse_words(rk));
    }
    return SUBJECT_OK;
}

static inline uint32x4_t crypt_1(const uint32_t *rk, uint32x4_t x)
{
    unsigned i;

    SUBJECT_PATH("1way");
    for (i = 0; i < ROUNDS; i += 4) {
        x = vsm4eq_u32(x, vld1q_u32(rk + i));
    }
    return reverse_words(x);
}

static inline void crypt_4(const uint32_t *rk, uint32x4_t x[HALF_WAYS])
{
    uint32x4_t x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    unsigned i;

    SUBJECT_PATH("4way");
    for (i = 0; i < ROUNDS; i += 4) {
        uint32x4_t k = vld1q_u32(rk + i);
        x0 = vsm4eq_u32(x0, k);
        x1 = vsm4eq_u32(x1, k);
        x2 = vsm4eq_u32(x2, k);
        x3 = vsm4eq_u32(x3, k);
    }
    x[0] = reverse_words(x0);
    x[1] = reverse_words(x1);
    x[2] = reverse_words(x2);
    x[3] = reverse_words(x3);
}

static inline void crypt_8(const uint32_t *rk, uint32x4_t x[WAYS])
{
    uint32x4_t x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3], x4 = x[4], x5 = x[5], x6 = x[6], x7 = x[7];
    unsigned i;

    SUBJECT_PATH("8way");
    for (i = 0; i < ROUNDS; i += 4) {
        uint32x4_t k = vld1q_u32(rk + i);
        x0 = vsm4eq_u32(x0, k);
        x1 = vsm4eq_u32(x1, k);
        x2 = vsm4eq_u32(x2, k);
        x3 = vsm4eq_u32(x3, k);
        x4 = vsm4eq_u32(x4, k);
        x5 = vsm4eq_u32(x5, k);
        x6 = vsm4eq_u32(x6, k);
        x7 = vsm4eq_u32(x7, k);
    }
    x[0] = reverse_words(x0);
    x[1] = reverse_words(x1);
    x[2] = reverse_words(x2);
    x[3] = reverse_words(x3);
    x[4] = reverse_words(x4);
    x[5] = reverse_words(x5);
    x[6] = reverse_words(x6);
    x[7] = reverse_words(x7);
}

/* How many of the whole blocks that are left go next. */
static inline size_t next_width(size_t num_blocks)
{
    return num_blocks >= WAYS ? WAYS : num_blocks >= HALF_WAYS ? HALF_WAYS : 1;
}

/* num_blocks as next_width says. */
static inline void crypt_some(const uint32_t *rk, uint32x4_t x[WAYS], size_t num_blocks)
{
    if (num_blocks == WAYS) {
        crypt_8(rk, x);
    } else if (num_blocks == HALF_WAYS) {
        crypt_4(rk, x);
    } else {
        x[0] = crypt_1(rk, x[0]);
    }
}

static void crypt_blocks(const uint32_t *rk, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    while (num_blocks > 0) {
        size_t n = next_width(num_blocks);
        uint32x4_t x[WAYS];
        size_t i;
        for (i = 0; i < n; i++) {
            x[i] = load_block(src + BLOCK_LEN * i);
        }
        crypt_some(rk, x, n);
        for (i = 0; i < n; i++) {
            store_block(dst + BLOCK_LEN * i, x[i]);
        }
        dst += BLOCK_LEN * n;
        src += BLOCK_LEN * n;
        num_blocks -= n;
    }
}

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    const struct sm4_ctx *c = ctx;
    crypt_blocks(c->encrypt_keys, dst, src, num_blocks);
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    const struct sm4_ctx *c = ctx;
    crypt_blocks(c->decrypt_keys, dst, src, num_blocks);
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

static void cbc_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct sm4_ctx *c = ctx;
    size_t num_blocks = len / BLOCK_LEN;
    uint32x4_t chain;

    if (num_blocks == 0) {
        return;
    }
    chain = load_block(iv);
    for (; num_blocks > 0; num_blocks--) {
        chain = crypt_1(c->encrypt_keys, veorq_u32(chain, load_block(src)));
        store_block(dst, chain);
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
    store_block(iv, chain);
}

/* Every ciphertext block of a step is kept before its first plaintext is written: in place they are the same bytes. */
static void cbc_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct sm4_ctx *c = ctx;
    size_t num_blocks = len / BLOCK_LEN;
    uint32x4_t chain;

    if (num_blocks == 0) {
        return;
    }
    chain = load_block(iv);
    while (num_blocks > 0) {
        size_t n = next_width(num_blocks);
        uint32x4_t in[WAYS], x[WAYS];
        size_t i;
        for (i = 0; i < n; i++) {
            in[i] = load_block(src + BLOCK_LEN * i);
            x[i] = in[i];
        }
        crypt_some(c->decrypt_keys, x, n);
        for (i = 0; i < n; i++) {
            store_block(dst + BLOCK_LEN * i, veorq_u32(x[i], chain));
            chain = in[i];
        }
        dst += BLOCK_LEN * n;
        src += BLOCK_LEN * n;
        num_blocks -= n;
    }
    store_block(iv, chain);
}

/* The counter as two host integers. */
struct counter {
    uint64_t high, low;
};

static inline void counter_add(struct counter *c, uint64_t n)
{
    c->low += n;
    c->high += c->low < n;
}

static inline uint32x4_t block_from_counter(struct counter c)
{
    uint32x4_t v = vdupq_n_u32((uint32_t)c.low);
    v = vsetq_lane_u32((uint32_t)(c.high >> 32), v, 0);
    v = vsetq_lane_u32((uint32_t)c.high, v, 1);
    return vsetq_lane_u32((uint32_t)(c.low >> 32), v, 2);
}

/* num_blocks counters from c on. Where the least significant word carries nowhere, one vector addition makes the
 * next. */
static inline void blocks_from_counter(uint32x4_t *x, struct counter c, size_t num_blocks)
{
    static const uint32_t one[4] = {0, 0, 0, 1};
    size_t i;

    x[0] = block_from_counter(c);
    if ((uint32_t)c.low <= UINT32_MAX - (uint32_t)(num_blocks - 1)) {
        for (i = 1; i < num_blocks; i++) {
            x[i] = vaddq_u32(x[i - 1], vld1q_u32(one));
        }
    } else {
        SUBJECT_PATH("ctr_wrap");
        for (i = 1; i < num_blocks; i++) {
            counter_add(&c, 1);
            x[i] = block_from_counter(c);
        }
    }
}

static void ctr_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const uint32_t *rk = ((const struct sm4_ctx *)ctx)->encrypt_keys;
    struct counter counter;

    if (len == 0) {
        return;
    }
    counter.high = load_be64(iv);
    counter.low = load_be64(iv + 8);
    while (len >= BLOCK_LEN) {
        size_t n = next_width(len / BLOCK_LEN);
        uint32x4_t x[WAYS];
        size_t i;
        blocks_from_counter(x, counter, n);
        counter_add(&counter, n);
        crypt_some(rk, x, n);
        for (i = 0; i < n; i++) {
            store_block(dst + BLOCK_LEN * i, veorq_u32(x[i], load_block(src + BLOCK_LEN * i)));
        }
        dst += BLOCK_LEN * n;
        src += BLOCK_LEN * n;
        len -= BLOCK_LEN * n;
    }
    if (len > 0) {
        uint8_t keystream[BLOCK_LEN];
        store_block(keystream, crypt_1(rk, block_from_counter(counter)));
        counter_add(&counter, 1);
        xor_bytes(dst, src, keystream, len);
    }
    store_be64(iv, counter.high);
    store_be64(iv + 8, counter.low);
}

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = WAYS,
    .ctx_len = sizeof(struct sm4_ctx),
    .ctx_align = _Alignof(struct sm4_ctx),
    .setkey = setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
    .ecb = {ecb_encrypt, ecb_decrypt},
    .cbc = {cbc_encrypt, cbc_decrypt},
    .ctr = {ctr_crypt, ctr_crypt},
};

const struct subject_leaf *sm4_aarch64_ce(uint64_t features);

const struct subject_leaf *sm4_aarch64_ce(uint64_t features)
{
    return (features & NEEDED) == NEEDED ? &leaf : NULL;
}
