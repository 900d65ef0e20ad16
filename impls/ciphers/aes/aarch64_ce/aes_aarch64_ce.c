/* SPDX-License-Identifier: Apache-2.0
 *
 * AES (FIPS 197) with the AES instructions of the Armv8 Crypto Extensions.
 *
 * AESE adds a round key, then does SubBytes and ShiftRows; AESMC is MixColumns. So a round here begins with the addition of
 * its key, and the last key is added by itself. AESD and AESIMC do the same for the equivalent inverse cipher of section
 * 5.3.5. All round keys stay in registers; they lie at the end of their arrays, so that shorter keys leave out the first.
 */
#include <arm_neon.h>

#include "aes_keys_neon.h"
#include "neon_ghash.h"
#include "neon_modes.h"

#define NEEDED (SUBJECT_ARM_NEON | SUBJECT_ARM_AES | SUBJECT_ARM_PMULL)

struct aes_ctx {
    struct aes_round_keys encrypt;
    struct aes_round_keys decrypt; /* dw of section 5.3.5, in the order of their use */
};

struct neon_keys {
    uint8x16_t first;                 /* the key of the first round */
    uint8x16_t k[AES_MAX_ROUNDS + 1]; /* by their places in aes_round_keys */
    uint32_t num_rounds;
};

NEON_INLINE struct neon_keys load_keys(const struct aes_round_keys *keys)
{
    struct neon_keys k;
    k.first = vld1q_u8(keys->bytes + (AES_MAX_ROUNDS - keys->num_rounds) * AES_BLOCK_LEN);
    k.k[1] = vld1q_u8(keys->bytes + 1 * AES_BLOCK_LEN);
    k.k[2] = vld1q_u8(keys->bytes + 2 * AES_BLOCK_LEN);
    k.k[3] = vld1q_u8(keys->bytes + 3 * AES_BLOCK_LEN);
    k.k[4] = vld1q_u8(keys->bytes + 4 * AES_BLOCK_LEN);
    k.k[5] = vld1q_u8(keys->bytes + 5 * AES_BLOCK_LEN);
    k.k[6] = vld1q_u8(keys->bytes + 6 * AES_BLOCK_LEN);
    k.k[7] = vld1q_u8(keys->bytes + 7 * AES_BLOCK_LEN);
    k.k[8] = vld1q_u8(keys->bytes + 8 * AES_BLOCK_LEN);
    k.k[9] = vld1q_u8(keys->bytes + 9 * AES_BLOCK_LEN);
    k.k[10] = vld1q_u8(keys->bytes + 10 * AES_BLOCK_LEN);
    k.k[11] = vld1q_u8(keys->bytes + 11 * AES_BLOCK_LEN);
    k.k[12] = vld1q_u8(keys->bytes + 12 * AES_BLOCK_LEN);
    k.k[13] = vld1q_u8(keys->bytes + 13 * AES_BLOCK_LEN);
    k.k[14] = vld1q_u8(keys->bytes + 14 * AES_BLOCK_LEN);
    k.num_rounds = keys->num_rounds;
    return k;
}

NEON_INLINE struct neon_keys encrypt_keys(const void *ctx)
{
    return load_keys(&((const struct aes_ctx *)ctx)->encrypt);
}

NEON_INLINE struct neon_keys decrypt_keys(const void *ctx)
{
    return load_keys(&((const struct aes_ctx *)ctx)->decrypt);
}

/* AddRoundKey, SubBytes, ShiftRows, and MixColumns unless it is the last. */
NEON_INLINE uint8x16_t round_1(uint8x16_t x, uint8x16_t k, int last, int decrypting)
{
    if (decrypting) {
        x = vaesdq_u8(x, k);
        return last ? x : vaesimcq_u8(x);
    }
    x = vaeseq_u8(x, k);
    return last ? x : vaesmcq_u8(x);
}

NEON_INLINE void round_4(uint8x16_t x[4], uint8x16_t k, int last, int decrypting)
{
    x[0] = round_1(x[0], k, last, decrypting);
    x[1] = round_1(x[1], k, last, decrypting);
    x[2] = round_1(x[2], k, last, decrypting);
    x[3] = round_1(x[3], k, last, decrypting);
}

/* `width` blocks side by side: 1, 4 or 8. */
NEON_INLINE void round_some(uint8x16_t *x, size_t width, uint8x16_t k, int last, int decrypting)
{
    if (width == 1) {
        x[0] = round_1(x[0], k, last, decrypting);
        return;
    }
    round_4(x, k, last, decrypting);
    if (width == 8) {
        round_4(x + 4, k, last, decrypting);
    }
}

/* All rounds but the first, without the addition of the last key. */
NEON_INLINE void rounds_after_first(const struct neon_keys *k, uint8x16_t *x, size_t width, int decrypting)
{
    if (k->num_rounds > 10) {
        if (k->num_rounds > 12) {
            round_some(x, width, k->k[1], 0, decrypting);
            round_some(x, width, k->k[2], 0, decrypting);
        }
        round_some(x, width, k->k[3], 0, decrypting);
        round_some(x, width, k->k[4], 0, decrypting);
    }
    round_some(x, width, k->k[5], 0, decrypting);
    round_some(x, width, k->k[6], 0, decrypting);
    round_some(x, width, k->k[7], 0, decrypting);
    round_some(x, width, k->k[8], 0, decrypting);
    round_some(x, width, k->k[9], 0, decrypting);
    round_some(x, width, k->k[10], 0, decrypting);
    round_some(x, width, k->k[11], 0, decrypting);
    round_some(x, width, k->k[12], 0, decrypting);
    round_some(x, width, k->k[13], 1, decrypting);
}

NEON_INLINE void crypt_some(const struct neon_keys *k, uint8x16_t *x, size_t width, int decrypting)
{
    round_some(x, width, k->first, 0, decrypting);
    rounds_after_first(k, x, width, decrypting);
    x[0] = veorq_u8(x[0], k->k[14]);
    if (width >= 4) {
        x[1] = veorq_u8(x[1], k->k[14]);
        x[2] = veorq_u8(x[2], k->k[14]);
        x[3] = veorq_u8(x[3], k->k[14]);
    }
    if (width == 8) {
        x[4] = veorq_u8(x[4], k->k[14]);
        x[5] = veorq_u8(x[5], k->k[14]);
        x[6] = veorq_u8(x[6], k->k[14]);
        x[7] = veorq_u8(x[7], k->k[14]);
    }
}

NEON_INLINE uint8x16_t crypt_1(const struct neon_keys *k, uint8x16_t x, int decrypting)
{
    crypt_some(k, &x, 1, decrypting);
    return x;
}

NEON_INLINE void crypt_4(const struct neon_keys *k, uint8x16_t *x, int decrypting)
{
    crypt_some(k, x, 4, decrypting);
}

NEON_INLINE void crypt_8(const struct neon_keys *k, uint8x16_t *x, int decrypting)
{
    crypt_some(k, x, 8, decrypting);
}

#include "neon_fused.h"
#include "neon_fused_steal.h"
#include "neon_lrw.h"

/* ---- long messages in ctr ------------------------------------------------------------------------------------ */

#define LONG_LEN (16 * BLOCK_LEN)

#define ROUND_BLOCK(n, key) "aese v" #n ".16b, " key ".16b\n\taesmc v" #n ".16b, v" #n ".16b\n\t"
#define LAST_BLOCK(n, key) "aese v" #n ".16b, " key ".16b\n\t"
#define EIGHT(what, key) \
    what(0, key) what(1, key) what(2, key) what(3, key) what(4, key) what(5, key) what(6, key) what(7, key)
/* Four blocks of src under blocks a to d, which lack the last key. */
#define XOR_FOUR(a, b, c, d)                       \
    "ld1 {v16.16b-v19.16b}, [%[src]], #64\n\t"     \
    "eor v" #a ".16b, v" #a ".16b, %[k14].16b\n\t" \
    "eor v" #b ".16b, v" #b ".16b, %[k14].16b\n\t" \
    "eor v" #c ".16b, v" #c ".16b, %[k14].16b\n\t" \
    "eor v" #d ".16b, v" #d ".16b, %[k14].16b\n\t" \
    "eor v16.16b, v16.16b, v" #a ".16b\n\t"        \
    "eor v17.16b, v17.16b, v" #b ".16b\n\t"        \
    "eor v18.16b, v18.16b, v" #c ".16b\n\t"        \
    "eor v19.16b, v19.16b, v" #d ".16b\n\t"        \
    "st1 {v16.16b-v19.16b}, [%[dst]], #64\n\t"

/* num_steps (1 or more) times eight blocks, the counters of which differ from iv, that of the first, in the last byte alone;
 * its last three bits are zero. So counter i of a step is iv xor i, and the first round, which begins with an addition, takes
 * the sum of its key and i as what it adds to. Assembly, since gcc moves groups of four registers by way of the stack. */
NEON_INLINE void ctr_steps(const struct neon_keys *k, uint8_t *dst, const uint8_t *src, size_t num_steps,
                           const uint8_t *iv, const uint8_t sums[WIDE_LEN])
{
    const uint8x16_t eight = vsetq_lane_u8(WAYS, vdupq_n_u8(0), 15);
    const uint32_t num_more = k->num_rounds - 10;
    uint8x16_t counter = vld1q_u8(iv);

    SUBJECT_PATH("8way");
    /* clang-format off */
    __asm__ volatile(
        "1:\n\t"
        "ld1 {v0.16b-v3.16b}, [%[sums]]\n\t"
        "ld1 {v4.16b-v7.16b}, [%[more_sums]]\n\t"
        EIGHT(ROUND_BLOCK, "%[counter]")
        "cbz %w[num_more], 3f\n\t"
        "tbz %w[num_more], #2, 2f\n\t"
        EIGHT(ROUND_BLOCK, "%[k1]")
        EIGHT(ROUND_BLOCK, "%[k2]")
        "2:\n\t"
        EIGHT(ROUND_BLOCK, "%[k3]")
        EIGHT(ROUND_BLOCK, "%[k4]")
        "3:\n\t"
        EIGHT(ROUND_BLOCK, "%[k5]")
        EIGHT(ROUND_BLOCK, "%[k6]")
        EIGHT(ROUND_BLOCK, "%[k7]")
        EIGHT(ROUND_BLOCK, "%[k8]")
        EIGHT(ROUND_BLOCK, "%[k9]")
        EIGHT(ROUND_BLOCK, "%[k10]")
        EIGHT(ROUND_BLOCK, "%[k11]")
        EIGHT(ROUND_BLOCK, "%[k12]")
        EIGHT(LAST_BLOCK, "%[k13]")
        XOR_FOUR(0, 1, 2, 3)
        XOR_FOUR(4, 5, 6, 7)
        "add %[counter].16b, %[counter].16b, %[eight].16b\n\t"
        "subs %[num_steps], %[num_steps], #1\n\t"
        "b.ne 1b"
        : [dst] "+r"(dst), [src] "+r"(src), [num_steps] "+r"(num_steps), [counter] "+w"(counter)
        : [sums] "r"(sums), [more_sums] "r"(sums + WIDE_LEN / 2), [eight] "w"(eight), [num_more] "r"(num_more),
          [k1] "w"(k->k[1]), [k2] "w"(k->k[2]), [k3] "w"(k->k[3]), [k4] "w"(k->k[4]), [k5] "w"(k->k[5]),
          [k6] "w"(k->k[6]), [k7] "w"(k->k[7]), [k8] "w"(k->k[8]), [k9] "w"(k->k[9]), [k10] "w"(k->k[10]),
          [k11] "w"(k->k[11]), [k12] "w"(k->k[12]), [k13] "w"(k->k[13]), [k14] "w"(k->k[14])
        : "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19");
    /* clang-format on */
}

static inline void counter_add(uint8_t *iv, uint64_t n)
{
    const uint64_t low = load_be64(iv + 8);

    store_be64(iv + 8, low + n);
    store_be64(iv, load_be64(iv) + (low + n < n));
}

static void ctr_crypt_long(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct neon_keys k = encrypt_keys(ctx);
    uint8_t sums[WIDE_LEN];

    for (uint8_t i = 0; i < WAYS; i++) {
        vst1q_u8(sums + i * BLOCK_LEN, veorq_u8(k.first, vsetq_lane_u8(i, vdupq_n_u8(0), 15)));
    }
    while (len >= WIDE_LEN) {
        const size_t num_steps = at_most(len / WIDE_LEN, (256u - iv[BLOCK_LEN - 1]) / WAYS);
        ctr_steps(&k, dst, src, num_steps, iv, sums);
        counter_add(iv, num_steps * WAYS);
        dst += num_steps * WIDE_LEN;
        src += num_steps * WIDE_LEN;
        len -= num_steps * WIDE_LEN;
    }
    if (len > 0) {
        ctr_crypt(ctx, dst, src, len, iv);
    }
}

/* The blocks up to a counter that is a multiple of eight go first. */
static void ctr_crypt_any(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    size_t first_len = len;

    if (len >= LONG_LEN) {
        first_len = (WAYS - iv[BLOCK_LEN - 1] % WAYS) % WAYS * BLOCK_LEN;
    }
    if (first_len > 0) {
        ctr_crypt(ctx, dst, src, first_len, iv);
    }
    if (first_len < len) {
        ctr_crypt_long(ctx, dst + first_len, src + first_len, len - first_len, iv);
    }
}

/* SubWord, section 5.2: where the four columns are the same ShiftRows changes nothing. */
static uint32_t sub_word(uint32_t word)
{
    const uint8x16_t x = vaeseq_u8(vreinterpretq_u8_u32(vdupq_n_u32(word)), vdupq_n_u8(0));
    return vgetq_lane_u32(vreinterpretq_u32_u8(x), 0);
}

static int setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct aes_ctx *c = ctx;
    const int status = aes_expand_key(&c->encrypt, key, key_len, policy, sub_word);

    if (status == SUBJECT_OK) {
        const uint32_t first = AES_MAX_ROUNDS - c->encrypt.num_rounds;
        memset(&c->decrypt, 0, sizeof(c->decrypt));
        c->decrypt.num_rounds = c->encrypt.num_rounds;
        for (uint32_t i = first; i <= AES_MAX_ROUNDS; i++) {
            const uint8x16_t k = vld1q_u8(aes_round_key(&c->encrypt, first + AES_MAX_ROUNDS - i));
            vst1q_u8(aes_round_key(&c->decrypt, i), i == first || i == AES_MAX_ROUNDS ? k : vaesimcq_u8(k));
        }
    }
    return status;
}

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = AES_BLOCK_LEN,
    .ways = WAYS,
    .ctx_len = sizeof(struct aes_ctx),
    .ctx_align = _Alignof(struct aes_ctx),
    .setkey = setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
    .ecb = {ecb_encrypt, ecb_decrypt},
    .cbc = {cbc_encrypt, cbc_decrypt},
    .cfb = {cfb_encrypt, cfb_decrypt},
    .ofb = {ofb_crypt, ofb_crypt},
    .ctr = {ctr_crypt_any, ctr_crypt_any},
    .cts_cbc = {cts_cbc_encrypt, cts_cbc_decrypt},
    .xts_encrypt = xts_encrypt,
    .xts_decrypt = xts_decrypt,
    .xts_gb_encrypt = xts_gb_encrypt,
    .xts_gb_decrypt = xts_gb_decrypt,
    .lrw_encrypt = lrw_encrypt,
    .lrw_decrypt = lrw_decrypt,
    .mac_update = mac_update,
    .ghash = neon_ghash,
};

const struct subject_leaf *aes_aarch64_ce(uint64_t features);

const struct subject_leaf *aes_aarch64_ce(uint64_t features)
{
    return (features & NEEDED) == NEEDED ? &leaf : NULL;
}
