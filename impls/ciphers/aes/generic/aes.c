/* SPDX-License-Identifier: Apache-2.0
 *
 * AES (FIPS 197, 2001) in portable C. The state is four words, one a column, the byte of row 0 the most significant.
 * A round's SubBytes, ShiftRows and MixColumns are four look-ups and three XORs for each column; decryption is the
 * equivalent inverse cipher of section 5.3.5, whose round keys have gone through InvMixColumns.
 */
#include "aes_tables.h"
#include "subject.h"

#define NB 4u      /* columns of the state */
#define MAX_NR 14u /* rounds with a 256-bit key */
#define MAX_NK 8u  /* words of a 256-bit key */

struct aes_ctx {
    uint32_t num_rounds;                  /* Nr: 10, 12 or 14 */
    uint32_t encrypt_key[MAX_NR + 1][NB]; /* w of section 5.2 */
    uint32_t decrypt_key[MAX_NR + 1][NB]; /* dw of section 5.3.5, in the order of their use */
};

/* Byte of row r. */
static inline uint32_t row(uint32_t column, unsigned r)
{
    return (column >> (24u - 8u * r)) & 0xffu;
}

/* The column whose bytes of rows 0 to 3 come from columns a to d. */
static inline uint32_t sub_mix_column(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return sub_mix[0][row(a, 0)] ^ sub_mix[1][row(b, 1)] ^ sub_mix[2][row(c, 2)] ^ sub_mix[3][row(d, 3)];
}

static inline uint32_t unsub_unmix_column(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return unsub_unmix[0][row(a, 0)] ^ unsub_unmix[1][row(b, 1)] ^ unsub_unmix[2][row(c, 2)] ^
           unsub_unmix[3][row(d, 3)];
}

static inline uint32_t look_up_column(const uint8_t box[256], uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return COLUMN(box[row(a, 0)], box[row(b, 1)], box[row(c, 2)], box[row(d, 3)]);
}

/* AddRoundKey, section 5.1.4, of the block at src. */
static inline void load_block(uint32_t x[NB], const uint8_t *src, const uint32_t k[NB])
{
    x[0] = load_be32(src) ^ k[0];
    x[1] = load_be32(src + 4) ^ k[1];
    x[2] = load_be32(src + 8) ^ k[2];
    x[3] = load_be32(src + 12) ^ k[3];
}

/* One round but the last: y from x. ShiftRows (section 5.1.2) takes row r of column c from column c + r. */
static inline void encrypt_round(uint32_t y[NB], const uint32_t x[NB], const uint32_t k[NB])
{
    y[0] = sub_mix_column(x[0], x[1], x[2], x[3]) ^ k[0];
    y[1] = sub_mix_column(x[1], x[2], x[3], x[0]) ^ k[1];
    y[2] = sub_mix_column(x[2], x[3], x[0], x[1]) ^ k[2];
    y[3] = sub_mix_column(x[3], x[0], x[1], x[2]) ^ k[3];
}

/* InvShiftRows (section 5.3.1) takes row r of column c from column c - r. */
static inline void decrypt_round(uint32_t y[NB], const uint32_t x[NB], const uint32_t k[NB])
{
    y[0] = unsub_unmix_column(x[0], x[3], x[2], x[1]) ^ k[0];
    y[1] = unsub_unmix_column(x[1], x[0], x[3], x[2]) ^ k[1];
    y[2] = unsub_unmix_column(x[2], x[1], x[0], x[3]) ^ k[2];
    y[3] = unsub_unmix_column(x[3], x[2], x[1], x[0]) ^ k[3];
}

/* Figure 5; the number of rounds is even, so that they go in pairs. */
static void encrypt_block(const struct aes_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    const uint32_t (*k)[NB] = ctx->encrypt_key;
    const uint32_t (*last)[NB] = ctx->encrypt_key + ctx->num_rounds;
    uint32_t x[NB], y[NB];

    load_block(x, src, k[0]);
    encrypt_round(y, x, k[1]);
    for (k += 2; k != last; k += 2) {
        encrypt_round(x, y, k[0]);
        encrypt_round(y, x, k[1]);
    }
    store_be32(dst, look_up_column(sbox, y[0], y[1], y[2], y[3]) ^ k[0][0]);
    store_be32(dst + 4, look_up_column(sbox, y[1], y[2], y[3], y[0]) ^ k[0][1]);
    store_be32(dst + 8, look_up_column(sbox, y[2], y[3], y[0], y[1]) ^ k[0][2]);
    store_be32(dst + 12, look_up_column(sbox, y[3], y[0], y[1], y[2]) ^ k[0][3]);
}

/* Figure 15. */
static void decrypt_block(const struct aes_ctx *ctx, uint8_t *dst, const uint8_t *src)
{
    const uint32_t (*k)[NB] = ctx->decrypt_key;
    const uint32_t (*last)[NB] = ctx->decrypt_key + ctx->num_rounds;
    uint32_t x[NB], y[NB];

    load_block(x, src, k[0]);
    decrypt_round(y, x, k[1]);
    for (k += 2; k != last; k += 2) {
        decrypt_round(x, y, k[0]);
        decrypt_round(y, x, k[1]);
    }
    store_be32(dst, look_up_column(inverse_sbox, y[0], y[3], y[2], y[1]) ^ k[0][0]);
    store_be32(dst + 4, look_up_column(inverse_sbox, y[1], y[0], y[3], y[2]) ^ k[0][1]);
    store_be32(dst + 8, look_up_column(inverse_sbox, y[2], y[1], y[0], y[3]) ^ k[0][2]);
    store_be32(dst + 12, look_up_column(inverse_sbox, y[3], y[2], y[1], y[0]) ^ k[0][3]);
}

/* SubWord, section 5.2. */
static inline uint32_t sub_word(uint32_t w)
{
    return look_up_column(sbox, w, w, w, w);
}

/* InvMixColumns of one column: the tables undo the S-box first, so it is applied before. */
static inline uint32_t unmix_column(uint32_t w)
{
    const uint32_t s = sub_word(w);

    return unsub_unmix_column(s, s, s, s);
}

/* KeyExpansion, figure 11: all words of w, the key's nk first. */
static void expand_key(uint32_t *w, const uint8_t *key, size_t nk, size_t num_words)
{
    uint32_t recent[MAX_NK]; /* w[i - nk] at i mod nk */
    uint32_t temp = 0;
    uint32_t rcon = 1;

    for (size_t i = 0; i < nk; i++) {
        recent[i] = load_be32(key + 4 * i);
        w[i] = recent[i];
        temp = recent[i];
    }
    for (size_t i = nk, j = 0; i < num_words; i++) {
        if (j == 0) {
            temp = sub_word(rotl32(temp, 8)) ^ (rcon << 24);
            rcon = XTIME(rcon);
        } else if (nk > 6 && j == 4) {
            temp = sub_word(temp);
        }
        temp ^= recent[j];
        recent[j] = temp;
        w[i] = temp;
        j = (j + 1 == nk) ? 0 : j + 1;
    }
}

static int aes_setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct aes_ctx *c = ctx;
    uint32_t nr;

    (void)policy;
    if (key_len != 16 && key_len != 24 && key_len != 32) {
        return SUBJECT_BAD_KEY_LEN;
    }
    nr = (uint32_t)(key_len / 4) + 6; /* figure 4 */
    c->num_rounds = nr;
    expand_key(&c->encrypt_key[0][0], key, key_len / 4, NB * (nr + 1));
    for (uint32_t r = 0; r <= nr; r++) {
        for (uint32_t j = 0; j < NB; j++) {
            const uint32_t w = c->encrypt_key[nr - r][j];

            c->decrypt_key[r][j] = (r == 0 || r == nr) ? w : unmix_column(w);
        }
    }
    return SUBJECT_OK;
}

static void aes_encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks > 0; num_blocks--) {
        SUBJECT_PATH("block");
        encrypt_block(ctx, dst, src);
        dst += 16;
        src += 16;
    }
}

static void aes_decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
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
    .ctx_len = sizeof(struct aes_ctx),
    .ctx_align = sizeof(uint32_t),
    .setkey = aes_setkey,
    .encrypt_blocks = aes_encrypt_blocks,
    .decrypt_blocks = aes_decrypt_blocks,
};

const struct subject_leaf *aes_generic(uint64_t features);

const struct subject_leaf *aes_generic(uint64_t features)
{
    (void)features;
    return &leaf;
}
