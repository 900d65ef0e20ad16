/* SPDX-License-Identifier: Apache-2.0
 *
 * Triple DES (FIPS 46-3, NIST SP 800-67) for x86-64: one block, or three side by side; and the modes made of
 * them. An implementation that includes this has a .S file that includes des3_ede_rounds_x86_64.h.
 *
 * A half of the block is kept as E expands it: 48 bits, six in the low end of each byte, which are the indices of the
 * eight S-boxes. The tables join each S-box to P and to the next E, so that a round has nothing to mask or to turn; the
 * rounds are in des3_ede_rounds_x86_64.h. FIPS 46-3 counts bits from 1 at the left.
 *
 * Tables are addressed by data: not constant-time. */
#ifndef CROSSLANE_DES3_EDE_INTERLEAVED_H
#define CROSSLANE_DES3_EDE_INTERLEAVED_H

#include "subject.h"
#include "subject_asm.h"

/* A word of 32 bits, turned left by one as des3_ede_tables.h has it, with its groups for S8, S6, S4, S2 in the lower
 * half and those for S7, S5, S3, S1, which begin four bits further left, in the upper one. */
#define GROUPS UINT32_C(0x3f3f3f3f)
#define EXPAND(v) (((v) & GROUPS) | (uint64_t)((((v) >> 4) | ((v) << 28)) & GROUPS) << 32)
#define DES3_EDE_ENTRY(v) EXPAND(v)
typedef uint64_t des3_ede_entry;

#include "des3_ede_tables.h"

#define BLOCK_LEN 8u
#define KEY_LEN 24u
#define INTERLEAVED 3u
#define ROUNDS 48u
#define DES_ROUNDS 16u
#define NUM_KEYS (1 + ROUNDS + ROUNDS / DES_ROUNDS)
#define HALF_KEY_BITS 28u

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* In the order that des3_ede_rounds_x86_64.h describes. */
struct des3_ede_ctx {
    uint64_t encrypt_keys[NUM_KEYS];
    uint64_t decrypt_keys[NUM_KEYS];
};

/* Key schedule. */

/* C and D as FIPS 46-3 has them ("Primitive Functions"), a bit to a byte, the leftmost first. */
struct key_bits {
    uint8_t bit[2 * HALF_KEY_BITS];
};

static struct key_bits permuted_choice_1(const uint8_t key[8])
{
    struct key_bits out;

    for (unsigned i = 0; i < 2 * HALF_KEY_BITS; i++) {
        unsigned from = pc1[i] - 1u;
        out.bit[i] = (key[from / 8] >> (7 - from % 8)) & 1u;
    }
    return out;
}

/* K after so many left shifts in all: six bits to a byte, in the order in which a half has its groups. */
static uint64_t round_key(const struct key_bits *k, unsigned shifts)
{
    uint64_t out = 0;

    for (unsigned i = 0; i < 48; i++) {
        unsigned from = pc2[i] - 1u;
        unsigned half = from / HALF_KEY_BITS * HALF_KEY_BITS;
        unsigned box = i / 6; /* S1 first */
        unsigned byte = (7 - box) / 2 + (box % 2 == 0 ? 4 : 0);
        uint64_t bit = k->bit[half + (from + shifts) % HALF_KEY_BITS];
        out |= bit << (8 * byte + 5 - i % 6);
    }
    return out;
}

/* KS: the 16 round keys to first, first + step, ... */
static void key_schedule(uint64_t *first, ptrdiff_t step, const struct key_bits *k)
{
    unsigned shifts = 0;

    for (ptrdiff_t i = 0; i < (ptrdiff_t)DES_ROUNDS; i++) {
        shifts += left_shifts[i];
        first[i * step] = round_key(k, shifts);
    }
}

/* From the keys of all rounds to what the rounds apply. A half that goes into the next round gets that round's key; what
 * it carries from the time before is taken away by the same exclusive or. */
static void carried_keys(uint64_t out[NUM_KEYS], const uint64_t keys[ROUNDS], int backwards)
{
    uint64_t changed = 0, other = keys[backwards ? ROUNDS - 1 : 0];

    *out++ = other;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        uint64_t next = i == ROUNDS ? 0 : keys[backwards ? ROUNDS - 1 - i : i];
        if (i % DES_ROUNDS != 0) {
            *out++ = changed ^ next;
            changed = other;
        } else {
            *out++ = changed;
            *out++ = other ^ next;
            changed = 0;
        }
        other = next;
    }
}

static int same_keys(const struct key_bits *a, const struct key_bits *b)
{
    return memcmp(a->bit, b->bit, sizeof(a->bit)) == 0;
}

/* SP 800-67 version 1.1, 3.4.2: the weak and semi-weak keys are those whose halves have every second bit alike. */
static int weak_or_semi_weak(const struct key_bits *k)
{
    for (unsigned i = 0; i < 2 * HALF_KEY_BITS; i++) {
        if (k->bit[i] != k->bit[i / HALF_KEY_BITS * HALF_KEY_BITS + i % 2]) {
            return 0;
        }
    }
    return 1;
}

static int setkey(void *context, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct des3_ede_ctx *ctx = context;
    struct key_bits k[3];
    uint64_t keys[ROUNDS];

    if (key_len != KEY_LEN) {
        return SUBJECT_BAD_KEY_LEN;
    }
    for (unsigned i = 0; i < 3; i++) {
        k[i] = permuted_choice_1(key + 8 * i);
    }
    if ((policy & SUBJECT_POLICY_DEGENERATE) != 0 && (same_keys(&k[0], &k[1]) || same_keys(&k[1], &k[2]))) {
        return SUBJECT_WEAK_KEY;
    }
    for (unsigned i = 0; (policy & SUBJECT_POLICY_WEAK_SUBKEY) != 0 && i < 3; i++) {
        if (weak_or_semi_weak(&k[i])) {
            return SUBJECT_WEAK_KEY;
        }
    }
    /* SP 800-67, 3.1: E_K3(D_K2(E_K1(I))), where D is E with the keys backwards; decrypting all 48 are. */
    key_schedule(&keys[0], 1, &k[0]);
    key_schedule(&keys[2 * DES_ROUNDS - 1], -1, &k[1]);
    key_schedule(&keys[2 * DES_ROUNDS], 1, &k[2]);
    carried_keys(ctx->encrypt_keys, keys, 0);
    carried_keys(ctx->decrypt_keys, keys, 1);
    return SUBJECT_OK;
}

/* Blocks. */

void SUBJECT_ASM_ABI des3_ede_rounds_1(const uint64_t keys[NUM_KEYS], uint64_t *halves, const uint64_t boxes[8][64]);
void SUBJECT_ASM_ABI des3_ede_rounds_3(const uint64_t keys[NUM_KEYS], uint64_t *halves, const uint64_t boxes[8][64]);

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

/* Exchanges the bits `mask << n` of v with the bits `mask`. */
ALWAYS_INLINE uint64_t exchange_bits(uint64_t v, unsigned n, uint64_t mask)
{
    uint64_t t = ((v >> n) ^ v) & mask;
    return v ^ t ^ (t << n);
}

/* Turns the eight bytes of v, as rows of bits, into columns: row 0 is the most significant byte, column 0 bit 7. */
ALWAYS_INLINE uint64_t transpose(uint64_t v)
{
    v = exchange_bits(v, 7, UINT64_C(0x00aa00aa00aa00aa));
    v = exchange_bits(v, 14, UINT64_C(0x0000cccc0000cccc));
    return exchange_bits(v, 28, UINT64_C(0x00000000f0f0f0f0));
}

/* Every second byte of v, the lowest one among them. */
ALWAYS_INLINE uint32_t even_bytes(uint64_t v)
{
    v &= UINT64_C(0x00ff00ff00ff00ff);
    v = (v | (v >> 8)) & UINT64_C(0x0000ffff0000ffff);
    return (uint32_t)(v | (v >> 16));
}

ALWAYS_INLINE uint64_t to_even_bytes(uint32_t v)
{
    uint64_t w = (v | ((uint64_t)v << 16)) & UINT64_C(0x0000ffff0000ffff);
    return (w | (w << 8)) & UINT64_C(0x00ff00ff00ff00ff);
}

ALWAYS_INLINE uint64_t expand(uint32_t v)
{
    v = rotl32(v, 1);
    return EXPAND(v);
}

ALWAYS_INLINE uint32_t contract(uint64_t half)
{
    return rotr32((uint32_t)half | rotl32((uint32_t)(half >> 32), 4), 1);
}

/* IP ("Enciphering"): with the last byte as the first row, the bits of a column make up a byte of the output; the even
 * columns those of R, the odd ones those of L, counting from 0. */
ALWAYS_INLINE void halves_from_block(uint64_t *l, uint64_t *r, uint64_t block)
{
    uint64_t columns = transpose(block);

    *l = expand(even_bytes(columns));
    *r = expand(even_bytes(columns >> 8));
}

ALWAYS_INLINE uint64_t halves_to_block(uint64_t l, uint64_t r)
{
    return transpose(to_even_bytes(contract(l)) | (to_even_bytes(contract(r)) << 8));
}

static uint64_t crypt_1(const uint64_t *keys, uint64_t block)
{
    uint64_t halves[2];

    SUBJECT_PATH("block");
    halves_from_block(&halves[0], &halves[1], block);
    SUBJECT_ASM_CALL(des3_ede_rounds_1)(keys, halves, sp);
    return halves_to_block(halves[0], halves[1]);
}

static void crypt_3(const uint64_t *keys, uint64_t blocks[INTERLEAVED])
{
    uint64_t halves[2 * INTERLEAVED];

    SUBJECT_PATH("3way");
    for (unsigned i = 0; i < INTERLEAVED; i++) {
        halves_from_block(&halves[i], &halves[INTERLEAVED + i], blocks[i]);
    }
    SUBJECT_ASM_CALL(des3_ede_rounds_3)(keys, halves, sp);
    for (unsigned i = 0; i < INTERLEAVED; i++) {
        blocks[i] = halves_to_block(halves[i], halves[INTERLEAVED + i]);
    }
}

static void crypt_blocks(const uint64_t *keys, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks >= INTERLEAVED; num_blocks -= INTERLEAVED) {
        uint64_t blocks[INTERLEAVED];
        memcpy(blocks, src, sizeof(blocks));
        crypt_3(keys, blocks);
        memcpy(dst, blocks, sizeof(blocks));
        dst += INTERLEAVED * BLOCK_LEN;
        src += INTERLEAVED * BLOCK_LEN;
    }
    for (; num_blocks > 0; num_blocks--) {
        store_block(dst, crypt_1(keys, load_block(src)));
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
}

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    crypt_blocks(((const struct des3_ede_ctx *)ctx)->encrypt_keys, dst, src, num_blocks);
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    crypt_blocks(((const struct des3_ede_ctx *)ctx)->decrypt_keys, dst, src, num_blocks);
}

/* Modes. Of each step all input is in registers or on the stack before its first output is written: in place the two
 * are the same bytes. */

static void cbc_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const uint64_t *keys = ((const struct des3_ede_ctx *)ctx)->encrypt_keys;
    uint64_t chain = load_block(iv);

    for (; len >= BLOCK_LEN; len -= BLOCK_LEN) {
        chain = crypt_1(keys, load_block(src) ^ chain);
        store_block(dst, chain);
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
    store_block(iv, chain);
}

static void cbc_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const uint64_t *keys = ((const struct des3_ede_ctx *)ctx)->decrypt_keys;
    uint64_t chain = load_block(iv);

    for (; len >= INTERLEAVED * BLOCK_LEN; len -= INTERLEAVED * BLOCK_LEN) {
        uint64_t in[INTERLEAVED], out[INTERLEAVED];
        memcpy(in, src, sizeof(in));
        memcpy(out, in, sizeof(out));
        crypt_3(keys, out);
        for (unsigned i = 0; i < INTERLEAVED; i++) {
            store_block(dst + BLOCK_LEN * i, out[i] ^ chain);
            chain = in[i];
        }
        dst += INTERLEAVED * BLOCK_LEN;
        src += INTERLEAVED * BLOCK_LEN;
    }
    for (; len >= BLOCK_LEN; len -= BLOCK_LEN) {
        uint64_t in = load_block(src);
        store_block(dst, crypt_1(keys, in) ^ chain);
        chain = in;
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
    store_block(iv, chain);
}

/* The last piece of a message, shorter than a block. */
ALWAYS_INLINE void xor_partial(uint8_t *dst, const uint8_t *src, uint64_t keystream, size_t len)
{
    uint8_t bytes[BLOCK_LEN];

    store_block(bytes, keystream);
    xor_bytes(dst, src, bytes, len);
}

static void cfb_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const uint64_t *keys = ((const struct des3_ede_ctx *)ctx)->encrypt_keys;
    uint64_t chain = load_block(iv);

    for (; len >= BLOCK_LEN; len -= BLOCK_LEN) {
        chain = crypt_1(keys, chain) ^ load_block(src);
        store_block(dst, chain);
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
    store_block(iv, chain);
    if (len > 0) {
        xor_partial(dst, src, crypt_1(keys, chain), len);
    }
}

static void cfb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const uint64_t *keys = ((const struct des3_ede_ctx *)ctx)->encrypt_keys;
    uint64_t chain = load_block(iv);

    for (; len >= INTERLEAVED * BLOCK_LEN; len -= INTERLEAVED * BLOCK_LEN) {
        uint64_t in[INTERLEAVED], out[INTERLEAVED];
        memcpy(in, src, sizeof(in));
        out[0] = chain;
        out[1] = in[0];
        out[2] = in[1];
        chain = in[2];
        crypt_3(keys, out);
        for (unsigned i = 0; i < INTERLEAVED; i++) {
            store_block(dst + BLOCK_LEN * i, out[i] ^ in[i]);
        }
        dst += INTERLEAVED * BLOCK_LEN;
        src += INTERLEAVED * BLOCK_LEN;
    }
    for (; len >= BLOCK_LEN; len -= BLOCK_LEN) {
        uint64_t in = load_block(src);
        store_block(dst, crypt_1(keys, chain) ^ in);
        chain = in;
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
    store_block(iv, chain);
    if (len > 0) {
        xor_partial(dst, src, crypt_1(keys, chain), len);
    }
}

static void ofb_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const uint64_t *keys = ((const struct des3_ede_ctx *)ctx)->encrypt_keys;
    uint64_t chain = load_block(iv);

    for (; len >= BLOCK_LEN; len -= BLOCK_LEN) {
        chain = crypt_1(keys, chain);
        store_block(dst, chain ^ load_block(src));
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
    store_block(iv, chain);
    if (len > 0) {
        xor_partial(dst, src, crypt_1(keys, chain), len);
    }
}

static void ctr_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const uint64_t *keys = ((const struct des3_ede_ctx *)ctx)->encrypt_keys;
    uint64_t counter = __builtin_bswap64(load_block(iv));

    for (; len >= INTERLEAVED * BLOCK_LEN; len -= INTERLEAVED * BLOCK_LEN) {
        uint64_t keystream[INTERLEAVED];
        for (unsigned i = 0; i < INTERLEAVED; i++) {
            keystream[i] = __builtin_bswap64(counter + i);
        }
        counter += INTERLEAVED;
        crypt_3(keys, keystream);
        for (unsigned i = 0; i < INTERLEAVED; i++) {
            store_block(dst + BLOCK_LEN * i, keystream[i] ^ load_block(src + BLOCK_LEN * i));
        }
        dst += INTERLEAVED * BLOCK_LEN;
        src += INTERLEAVED * BLOCK_LEN;
    }
    for (; len >= BLOCK_LEN; len -= BLOCK_LEN) {
        store_block(dst, crypt_1(keys, __builtin_bswap64(counter)) ^ load_block(src));
        counter++;
        dst += BLOCK_LEN;
        src += BLOCK_LEN;
    }
    if (len > 0) {
        xor_partial(dst, src, crypt_1(keys, __builtin_bswap64(counter)), len);
        counter++;
    }
    store_block(iv, __builtin_bswap64(counter));
}

#endif
