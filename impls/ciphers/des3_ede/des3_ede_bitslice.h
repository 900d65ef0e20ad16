/* SPDX-License-Identifier: Apache-2.0
 *
 * Triple DES (FIPS 46-3, NIST SP 800-67) bitsliced: as many blocks side by side as a vector has bits, each of the 64 bits
 * of a block in a vector of its own, its plane. The permutations are then mere names of planes, and the S-boxes circuits
 * (des3_ede_circuits.h). FIPS 46-3 counts bits from 1 at the left, planes are counted from 0.
 *
 * Before it come the vectors, and a header that does one block after the other, or a few: it defines des3_ede_ctx,
 * setkey(), encrypt_blocks(), decrypt_blocks(), and PAYS, the number of blocks from which on a whole step is faster.
 */
#ifndef DES3_EDE_BITSLICE_H
#define DES3_EDE_BITSLICE_H

#define WAYS (8u * VEC_LEN)
#define WIDE_LEN (WAYS * BLOCK_LEN)
#define NUM_ROWS 64u /* vectors that hold WAYS blocks */
#define HALF_PLANES 32u

/* The words of C and of D lie twice in a row: so a round key's words lie at fixed places behind that of its first bit,
 * whose number is the sum of left shifts. Behind them may follow those of the complements. */
#define HALF_KEY_LEN 28u
#define KEY_PLACES (4 * HALF_KEY_LEN)
#define KEY_WORDS ((1 + KEY_COMPLEMENTS) * KEY_PLACES)

/* Where bit n of K lies, from 1. */
#define KEY_PLACE(n) (pc2[(n) - 1] - 1 + (pc2[(n) - 1] > HALF_KEY_LEN ? HALF_KEY_LEN : 0))

#include "des3_ede_circuits.h"

struct bitslice_ctx {
    struct des3_ede_ctx narrow; /* first: the functions for few blocks take either */
    key_word keys[3][KEY_WORDS];
};

/* The left shifts of C and D before each iteration and in all those before it. */
static const uint8_t sums_of_shifts[16] = {1, 2, 4, 6, 8, 10, 12, 14, 15, 17, 19, 21, 23, 25, 27, 28};

static int bitslice_setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct bitslice_ctx *c = ctx;
    int status = setkey(&c->narrow, key, key_len, policy);

    if (status != SUBJECT_OK) {
        return status;
    }
    for (unsigned n = 0; n < 3; n++) {
        for (unsigned i = 0; i < KEY_PLACES; i++) {
            unsigned from = pc1[i / (2 * HALF_KEY_LEN) * HALF_KEY_LEN + i % HALF_KEY_LEN] - 1u;
            unsigned bit = (key[8 * n + from / 8] >> (7 - from % 8)) & 1u;
            c->keys[n][i] = key_word_of(bit);
            if (KEY_COMPLEMENTS) {
                c->keys[n][KEY_WORDS - KEY_PLACES + i] = key_word_of(1 - bit);
            }
        }
    }
    return SUBJECT_OK;
}

/* Both halves of WAYS blocks behind IP. */
struct planes {
    vec left[HALF_PLANES], right[HALF_PLANES];
};

/* "The Cipher Function f" and the sum: to ^= f(from, K). */
static inline void cipher_function(vec *restrict to, const vec *restrict from, const key_word *restrict k)
{
    sbox1(to, from, k);
    sbox2(to, from, k);
    sbox3(to, from, k);
    sbox4(to, from, k);
    sbox5(to, from, k);
    sbox6(to, from, k);
    sbox7(to, from, k);
    sbox8(to, from, k);
}

/* SP 800-67, 3.1: E_K3(D_K2(E_K1(I))) or D_K1(E_K2(D_K3(I))). At the end the preoutput block R16 L16 lies where R16 and
 * L16 do: its left half is in planes->right, since 48 rounds and the exchange behind each 16 of them are 51 exchanges. */
static void crypt_planes(const struct bitslice_ctx *c, struct planes *planes, int decrypting)
{
    vec *left = planes->left, *right = planes->right, *last;

    for (unsigned operation = 0; operation < 3; operation++) {
        const key_word *key = c->keys[decrypting ? 2 - operation : operation];
        unsigned backwards = (operation == 1) != (decrypting != 0) ? 15 : 0;
        for (unsigned i = 0; i < 16; i++) {
            cipher_function(left, right, key + sums_of_shifts[i ^ backwards]);
            last = left;
            left = right;
            right = last;
        }
        last = left;
        left = right;
        right = last;
    }
}

/* Between blocks and planes: row i holds the first blocks, as many as a vector has words of 64 bits, then row i + 1 the
 * next; transposed, the rows are planes, each word of them 64 blocks. Bit i of a row's number and bit i of the number of
 * a bit change places by exchanges of rows that lie 2^i apart. */

static inline void exchange_high(vec v[8])
{
    vec_exchange_32(&v[0], &v[4]);
    vec_exchange_32(&v[1], &v[5]);
    vec_exchange_32(&v[2], &v[6]);
    vec_exchange_32(&v[3], &v[7]);
    vec_exchange_16(&v[0], &v[2]);
    vec_exchange_16(&v[1], &v[3]);
    vec_exchange_16(&v[4], &v[6]);
    vec_exchange_16(&v[5], &v[7]);
    vec_exchange_8(&v[0], &v[1]);
    vec_exchange_8(&v[2], &v[3]);
    vec_exchange_8(&v[4], &v[5]);
    vec_exchange_8(&v[6], &v[7]);
}

static inline void exchange_low(vec v[8])
{
    vec_exchange_4(&v[0], &v[4]);
    vec_exchange_4(&v[1], &v[5]);
    vec_exchange_4(&v[2], &v[6]);
    vec_exchange_4(&v[3], &v[7]);
    vec_exchange_2(&v[0], &v[2]);
    vec_exchange_2(&v[1], &v[3]);
    vec_exchange_2(&v[4], &v[6]);
    vec_exchange_2(&v[5], &v[7]);
    vec_exchange_1(&v[0], &v[1]);
    vec_exchange_1(&v[2], &v[3]);
    vec_exchange_1(&v[4], &v[5]);
    vec_exchange_1(&v[6], &v[7]);
}

/* IP ("Enciphering"): the plane of bit j of byte k, counted from the low end, in the halves of a block. Even j make up
 * the left half, odd ones the right half; the last byte comes first. */
static inline vec *plane_of(vec *left, vec *right, unsigned k, unsigned j)
{
    return (j % 2 == 0 ? left : right) + (7 - j) / 2 * 8 + 7 - k;
}

/* Written out for each of eight: a loop would keep its vectors in memory. */
#define EACH_OF_8(step) \
    do {                \
        step(0);        \
        step(1);        \
        step(2);        \
        step(3);        \
        step(4);        \
        step(5);        \
        step(6);        \
        step(7);        \
    } while (0)

static void planes_from_blocks(struct planes *planes, const uint8_t *src)
{
    vec rows[NUM_ROWS], v[8];

    for (unsigned k = 0; k < 8; k++) {
#define LOAD(j) v[j] = vec_load(src + (8 * (j) + k) * VEC_LEN)
#define KEEP(j) rows[8 * (j) + k] = v[j]
        EACH_OF_8(LOAD);
        exchange_high(v);
        EACH_OF_8(KEEP);
#undef LOAD
#undef KEEP
    }
    for (unsigned k = 0; k < 8; k++) {
#define LOAD(j) v[j] = rows[8 * k + (j)]
#define STORE(j) *plane_of(planes->left, planes->right, k, j) = v[j]
        EACH_OF_8(LOAD);
        exchange_low(v);
        EACH_OF_8(STORE);
#undef LOAD
#undef STORE
    }
}

/* After crypt_planes(), which leaves the left half at the right. */
static void planes_to_blocks(uint8_t *dst, struct planes *planes)
{
    vec rows[NUM_ROWS], v[8];

    for (unsigned k = 0; k < 8; k++) {
#define LOAD(j) v[j] = *plane_of(planes->right, planes->left, k, j)
#define KEEP(j) rows[8 * k + (j)] = v[j]
        EACH_OF_8(LOAD);
        exchange_low(v);
        EACH_OF_8(KEEP);
#undef LOAD
#undef KEEP
    }
    for (unsigned k = 0; k < 8; k++) {
#define LOAD(j) v[j] = rows[8 * (j) + k]
#define STORE(j) vec_store(dst + (8 * (j) + k) * VEC_LEN, v[j])
        EACH_OF_8(LOAD);
        exchange_high(v);
        EACH_OF_8(STORE);
#undef LOAD
#undef STORE
    }
}

/* Bit n of its number among the WAYS blocks, for each block at its place in a plane. */
static inline vec number_bit(unsigned n)
{
    static const uint64_t row_bit[6] = {UINT64_C(0xaaaaaaaaaaaaaaaa), UINT64_C(0xcccccccccccccccc),
                                        UINT64_C(0xf0f0f0f0f0f0f0f0), UINT64_C(0xff00ff00ff00ff00),
                                        UINT64_C(0xffff0000ffff0000), UINT64_C(0xffffffff00000000)};

    return n < VEC_NUMBER_BITS ? vec_number_bit(n) : vec_broadcast(row_bit[n - VEC_NUMBER_BITS]);
}

static inline vec broadcast_bit(uint64_t word, unsigned n)
{
    return vec_broadcast(0 - ((word >> n) & 1u));
}

#define NUMBER_BITS (VEC_NUMBER_BITS + 6) /* WAYS = 2^NUMBER_BITS */

/* The planes of WAYS counters: a sum with the number of the block, bit by bit, and above it bits of one of two values, with
 * and without the carry. */
static void planes_from_counter(struct planes *planes, uint64_t counter)
{
    uint64_t high = counter >> NUMBER_BITS, change = high ^ (high + 1);
    vec carry = vec_broadcast(0);

    for (unsigned n = 0; n < NUMBER_BITS; n++) {
        vec a = number_bit(n), b = broadcast_bit(counter, n);
        *plane_of(planes->left, planes->right, 7 - n / 8, n % 8) = vec_xor(vec_xor(a, b), carry);
        carry = vec_or(vec_and(a, carry), vec_and(b, vec_or(a, carry)));
    }
    for (unsigned n = NUMBER_BITS; n < 64; n++) {
        vec changed = vec_and(carry, broadcast_bit(change, n - NUMBER_BITS));
        *plane_of(planes->left, planes->right, 7 - n / 8, n % 8) =
            vec_xor(broadcast_bit(high, n - NUMBER_BITS), changed);
    }
}

/* WAYS blocks. */
static void crypt_wide(const struct bitslice_ctx *c, uint8_t *dst, const uint8_t *src, int decrypting)
{
    struct planes planes;

    planes_from_blocks(&planes, src);
    crypt_planes(c, &planes, decrypting);
    planes_to_blocks(dst, &planes);
}

static void crypt_few(const struct bitslice_ctx *c, uint8_t *dst, const uint8_t *src, size_t num_blocks, int decrypting)
{
    if (decrypting) {
        decrypt_blocks(&c->narrow, dst, src, num_blocks);
    } else {
        encrypt_blocks(&c->narrow, dst, src, num_blocks);
    }
}

/* Up to WAYS blocks. A step that is not full goes through a buffer, so that no more than the message is touched. */
static void crypt_step(const struct bitslice_ctx *c, uint8_t *dst, const uint8_t *src, size_t num_blocks,
                       int decrypting)
{
    if (num_blocks == WAYS) {
        SUBJECT_PATH("wide");
        crypt_wide(c, dst, src, decrypting);
    } else if (num_blocks >= PAYS) {
        uint8_t buffer[WIDE_LEN];
        SUBJECT_PATH("wide_rest");
        memcpy(buffer, src, num_blocks * BLOCK_LEN);
        memset(buffer + num_blocks * BLOCK_LEN, 0, sizeof(buffer) - num_blocks * BLOCK_LEN);
        crypt_wide(c, buffer, buffer, decrypting);
        memcpy(dst, buffer, num_blocks * BLOCK_LEN);
    } else {
        crypt_few(c, dst, src, num_blocks, decrypting);
    }
}

static inline size_t step_of(size_t len)
{
    return len < WIDE_LEN ? len : WIDE_LEN;
}

static inline size_t blocks_of(size_t len)
{
    return (len + BLOCK_LEN - 1) / BLOCK_LEN;
}

static void crypt_all(const struct bitslice_ctx *c, uint8_t *dst, const uint8_t *src, size_t len, int decrypting)
{
    while (len > 0) {
        size_t step = step_of(len);
        crypt_step(c, dst, src, step / BLOCK_LEN, decrypting);
        dst += step;
        src += step;
        len -= step;
    }
}

static void bitslice_encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    crypt_all(ctx, dst, src, num_blocks * BLOCK_LEN, 0);
}

static void bitslice_decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    crypt_all(ctx, dst, src, num_blocks * BLOCK_LEN, 1);
}

static void bitslice_ecb_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    (void)iv;
    crypt_all(ctx, dst, src, len, 0);
}

static void bitslice_ecb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    (void)iv;
    crypt_all(ctx, dst, src, len, 1);
}

/* dst = a xor b from the end to the beginning, so that a and dst may be one, and dst may be a little above b. */
static inline void xor_backwards(uint8_t *dst, const uint8_t *a, const uint8_t *b, size_t len)
{
    uint8_t rest[VEC_LEN];
    size_t rest_len = len % VEC_LEN;

    len -= rest_len;
    xor_bytes(rest, a + len, b + len, rest_len);
    memcpy(dst + len, rest, rest_len);
    while (len > 0) {
        len -= VEC_LEN;
        vec_store(dst + len, vec_xor(vec_load(a + len), vec_load(b + len)));
    }
}

/* A step lies on the stack: whoever hands few blocks over shall not make room for it before. */
#define OWN_FRAME static __attribute__((noinline)) void

OWN_FRAME bitslice_cbc_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    uint8_t text[WIDE_LEN], chain[BLOCK_LEN];

    while (len > 0) {
        size_t step = step_of(len);
        crypt_step(ctx, text, src, step / BLOCK_LEN, 1);
        memcpy(chain, src + step - BLOCK_LEN, BLOCK_LEN);
        xor_backwards(dst + BLOCK_LEN, text + BLOCK_LEN, src, step - BLOCK_LEN);
        xor_bytes(dst, text, iv, BLOCK_LEN);
        memcpy(iv, chain, BLOCK_LEN);
        dst += step;
        src += step;
        len -= step;
    }
}

/* CBC with the last two blocks exchanged, the last one cut to `tail` bytes: what is missing of it comes out of the block
 * before it. */
static void bitslice_cts_cbc_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    uint8_t opened[BLOCK_LEN], last[BLOCK_LEN];
    size_t tail = (len - 1) % BLOCK_LEN + 1, head = len - tail, before;

    if (len < BLOCK_LEN) {
        return;
    }
    if (head == 0) {
        bitslice_cbc_decrypt(ctx, dst, src, len, iv);
        return;
    }
    before = head - BLOCK_LEN;
    bitslice_cbc_decrypt(ctx, dst, src, before, iv);
    crypt_few(ctx, opened, src + before, 1, 1);
    memcpy(last, src + head, tail);
    memcpy(last + tail, opened + tail, BLOCK_LEN - tail);
    xor_bytes(dst + head, opened, last, tail);
    crypt_few(ctx, last, last, 1, 1);
    xor_bytes(dst + before, last, iv, BLOCK_LEN);
}

/* The keystream of a block is the cipher of the ciphertext before it; the iv becomes the last whole block of that. */
OWN_FRAME bitslice_cfb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    uint8_t text[WIDE_LEN];

    while (len > 0) {
        size_t step = step_of(len), num_blocks = blocks_of(step);
        memcpy(text, iv, BLOCK_LEN);
        memcpy(text + BLOCK_LEN, src, (num_blocks - 1) * BLOCK_LEN);
        if (step % BLOCK_LEN == 0) {
            memcpy(iv, src + step - BLOCK_LEN, BLOCK_LEN);
        } else {
            memcpy(iv, text + (num_blocks - 1) * BLOCK_LEN, BLOCK_LEN);
        }
        crypt_step(ctx, text, text, num_blocks, 0);
        xor_backwards(dst, text, src, step);
        dst += step;
        src += step;
        len -= step;
    }
}

static void ctr_step(const struct bitslice_ctx *c, uint8_t *keystream, uint64_t counter, size_t num_blocks)
{
    if (num_blocks >= PAYS) {
        struct planes planes;
        if (num_blocks == WAYS) {
            SUBJECT_PATH("wide");
        } else {
            SUBJECT_PATH("wide_rest");
        }
        planes_from_counter(&planes, counter);
        crypt_planes(c, &planes, 0);
        planes_to_blocks(keystream, &planes);
    } else {
        for (size_t i = 0; i < num_blocks; i++) {
            store_be64(keystream + i * BLOCK_LEN, counter + i);
        }
        crypt_few(c, keystream, keystream, num_blocks, 0);
    }
}

OWN_FRAME bitslice_ctr_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    uint8_t keystream[WIDE_LEN];
    uint64_t counter = load_be64(iv);

    while (len > 0) {
        size_t step = step_of(len);
        ctr_step(ctx, keystream, counter, blocks_of(step));
        xor_backwards(dst, keystream, src, step);
        counter += blocks_of(step);
        dst += step;
        src += step;
        len -= step;
    }
    store_be64(iv, counter);
}

#endif
