/* SPDX-License-Identifier: Apache-2.0
 *
 * Twofish in portable C, after the submission (B. Schneier, J. Kelsey, D. Whiting, D. Wagner, C. Hall, N. Ferguson:
 * "Twofish: A 128-Bit Block Cipher", 15 June 1998). setkey computes g for each byte of its argument ("full keying",
 * section 5.1): four tables of 256 words, which hold key-dependent S-box and MDS matrix together.
 */
#include "subject.h"
#include "twofish_tables.h"

#define NUM_ROUNDS 16u
#define NUM_SUBKEYS 40u
#define MAX_K 4u /* k of section 4.3: key length in 64-bit units */

struct twofish_ctx {
    uint32_t g[4][256];           /* g(X) is the XOR of g[j][byte j of X] */
    uint32_t subkey[NUM_SUBKEYS]; /* K_0 to K_39 */
};

static inline uint32_t byte_of(uint32_t x, unsigned j)
{
    return (x >> (8u * j)) & 0xffu;
}

/* Section 4.3.2, figure 2: which of q0 and q1 byte j goes through, in the order of application: before L_3, before
 * L_2, before L_1, before L_0, and last. */
static const uint8_t q_order[4][MAX_K + 1] = {{1, 1, 0, 0, 1}, {0, 1, 1, 0, 0}, {0, 0, 0, 1, 1}, {1, 0, 1, 1, 0}};

/* Byte j of h before the MDS matrix, for the byte x of X and the list l of k words. */
static inline uint32_t h_byte(unsigned j, uint32_t x, const uint32_t l[MAX_K], unsigned k)
{
    const uint8_t *order = q_order[j];

    if (k > 3) {
        x = q[order[0]][x] ^ byte_of(l[3], j);
    }
    if (k > 2) {
        x = q[order[1]][x] ^ byte_of(l[2], j);
    }
    x = q[order[2]][x] ^ byte_of(l[1], j);
    x = q[order[3]][x] ^ byte_of(l[0], j);
    return q[order[4]][x];
}

/* h of a word that consists of four equal bytes x, as section 4.3.4 needs it. */
static uint32_t h_of_equal_bytes(uint32_t x, const uint32_t l[MAX_K], unsigned k)
{
    return mds[0][h_byte(0, x, l, k)] ^ mds[1][h_byte(1, x, l, k)] ^ mds[2][h_byte(2, x, l, k)] ^
           mds[3][h_byte(3, x, l, k)];
}

/* Four elements of the RS matrix's field, one a byte, times x. */
static inline uint32_t rs_xtime(uint32_t a)
{
    return ((a & 0x7f7f7f7fu) << 1) ^ (((a >> 7) & 0x01010101u) * (RS_POLYNOMIAL & 0xffu));
}

/* Section 4.3: the word S_i from eight key bytes, RS times the vector m: Horner's rule over the bits of m. */
static uint32_t rs_word(const uint8_t m[8])
{
    uint32_t word = 0;

    for (unsigned bit = 8; bit > 0; bit--) {
        word = rs_xtime(word);
        for (unsigned j = 0; j < 8; j++) {
            word ^= (((uint32_t)m[j] >> (bit - 1)) & 1u) * rs_column[j];
        }
    }
    return word;
}

/* g of every byte value in byte j. */
static inline void fill_table(uint32_t table[256], unsigned j, const uint32_t s[MAX_K], unsigned k)
{
    for (uint32_t x = 0; x < 256; x++) {
        table[x] = mds[j][h_byte(j, x, s, k)];
    }
}

/* Section 4.3.4: A_i = h(2i rho, M_e), B_i = ROL(h((2i + 1) rho, M_o), 8), rho = 01010101. */
static void expand_subkeys(uint32_t subkey[NUM_SUBKEYS], const uint32_t even[MAX_K], const uint32_t odd[MAX_K],
                           unsigned k)
{
    for (uint32_t i = 0; i < NUM_SUBKEYS; i += 2) {
        const uint32_t a = h_of_equal_bytes(i, even, k);
        const uint32_t b = rotl32(h_of_equal_bytes(i + 1, odd, k), 8);

        subkey[i] = a + b;
        subkey[i + 1] = rotl32(a + 2 * b, 9);
    }
}

static int twofish_setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct twofish_ctx *c = ctx;
    uint32_t even[MAX_K] = {0}, odd[MAX_K] = {0}, s[MAX_K] = {0};
    unsigned k;

    (void)policy;
    if (key_len != 16 && key_len != 24 && key_len != 32) {
        return SUBJECT_BAD_KEY_LEN;
    }
    k = (unsigned)(key_len / 8);
    for (unsigned i = 0; i < k; i++) {
        even[i] = load_le32(key + 8 * i);
        odd[i] = load_le32(key + 8 * i + 4);
        s[k - 1 - i] = rs_word(key + 8 * i); /* "Note that S lists the words in 'reverse' order" */
    }
    fill_table(c->g[0], 0, s, k);
    fill_table(c->g[1], 1, s, k);
    fill_table(c->g[2], 2, s, k);
    fill_table(c->g[3], 3, s, k);
    expand_subkeys(c->subkey, even, odd, k);
    return SUBJECT_OK;
}

/* Section 4.2. */
static inline uint32_t g(const struct twofish_ctx *ctx, uint32_t x)
{
    return ctx->g[0][byte_of(x, 0)] ^ ctx->g[1][byte_of(x, 1)] ^ ctx->g[2][byte_of(x, 2)] ^ ctx->g[3][byte_of(x, 3)];
}

/* g of x rotated left by 8 bits. */
static inline uint32_t g_rotated(const struct twofish_ctx *ctx, uint32_t x)
{
    return ctx->g[0][byte_of(x, 3)] ^ ctx->g[1][byte_of(x, 0)] ^ ctx->g[2][byte_of(x, 1)] ^ ctx->g[3][byte_of(x, 2)];
}

/* Section 4.1: F of (r[0], r[1]) goes into (r[2], r[3]); k holds K_{2r+8} and K_{2r+9}. The caller swaps the halves. */
static inline void encrypt_round(const struct twofish_ctx *ctx, const uint32_t k[2], uint32_t r0, uint32_t r1,
                                 uint32_t *r2, uint32_t *r3)
{
    const uint32_t t1 = g_rotated(ctx, r1);
    const uint32_t t0 = g(ctx, r0);

    *r2 = rotr32(*r2 ^ (t0 + t1 + k[0]), 1);
    *r3 = rotl32(*r3, 1) ^ (t0 + 2 * t1 + k[1]);
}

static inline void decrypt_round(const struct twofish_ctx *ctx, const uint32_t k[2], uint32_t r0, uint32_t r1,
                                 uint32_t *r2, uint32_t *r3)
{
    const uint32_t t1 = g_rotated(ctx, r1);
    const uint32_t t0 = g(ctx, r0);

    *r2 = rotl32(*r2, 1) ^ (t0 + t1 + k[0]);
    *r3 = rotr32(*r3 ^ (t0 + 2 * t1 + k[1]), 1);
}

/* Section 4: whitening in, 16 rounds, the last swap undone, whitening out. */
static void encrypt_block(const struct twofish_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    const uint32_t *k = ctx->subkey;
    uint32_t a = load_le32(src) ^ k[0];
    uint32_t b = load_le32(src + 4) ^ k[1];
    uint32_t c = load_le32(src + 8) ^ k[2];
    uint32_t d = load_le32(src + 12) ^ k[3];

    for (unsigned r = 0; r < NUM_ROUNDS; r += 2) {
        encrypt_round(ctx, k + 2 * r + 8, a, b, &c, &d);
        encrypt_round(ctx, k + 2 * r + 10, c, d, &a, &b);
    }
    store_le32(dst, c ^ k[4]);
    store_le32(dst + 4, d ^ k[5]);
    store_le32(dst + 8, a ^ k[6]);
    store_le32(dst + 12, b ^ k[7]);
}

static void decrypt_block(const struct twofish_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    const uint32_t *k = ctx->subkey;
    uint32_t c = load_le32(src) ^ k[4];
    uint32_t d = load_le32(src + 4) ^ k[5];
    uint32_t a = load_le32(src + 8) ^ k[6];
    uint32_t b = load_le32(src + 12) ^ k[7];

    for (unsigned r = NUM_ROUNDS; r > 0; r -= 2) {
        decrypt_round(ctx, k + 2 * r + 6, c, d, &a, &b);
        decrypt_round(ctx, k + 2 * r + 4, a, b, &c, &d);
    }
    store_le32(dst, a ^ k[0]);
    store_le32(dst + 4, b ^ k[1]);
    store_le32(dst + 8, c ^ k[2]);
    store_le32(dst + 12, d ^ k[3]);
}

static void twofish_encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks > 0; num_blocks--) {
        SUBJECT_PATH("block");
        encrypt_block(ctx, dst, src);
        dst += 16;
        src += 16;
    }
}

static void twofish_decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks > 0; num_blocks--) {
        SUBJECT_PATH("block");
        decrypt_block(ctx, dst, src);
        dst += 16;
        src += 16;
    }
}

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = 16,
    .ways = 1,
    .ctx_len = sizeof(struct twofish_ctx),
    .ctx_align = sizeof(uint32_t),
    .setkey = twofish_setkey,
    .encrypt_blocks = twofish_encrypt_blocks,
    .decrypt_blocks = twofish_decrypt_blocks,
};

const struct subject_leaf *twofish_generic(uint64_t features);

const struct subject_leaf *twofish_generic(uint64_t features)
{
    (void)features;
    return &leaf;
}
