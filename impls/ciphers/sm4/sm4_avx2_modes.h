/* SPDX-License-Identifier: Apache-2.0
 *
 * ECB, CBC and CFB decryption, CTR and both XTS over the groups of sm4_avx2.h, which comes first.
 *
 * A step takes WAYS blocks. What is left at the end, from two blocks on, goes through a buffer on the stack as one more
 * step, so that no more than the message is touched; the last single block goes by itself.
 */
#ifndef SM4_AVX2_MODES_H
#define SM4_AVX2_MODES_H

static inline void ecb_step(const struct schedule *keys, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    __m256i v[WIDE_VECS];

    load_blocks(v, src);
    transpose_groups(v);
    crypt_words(keys, v, num_blocks);
    transpose_groups(v);
    store_blocks(dst, v);
}

static void ecb_crypt(struct schedule keys, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (; num_blocks >= WAYS; num_blocks -= WAYS) {
        ecb_step(&keys, dst, src, WAYS);
        dst += WIDE_LEN;
        src += WIDE_LEN;
    }
    if (num_blocks > 1) {
        uint8_t buffer[WIDE_LEN] = {0};
        memcpy(buffer, src, num_blocks * BLOCK_LEN);
        ecb_step(&keys, buffer, buffer, num_blocks);
        memcpy(dst, buffer, num_blocks * BLOCK_LEN);
    } else if (num_blocks == 1) {
        crypt_one(&keys, dst, src);
    }
}

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    ecb_crypt(schedule_of(ctx, 0), dst, src, num_blocks);
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    ecb_crypt(schedule_of(ctx, 1), dst, src, num_blocks);
}

static void ecb_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    (void)iv;
    ecb_crypt(schedule_of(ctx, 0), dst, src, len / BLOCK_LEN);
}

static void ecb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    (void)iv;
    ecb_crypt(schedule_of(ctx, 1), dst, src, len / BLOCK_LEN);
}

/* The blocks that come one before those of src: the chain, then all of src but its last. */
static inline void load_blocks_before(__m256i v[WIDE_VECS], const uint8_t *chain, const uint8_t *src)
{
    v[0] = _mm256_inserti128_si256(_mm256_castsi128_si256(load_block(chain)), load_block(src), 1);
    v[1] = load(src + VEC_LEN - BLOCK_LEN);
    v[2] = load(src + 2 * VEC_LEN - BLOCK_LEN);
    v[3] = load(src + 3 * VEC_LEN - BLOCK_LEN);
    v[4] = load(src + 4 * VEC_LEN - BLOCK_LEN);
    v[5] = load(src + 5 * VEC_LEN - BLOCK_LEN);
    v[6] = load(src + 6 * VEC_LEN - BLOCK_LEN);
    v[7] = load(src + 7 * VEC_LEN - BLOCK_LEN);
}

/* All ciphertext that is still wanted is read before the first store: dst may be src. */
static inline void cbc_step(const struct schedule *keys, uint8_t *dst, const uint8_t *src, size_t num_blocks,
                            uint8_t chain[BLOCK_LEN])
{
    __m256i v[WIDE_VECS], before[WIDE_VECS];

    load_blocks(v, src);
    transpose_groups(v);
    crypt_words(keys, v, num_blocks);
    transpose_groups(v);
    load_blocks_before(before, chain, src);
    xor_vecs(v, before);
    memcpy(chain, src + (num_blocks - 1) * BLOCK_LEN, BLOCK_LEN);
    store_blocks(dst, v);
}

static void cbc_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct schedule keys = schedule_of(ctx, 1);
    size_t num_blocks = len / BLOCK_LEN;

    for (; num_blocks >= WAYS; num_blocks -= WAYS) {
        cbc_step(&keys, dst, src, WAYS, iv);
        dst += WIDE_LEN;
        src += WIDE_LEN;
    }
    if (num_blocks > 1) {
        uint8_t buffer[WIDE_LEN] = {0};
        memcpy(buffer, src, num_blocks * BLOCK_LEN);
        cbc_step(&keys, buffer, buffer, num_blocks, iv);
        memcpy(dst, buffer, num_blocks * BLOCK_LEN);
    } else if (num_blocks == 1) {
        uint8_t block[BLOCK_LEN];
        crypt_one(&keys, block, src);
        xor_bytes(block, block, iv, BLOCK_LEN);
        memcpy(iv, src, BLOCK_LEN);
        memcpy(dst, block, BLOCK_LEN);
    }
}

/* The keystream of num_blocks blocks of CFB is the cipher of those one before them. */
static inline void cfb_step(const struct schedule *keys, uint8_t *dst, const uint8_t *src, size_t num_blocks,
                            const uint8_t chain[BLOCK_LEN])
{
    __m256i v[WIDE_VECS], ciphertext[WIDE_VECS];

    load_blocks_before(v, chain, src);
    transpose_groups(v);
    crypt_words(keys, v, num_blocks);
    transpose_groups(v);
    load_blocks(ciphertext, src);
    xor_vecs(v, ciphertext);
    store_blocks(dst, v);
}

/* The iv becomes the last whole block of ciphertext. */
static void cfb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct schedule keys = schedule_of(ctx, 0);
    uint8_t last[BLOCK_LEN];

    for (; len >= WIDE_LEN; len -= WIDE_LEN) {
        memcpy(last, src + WIDE_LEN - BLOCK_LEN, BLOCK_LEN);
        cfb_step(&keys, dst, src, WAYS, iv);
        memcpy(iv, last, BLOCK_LEN);
        dst += WIDE_LEN;
        src += WIDE_LEN;
    }
    memcpy(last, len < BLOCK_LEN ? iv : src + (len / BLOCK_LEN - 1) * BLOCK_LEN, BLOCK_LEN);
    if (len > BLOCK_LEN) {
        uint8_t buffer[WIDE_LEN] = {0};
        memcpy(buffer, src, len);
        cfb_step(&keys, buffer, buffer, (len + BLOCK_LEN - 1) / BLOCK_LEN, iv);
        memcpy(dst, buffer, len);
    } else if (len > 0) {
        uint8_t keystream[BLOCK_LEN];
        crypt_one(&keys, keystream, iv);
        xor_bytes(dst, src, keystream, len);
    }
    memcpy(iv, last, BLOCK_LEN);
}

/* The counter as two host integers. */
struct counter {
    uint64_t high, low;
};

static inline void counter_store(uint8_t *block, const struct counter *counter)
{
    store_be64(block, counter->high);
    store_be64(block + 8, counter->low);
}

static inline void counter_add(struct counter *counter, uint64_t n)
{
    counter->low += n;
    counter->high += counter->low < n;
}

/* WAYS counters as words. Where the least significant word carries nowhere, the other three are the same in all. */
static inline void counter_words(__m256i v[WIDE_VECS], struct counter counter)
{
    uint8_t blocks[WIDE_LEN];

    if ((uint32_t)counter.low <= UINT32_MAX - (WAYS - 1)) {
        const __m256i low =
            _mm256_add_epi32(broadcast((uint32_t)counter.low), _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
        counter_store(blocks, &counter);
        v[0] = v[4] = broadcast(load_le32(blocks));
        v[1] = v[5] = broadcast(load_le32(blocks + 4));
        v[2] = v[6] = broadcast(load_le32(blocks + 8));
        v[3] = permute(low, swap_words);
        v[7] = permute(_mm256_add_epi32(low, broadcast(GROUP)), swap_words);
    } else {
        SUBJECT_PATH("ctr_wrap");
        for (unsigned i = 0; i < WAYS; i++) {
            counter_store(blocks + i * BLOCK_LEN, &counter);
            counter_add(&counter, 1);
        }
        load_blocks(v, blocks);
        transpose_groups(v);
    }
}

/* All but a last block that is alone; returns how many bytes that is. */
static size_t ctr_wide(const struct schedule *keys, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    struct counter counter = {load_be64(iv), load_be64(iv + 8)};
    size_t done = 0;
    __m256i v[WIDE_VECS];

    for (; len - done >= WIDE_LEN; done += WIDE_LEN) {
        __m256i text[WIDE_VECS];
        counter_words(v, counter);
        crypt_words(keys, v, WAYS);
        transpose_groups(v);
        load_blocks(text, src + done);
        xor_vecs(v, text);
        store_blocks(dst + done, v);
        counter_add(&counter, WAYS);
    }
    if (len - done > BLOCK_LEN) {
        uint8_t keystream[WIDE_LEN];
        const size_t num_blocks = (len - done + BLOCK_LEN - 1) / BLOCK_LEN;
        counter_words(v, counter);
        crypt_words(keys, v, num_blocks);
        transpose_groups(v);
        store_blocks(keystream, v);
        xor_bytes(dst + done, src + done, keystream, len - done);
        counter_add(&counter, num_blocks);
        done = len;
    }
    counter_store(iv, &counter);
    return done;
}

static void ctr_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct schedule keys = schedule_of(ctx, 0);
    const size_t done = len > BLOCK_LEN ? ctr_wide(&keys, dst, src, len, iv) : 0;

    if (done < len) {
        uint8_t keystream[BLOCK_LEN];
        crypt_one(&keys, keystream, iv);
        xor_bytes(dst + done, src + done, keystream, len - done);
        increment_be(iv, BLOCK_LEN);
    }
}

/* The two bit orders of a tweak: IEEE Std 1619 has the lowest coefficient of a byte in bit 0, GB/T 17964 in bit 7. */
enum bit_order { IEEE, GB };

static inline void tweak_double(uint8_t tweak[BLOCK_LEN], enum bit_order order)
{
    if (order == IEEE) {
        const uint64_t low = load_le64(tweak), high = load_le64(tweak + 8);
        store_le64(tweak, (low << 1) ^ (UINT64_C(0x87) & (0 - (high >> 63))));
        store_le64(tweak + 8, (high << 1) | (low >> 63));
    } else {
        const uint64_t low = load_be64(tweak), high = load_be64(tweak + 8);
        store_be64(tweak, (low >> 1) ^ ((UINT64_C(0xe1) << 56) & (0 - (high & 1))));
        store_be64(tweak + 8, (high >> 1) | (low << 63));
    }
}

/* x^WAYS times each tweak of a group, as words: in both orders their bytes move up by two places, and the two that leave
 * come back at the bottom, times x^7 + x^2 + x + 1. */
static inline void tweaks_advance(__m256i t[GROUP_VECS], enum bit_order order)
{
    __m256i out;

    if (order == IEEE) {
        const __m256i v = _mm256_srli_epi32(t[3], 32 - WAYS);
        out = _mm256_xor_si256(_mm256_xor_si256(v, _mm256_slli_epi32(v, 1)),
                               _mm256_xor_si256(_mm256_slli_epi32(v, 2), _mm256_slli_epi32(v, 7)));
    } else {
        const __m256i v = _mm256_slli_epi32(permute(t[3], swap_words), 32 - WAYS);
        out = _mm256_xor_si256(_mm256_xor_si256(v, _mm256_srli_epi32(v, 1)),
                               _mm256_xor_si256(_mm256_srli_epi32(v, 2), _mm256_srli_epi32(v, 7)));
        out = permute(out, swap_words);
    }
    t[3] = _mm256_or_si256(_mm256_slli_epi32(t[3], WAYS), _mm256_srli_epi32(t[2], 32 - WAYS));
    t[2] = _mm256_or_si256(_mm256_slli_epi32(t[2], WAYS), _mm256_srli_epi32(t[1], 32 - WAYS));
    t[1] = _mm256_or_si256(_mm256_slli_epi32(t[1], WAYS), _mm256_srli_epi32(t[0], 32 - WAYS));
    t[0] = _mm256_xor_si256(_mm256_slli_epi32(t[0], WAYS), out);
}

/* Xor tweak, through the cipher, xor tweak: a step with the tweaks as words. */
static inline void masked_step(const struct schedule *keys, uint8_t *dst, const uint8_t *src,
                               const __m256i t[WIDE_VECS], size_t num_blocks)
{
    __m256i v[WIDE_VECS];

    load_blocks(v, src);
    transpose_groups(v);
    xor_vecs(v, t);
    crypt_words(keys, v, num_blocks);
    xor_vecs(v, t);
    transpose_groups(v);
    store_blocks(dst, v);
}

static inline void masked_block(const struct schedule *keys, uint8_t *dst, const uint8_t *src, const uint8_t *tweak)
{
    uint8_t block[BLOCK_LEN];

    xor_bytes(block, src, tweak, BLOCK_LEN);
    crypt_one(keys, block, block);
    xor_bytes(dst, block, tweak, BLOCK_LEN);
}

/* The last blocks, fewer than WAYS; the tweaks of WAYS blocks lie behind each other. */
static inline void masked_rest(const struct schedule *keys, uint8_t *dst, const uint8_t *src, const uint8_t *tweaks,
                               size_t num_blocks)
{
    if (num_blocks > 1) {
        uint8_t buffer[WIDE_LEN] = {0};
        __m256i t[WIDE_VECS];
        memcpy(buffer, src, num_blocks * BLOCK_LEN);
        load_blocks(t, tweaks);
        transpose_groups(t);
        masked_step(keys, buffer, buffer, t, num_blocks);
        memcpy(dst, buffer, num_blocks * BLOCK_LEN);
    } else if (num_blocks == 1) {
        masked_block(keys, dst, src, tweaks);
    }
}

/* The tweak of the first block becomes that of the block behind the last. */
static inline void xts_blocks(const struct schedule *keys, uint8_t *dst, const uint8_t *src, size_t num_blocks,
                              uint8_t tweak[BLOCK_LEN], enum bit_order order)
{
    uint8_t tweaks[WIDE_LEN] = {0};

    for (size_t i = 0; i < WAYS && i <= num_blocks; i++) {
        memcpy(tweaks + i * BLOCK_LEN, tweak, BLOCK_LEN);
        tweak_double(tweak, order);
    }
    if (num_blocks >= WAYS) {
        __m256i t[WIDE_VECS];
        load_blocks(t, tweaks);
        transpose_groups(t);
        for (; num_blocks >= WAYS; num_blocks -= WAYS) {
            masked_step(keys, dst, src, t, WAYS);
            tweaks_advance(t, order);
            tweaks_advance(t + GROUP_VECS, order);
            dst += WIDE_LEN;
            src += WIDE_LEN;
        }
        transpose_groups(t);
        store_blocks(tweaks, t);
    }
    masked_rest(keys, dst, src, tweaks, num_blocks);
    memcpy(tweak, tweaks + num_blocks * BLOCK_LEN, BLOCK_LEN);
}

/* IEEE Std 1619, 5.3.2 and 5.4.2: the last whole block and the tail_len bytes behind it. Decryption takes the last two
 * tweaks in the other order. All of src is read before the same place of dst is written. */
static inline void xts_steal(const struct schedule *keys, uint8_t *dst, const uint8_t *src, size_t tail_len,
                             const uint8_t tweak[BLOCK_LEN], enum bit_order order, int decrypting)
{
    uint8_t next[BLOCK_LEN], first[BLOCK_LEN], second[BLOCK_LEN];

    memcpy(next, tweak, BLOCK_LEN);
    tweak_double(next, order);
    masked_block(keys, first, src, decrypting ? next : tweak);
    memcpy(second, src + BLOCK_LEN, tail_len);
    memcpy(second + tail_len, first + tail_len, BLOCK_LEN - tail_len);
    memcpy(dst + BLOCK_LEN, first, tail_len);
    masked_block(keys, dst, second, decrypting ? tweak : next);
}

static inline void xts_crypt(const void *ctx, const struct sm4_ctx *tweak_ctx, uint8_t *dst, const uint8_t *src,
                             size_t len, const uint8_t *iv, enum bit_order order, int decrypting)
{
    const struct schedule keys = schedule_of(ctx, decrypting);
    const size_t tail_len = len % BLOCK_LEN;
    const size_t num_blocks = len / BLOCK_LEN - (tail_len != 0);
    uint8_t tweak[BLOCK_LEN];

    if (len < BLOCK_LEN) {
        return;
    }
    crypt_block(tweak_ctx->plain.encrypt, tweak, iv);
    xts_blocks(&keys, dst, src, num_blocks, tweak, order);
    if (tail_len != 0) {
        const size_t done = num_blocks * BLOCK_LEN;
        xts_steal(&keys, dst + done, src + done, tail_len, tweak, order, decrypting);
    }
}

static void xts_encrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                        const uint8_t *iv)
{
    xts_crypt(ctx, tweak_ctx, dst, src, len, iv, IEEE, 0);
}

static void xts_decrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                        const uint8_t *iv)
{
    xts_crypt(ctx, tweak_ctx, dst, src, len, iv, IEEE, 1);
}

static void xts_gb_encrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                           const uint8_t *iv)
{
    xts_crypt(ctx, tweak_ctx, dst, src, len, iv, GB, 0);
}

static void xts_gb_decrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                           const uint8_t *iv)
{
    xts_crypt(ctx, tweak_ctx, dst, src, len, iv, GB, 1);
}

#endif
