/* SPDX-License-Identifier: Apache-2.0
 *
 * AES (FIPS 197) with NEON alone, without the AES instructions.
 *
 * SubBytes is four look-ups by TBL and TBX in the S-box, which fills sixteen registers: no address depends on data. Two
 * permutations give the rows after ShiftRows and those one row below, a rotation of halves the rows two below, and xtime the
 * rest of MixColumns. Four blocks go side by side, eight as twice four. Decryption is the inverse cipher of section 5.3 with
 * the keys of encryption: InvMixColumns is MixColumns after x + 4 (x + x two rows below).
 */
#include <arm_neon.h>

#include "aes_keys_neon.h"
#include "aes_sbox.h"
#include "neon_gf128_ghash.h"
#include "neon_modes.h"

struct neon_keys {
    const uint8_t *box; /* S-box or its inverse */
    uint8x16_t shift, shift_below,
        below;                   /* for TBL: ShiftRows or its inverse, the same and one row below, that alone */
    uint8x16_t quarter, modulus; /* 64 and 0x1b in every byte */
    const uint8_t *first;        /* round key in the order of use */
    uint32_t num_rounds;
};

/* Byte i of a block lies in row i mod 4 and column i / 4. Row r moves left by r columns, in the inverse to the right. */
static const uint8_t shift_rows[16] = {0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11};
static const uint8_t shift_rows_below[16] = {5, 10, 15, 0, 9, 14, 3, 4, 13, 2, 7, 8, 1, 6, 11, 12};
static const uint8_t unshift_rows[16] = {0, 13, 10, 7, 4, 1, 14, 11, 8, 5, 2, 15, 12, 9, 6, 3};
static const uint8_t row_below[16] = {1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12};

/* What gcc does not know the value of it keeps in registers, instead of building it anew wherever it is used. */
NEON_INLINE const uint8_t *unknown_address(const uint8_t *p)
{
    __asm__("" : "+r"(p));
    return p;
}

NEON_INLINE uint8x16_t unknown_vector(uint8x16_t v)
{
    __asm__("" : "+w"(v));
    return v;
}

NEON_INLINE struct neon_keys keys_of(const struct aes_round_keys *keys, const uint8_t *box)
{
    struct neon_keys k;
    k.box = unknown_address(box);
    k.quarter = unknown_vector(vdupq_n_u8(64));
    k.modulus = unknown_vector(vdupq_n_u8(0x1b));
    k.num_rounds = keys->num_rounds;
    return k;
}

NEON_INLINE struct neon_keys encrypt_keys(const void *ctx)
{
    const struct aes_round_keys *keys = ctx;
    struct neon_keys k = keys_of(keys, sbox);
    k.shift = unknown_vector(vld1q_u8(shift_rows));
    k.shift_below = unknown_vector(vld1q_u8(shift_rows_below));
    k.below = k.shift_below; /* not used */
    k.first = keys->bytes + (AES_MAX_ROUNDS - keys->num_rounds) * AES_BLOCK_LEN;
    return k;
}

NEON_INLINE struct neon_keys decrypt_keys(const void *ctx)
{
    const struct aes_round_keys *keys = ctx;
    struct neon_keys k = keys_of(keys, inverse_sbox);
    k.shift = unknown_vector(vld1q_u8(unshift_rows));
    k.below = unknown_vector(vld1q_u8(row_below));
    k.shift_below = k.below; /* not used */
    k.first = keys->bytes + AES_MAX_ROUNDS * AES_BLOCK_LEN;
    return k;
}

/* An index beyond a quarter of the box gives zero with TBL and leaves what is there with TBX. */
NEON_INLINE uint8x16_t look_up(const uint8_t *box, uint8x16_t quarter, uint8x16_t x)
{
    uint8x16_t y = vqtbl4q_u8(vld1q_u8_x4(box), x);
    x = vsubq_u8(x, quarter);
    y = vqtbx4q_u8(y, vld1q_u8_x4(box + 64), x);
    x = vsubq_u8(x, quarter);
    y = vqtbx4q_u8(y, vld1q_u8_x4(box + 128), x);
    x = vsubq_u8(x, quarter);
    return vqtbx4q_u8(y, vld1q_u8_x4(box + 192), x);
}

/* Multiplication of each byte by x or x^2, section 4.2.1: what is shifted out comes back as a multiple of the modulus. */
NEON_INLINE uint8x16_t times_modulus(uint8x16_t out, uint8x16_t modulus)
{
    return vreinterpretq_u8_p8(vmulq_p8(vreinterpretq_p8_u8(out), vreinterpretq_p8_u8(modulus)));
}

NEON_INLINE uint8x16_t times_2(uint8x16_t v, uint8x16_t modulus)
{
    return veorq_u8(vshlq_n_u8(v, 1), times_modulus(vshrq_n_u8(v, 7), modulus));
}

NEON_INLINE uint8x16_t times_4(uint8x16_t v, uint8x16_t modulus)
{
    return veorq_u8(vshlq_n_u8(v, 2), times_modulus(vshrq_n_u8(v, 6), modulus));
}

NEON_INLINE uint8x16_t two_rows_below(uint8x16_t x)
{
    return vreinterpretq_u8_u16(vrev32q_u16(vreinterpretq_u16_u8(x)));
}

/* MixColumns (section 5.1.3): 2 x + 3 (row below) + (two below) + (three below). */
NEON_INLINE uint8x16_t mix_columns(uint8x16_t x, uint8x16_t below, uint8x16_t modulus)
{
    const uint8x16_t sum = veorq_u8(x, below);
    return veorq_u8(times_2(sum, modulus), veorq_u8(below, two_rows_below(sum)));
}

NEON_INLINE uint8x16_t encrypt_round(const struct neon_keys *k, uint8x16_t x, uint8x16_t key)
{
    x = look_up(k->box, k->quarter, x);
    return veorq_u8(mix_columns(vqtbl1q_u8(x, k->shift), vqtbl1q_u8(x, k->shift_below), k->modulus), key);
}

/* InvShiftRows, InvSubBytes, AddRoundKey, InvMixColumns. */
NEON_INLINE uint8x16_t decrypt_round(const struct neon_keys *k, uint8x16_t x, uint8x16_t key)
{
    uint8x16_t sum;
    x = veorq_u8(vqtbl1q_u8(look_up(k->box, k->quarter, x), k->shift), key);
    sum = veorq_u8(x, two_rows_below(x));
    x = veorq_u8(x, times_4(sum, k->modulus));
    return mix_columns(x, vqtbl1q_u8(x, k->below), k->modulus);
}

NEON_INLINE uint8x16_t next_key(const uint8_t **at, int decrypting)
{
    const uint8x16_t key = vld1q_u8(*at);
    *at = decrypting ? *at - AES_BLOCK_LEN : *at + AES_BLOCK_LEN;
    return key;
}

NEON_INLINE uint8x16_t one_round(const struct neon_keys *k, uint8x16_t x, uint8x16_t key, int decrypting)
{
    return decrypting ? decrypt_round(k, x, key) : encrypt_round(k, x, key);
}

NEON_INLINE uint8x16_t last_round(const struct neon_keys *k, uint8x16_t x, uint8x16_t key)
{
    return veorq_u8(vqtbl1q_u8(look_up(k->box, k->quarter, x), k->shift), key);
}

NEON_INLINE uint8x16_t crypt_1(const struct neon_keys *k, uint8x16_t x, int decrypting)
{
    const uint8_t *at = k->first;

    x = veorq_u8(x, next_key(&at, decrypting));
    for (uint32_t i = k->num_rounds - 1; i > 0; i--) {
        x = one_round(k, x, next_key(&at, decrypting), decrypting);
    }
    return last_round(k, x, next_key(&at, decrypting));
}

NEON_INLINE void crypt_4(const struct neon_keys *k, uint8x16_t *x, int decrypting)
{
    const uint8_t *at = k->first;
    uint8x16_t key = next_key(&at, decrypting), a, b, c, d;

    a = veorq_u8(x[0], key);
    b = veorq_u8(x[1], key);
    c = veorq_u8(x[2], key);
    d = veorq_u8(x[3], key);
    for (uint32_t i = k->num_rounds - 1; i > 0; i--) {
        key = next_key(&at, decrypting);
        a = one_round(k, a, key, decrypting);
        b = one_round(k, b, key, decrypting);
        c = one_round(k, c, key, decrypting);
        d = one_round(k, d, key, decrypting);
    }
    key = next_key(&at, decrypting);
    x[0] = last_round(k, a, key);
    x[1] = last_round(k, b, key);
    x[2] = last_round(k, c, key);
    x[3] = last_round(k, d, key);
}

/* There are no registers for more than four. */
NEON_INLINE void crypt_8(const struct neon_keys *k, uint8x16_t *x, int decrypting)
{
    crypt_4(k, x, decrypting);
    crypt_4(k, x + 4, decrypting);
}

#include "neon_fused.h"
#include "neon_fused_steal.h"
#include "neon_lrw.h"

static uint32_t sub_word(uint32_t word)
{
    return vgetq_lane_u32(vreinterpretq_u32_u8(look_up(sbox, vdupq_n_u8(64), vreinterpretq_u8_u32(vdupq_n_u32(word)))),
                          0);
}

static int setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    return aes_expand_key(ctx, key, key_len, policy, sub_word);
}

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = AES_BLOCK_LEN,
    .ways = WAYS,
    .ctx_len = sizeof(struct aes_round_keys),
    .ctx_align = _Alignof(struct aes_round_keys),
    .setkey = setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
    .ecb = {ecb_encrypt, ecb_decrypt},
    .cbc = {cbc_encrypt, cbc_decrypt},
    .cfb = {cfb_encrypt, cfb_decrypt},
    .ofb = {ofb_crypt, ofb_crypt},
    .ctr = {ctr_crypt, ctr_crypt},
    .cts_cbc = {cts_cbc_encrypt, cts_cbc_decrypt},
    .xts_encrypt = xts_encrypt,
    .xts_decrypt = xts_decrypt,
    .xts_gb_encrypt = xts_gb_encrypt,
    .xts_gb_decrypt = xts_gb_decrypt,
    .lrw_encrypt = lrw_encrypt,
    .lrw_decrypt = lrw_decrypt,
    .mac_update = mac_update,
    .ghash = neon_gf128_ghash,
};

const struct subject_leaf *aes_aarch64_neon(uint64_t features);

const struct subject_leaf *aes_aarch64_neon(uint64_t features)
{
    return (features & SUBJECT_ARM_NEON) != 0 ? &leaf : NULL;
}
