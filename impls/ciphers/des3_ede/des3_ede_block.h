/* SPDX-License-Identifier: Apache-2.0
 *
 * Triple DES (TDEA) after FIPS 46-3 and NIST SP 800-67, one block at a time, for any byte order. FIPS 46-3 has no
 * section numbers, so the comments name its functions (PC-1, PC-2, KS, IP, E, f, P) and quote its headings. It counts
 * bits from 1 at the left.
 *
 * Between two of the three DES operations IP undoes the IP^-1 before it, so one IP and one IP^-1 remain around 48
 * rounds. A half of the block is kept turned left by one bit: E's groups of six bits, which overlap, then lie in the
 * low six bits of the four bytes, those for S2, S4, S6, S8 at once and those for S1, S3, S5, S7 after a turn to the
 * right by four. */
#ifndef CROSSLANE_DES3_EDE_BLOCK_H
#define CROSSLANE_DES3_EDE_BLOCK_H

#include "des3_ede_tables.h"
#include "subject.h"

#define BLOCK_LEN 8u
#define KEY_LEN 24u
#define DES_ROUNDS 16u
#define HALF_KEY_MASK UINT32_C(0xfffffff) /* C and D have 28 bits */

/* One K of 48 bits: six bits in the low end of each byte, in the order in which f needs them. */
struct round_key {
    uint32_t even; /* for S2, S4, S6, S8 */
    uint32_t odd;  /* for S1, S3, S5, S7 */
};

/* The 48 round keys in the order of encryption: K1's forwards, K2's backwards (it decrypts), K3's forwards. */
struct des3_ede_ctx {
    struct round_key round[3 * DES_ROUNDS];
};

/* C and D, 28 bits each. */
struct halves {
    uint32_t c, d;
};

/* Appends the len bits of v that the table selects, where v has v_len bits. */
static uint64_t select_bits(uint64_t v, unsigned v_len, const uint8_t *table, size_t len)
{
    uint64_t out = 0;

    for (size_t i = 0; i < len; i++) {
        out = (out << 1) | ((v >> (v_len - table[i])) & 1u);
    }
    return out;
}

/* "Primitive Functions": PC-1 leaves out every eighth bit: parity plays no part from here on. */
static struct halves permuted_choice_1(const uint8_t key[8])
{
    uint64_t cd = select_bits(load_be64(key), 64, pc1, 56);
    struct halves h = {(uint32_t)(cd >> 28), (uint32_t)cd & HALF_KEY_MASK};

    return h;
}

static struct round_key permuted_choice_2(struct halves h)
{
    uint64_t k = select_bits(((uint64_t)h.c << 28) | h.d, 56, pc2, 48);
    struct round_key out = {0, 0};

    for (unsigned n = 1; n <= 8; n += 2) {
        out.odd = (out.odd << 8) | (uint32_t)((k >> (48 - 6 * n)) & 63u);
        out.even = (out.even << 8) | (uint32_t)((k >> (42 - 6 * n)) & 63u);
    }
    return out;
}

static uint32_t rotl28(uint32_t v, unsigned n)
{
    return ((v << n) | (v >> (28 - n))) & HALF_KEY_MASK;
}

/* KS ("Primitive Functions"): the 16 round keys to first, first + step, first + 2 * step, ... */
static void key_schedule(struct round_key *first, ptrdiff_t step, struct halves h)
{
    for (ptrdiff_t i = 0; i < (ptrdiff_t)DES_ROUNDS; i++) {
        h.c = rotl28(h.c, left_shifts[i]);
        h.d = rotl28(h.d, left_shifts[i]);
        first[i * step] = permuted_choice_2(h);
    }
}

static int same_halves(struct halves a, struct halves b)
{
    return a.c == b.c && a.d == b.d;
}

/* SP 800-67 version 1.1, 3.4.2: the 4 weak and 12 semi-weak keys are those with at most two different round keys.
 * Each half is 00..0, 11..1, 0101..01 or 1010..10, which is to say that two shifts change nothing; 4 x 4 pairs of
 * halves are these 16 keys and no other. The possibly weak keys, with four round keys, are not refused. */
static int weak_or_semi_weak(struct halves h)
{
    struct halves shifted = {rotl28(h.c, 2), rotl28(h.d, 2)};

    return same_halves(h, shifted);
}

static int setkey(void *context, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct des3_ede_ctx *ctx = context;
    struct halves k1, k2, k3;

    if (key_len != KEY_LEN) {
        return SUBJECT_BAD_KEY_LEN;
    }
    k1 = permuted_choice_1(key);
    k2 = permuted_choice_1(key + 8);
    k3 = permuted_choice_1(key + 16);
    if ((policy & SUBJECT_POLICY_DEGENERATE) != 0 && (same_halves(k1, k2) || same_halves(k2, k3))) {
        return SUBJECT_WEAK_KEY;
    }
    if ((policy & SUBJECT_POLICY_WEAK_SUBKEY) != 0 &&
        (weak_or_semi_weak(k1) || weak_or_semi_weak(k2) || weak_or_semi_weak(k3))) {
        return SUBJECT_WEAK_KEY;
    }

    key_schedule(&ctx->round[0], 1, k1);
    key_schedule(&ctx->round[2 * DES_ROUNDS - 1], -1, k2);
    key_schedule(&ctx->round[2 * DES_ROUNDS], 1, k3);
    return SUBJECT_OK;
}

/* "The Cipher Function f": f(R, K) = P(S1(B1)S2(B2)...S8(B8)) with B1B2...B8 = K xor E(R). */
static inline uint32_t f(uint32_t r, const struct round_key *k)
{
    uint32_t even = r ^ k->even;
    uint32_t odd = rotr32(r, 4) ^ k->odd;

    return sp[0][(odd >> 24) & 63] ^ sp[1][(even >> 24) & 63] ^ sp[2][(odd >> 16) & 63] ^ sp[3][(even >> 16) & 63] ^
           sp[4][(odd >> 8) & 63] ^ sp[5][(even >> 8) & 63] ^ sp[6][odd & 63] ^ sp[7][even & 63];
}

/* Exchanges the bits `mask << n` of a with the bits `mask` of b. */
static inline void exchange_bits(uint32_t *a, uint32_t *b, unsigned n, uint32_t mask)
{
    uint32_t t = ((*a >> n) ^ *b) & mask;

    *b ^= t;
    *a ^= t << n;
}

/* "Enciphering": IP sends bit c of byte r (both from 0) to byte c/2 + (c even ? 4 : 0), bit 7 - r: it moves the six
 * binary digits of a bit's number about, and complements some. Each step below exchanges the digit that tells the two
 * halves apart with one other digit, complementing both; five steps make up IP. */
static inline void initial_permutation(uint32_t *l, uint32_t *r)
{
    exchange_bits(l, r, 4, 0x0f0f0f0f);
    exchange_bits(l, r, 16, 0x0000ffff);
    exchange_bits(r, l, 2, 0x33333333);
    exchange_bits(r, l, 8, 0x00ff00ff);
    exchange_bits(l, r, 1, 0x55555555);
    *l = rotl32(*l, 1);
    *r = rotl32(*r, 1);
}

static inline void inverse_initial_permutation(uint32_t *l, uint32_t *r)
{
    *l = rotr32(*l, 1);
    *r = rotr32(*r, 1);
    exchange_bits(l, r, 1, 0x55555555);
    exchange_bits(r, l, 8, 0x00ff00ff);
    exchange_bits(r, l, 2, 0x33333333);
    exchange_bits(l, r, 16, 0x0000ffff);
    exchange_bits(l, r, 4, 0x0f0f0f0f);
}

/* Three DES operations with the round keys k, k + step, k + 2 * step, ... */
static inline void crypt_block(uint8_t *dst, const uint8_t *src, const struct round_key *k, ptrdiff_t step)
{
    uint32_t l = load_be32(src);
    uint32_t r = load_be32(src + 4);

    initial_permutation(&l, &r);
    for (unsigned operation = 0; operation < 3; operation++) {
        uint32_t t;

        /* "Enciphering": L' = R, R' = L xor f(R, K), twice, with the halves left in place. */
        for (unsigned i = 0; i < DES_ROUNDS; i += 2) {
            l ^= f(r, k);
            r ^= f(l, k + step);
            k += 2 * step;
        }
        /* The preoutput block is R16 L16, and the next operation's input. */
        t = l;
        l = r;
        r = t;
    }
    inverse_initial_permutation(&l, &r);
    store_be32(dst, l);
    store_be32(dst + 4, r);
}

/* SP 800-67, 3.1: E_K3(D_K2(E_K1(I))). "Deciphering" is the same rounds with the keys backwards, hence ctx->round. */
static void encrypt_blocks(const void *context, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    const struct des3_ede_ctx *ctx = context;

    for (; num_blocks > 0; num_blocks--) {
        SUBJECT_PATH("block");
        crypt_block(dst, src, &ctx->round[0], 1);
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
}

/* SP 800-67, 3.1: the inverse, D_K1(E_K2(D_K3(I))), is the same 48 rounds in the reverse order. */
static void decrypt_blocks(const void *context, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    const struct des3_ede_ctx *ctx = context;

    for (; num_blocks > 0; num_blocks--) {
        SUBJECT_PATH("block");
        crypt_block(dst, src, &ctx->round[3 * DES_ROUNDS - 1], -1);
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
}

#endif
