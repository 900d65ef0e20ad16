/* SPDX-License-Identifier: Apache-2.0
 *
 * XTS and LRW: each block is masked before the cipher and behind it.
 *
 * Elements of GF(2^128) modulo x^128 + x^7 + x^2 + x + 1 are numbers of 128 bits, bit i the coefficient of x^i.
 */
#ifndef AES_X86_TWEAKED_H
#define AES_X86_TWEAKED_H

#include "aes_x86_ctr.h"
#include "aes_x86_wide.h"

/* x^128. */
ALWAYS_INLINE __m128i folded(void)
{
    return _mm_set_epi64x(0, 0x87);
}

ALWAYS_INLINE void masked_step(const struct aes_ctx *c, struct text *t, const vec *masks, unsigned n, int decrypting)
{
    vec v[WIDE_VECS];

    UNROLL
    for (unsigned i = 0; i < n; i++) {
        v[i] = vec_xor(masks[i], vec_load(t->src + i * VEC_LEN));
    }
    crypt_vecs(c, v, n, decrypting);
    UNROLL
    for (unsigned i = 0; i < n; i++) {
        v[i] = vec_xor(v[i], masks[i]);
    }
    store_vecs(t->dst, v, n);
    text_skip(t, n * VEC_LEN);
}

ALWAYS_INLINE __m128i masked_block(const struct aes_ctx *c, __m128i block, __m128i mask, int decrypting)
{
    return block_xor(crypt_block(c, block_xor(block, mask), decrypting), mask);
}

/* ---- XTS, IEEE Std 1619, and as GB/T 17964-2021 has it -------------------------------------------------------- */

/* a * x^n, n up to 56: the bits that leave a half go to the other one, those of the upper half times x^128. That product
 * fills no more than a half. */
ALWAYS_INLINE vec times_x(vec a, unsigned n)
{
    const vec out = vec_shr64(a, (int)(64 - n)), back = vec_clmul(out, vec_number(0, 0x87), 0x01);

    return vec_xor(vec_shl64(a, (int)n), vec_low_halves(back, out));
}

/* The bits of each byte in the other order. */
ALWAYS_INLINE vec reverse_bits(vec v)
{
    const vec nibble = vec_number(UINT64_C(0x0f0f0f0f0f0f0f0f), UINT64_C(0x0f0f0f0f0f0f0f0f));
    const __m128i reversed = _mm_setr_epi8(0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15);
    const vec low = vec_shuffle8(vec_broadcast(_mm_slli_epi16(reversed, 4)), vec_and(v, nibble));
    const vec high = vec_shuffle8(vec_broadcast(reversed), vec_and(vec_shr64(v, 4), nibble));

    return vec_or(low, high);
}

/* The standards differ in the order of bits within each byte of a tweak: `gb` is the other one. */
ALWAYS_INLINE vec xts_mask(vec tweak, int gb)
{
    return gb ? reverse_bits(tweak) : tweak;
}

/* `tweaks` holds those of the next blocks, as elements. */
ALWAYS_INLINE void xts_step(const struct aes_ctx *c, struct text *t, vec *tweaks, unsigned n, int decrypting, int gb)
{
    vec masks[WIDE_VECS];

    masks[0] = xts_mask(*tweaks, gb);
    UNROLL
    for (unsigned i = 1; i < n; i++) {
        masks[i] = xts_mask(times_x(*tweaks, i * VEC_BLOCKS), gb);
    }
    *tweaks = times_x(*tweaks, n * VEC_BLOCKS);
    masked_step(c, t, masks, n, decrypting);
}

/* Sections 5.3.2 and 5.4.2: the last whole block and the tail_len bytes behind it. Decryption takes the last two tweaks
 * in the other order. All of src is read before the same place of dst is written. */
ALWAYS_INLINE void xts_steal(const struct aes_ctx *c, struct text t, size_t tail_len, vec tweaks, int decrypting,
                             int gb)
{
    const __m128i here = vec_first(xts_mask(tweaks, gb)), next = vec_first(xts_mask(times_x(tweaks, 1), gb));
    uint8_t first[BLOCK_LEN], second[BLOCK_LEN];

    block_store(first, masked_block(c, block_load(t.src), decrypting ? next : here, decrypting));
    memcpy(second, t.src + BLOCK_LEN, tail_len);
    memcpy(second + tail_len, first + tail_len, BLOCK_LEN - tail_len);
    memcpy(t.dst + BLOCK_LEN, first, tail_len);
    block_store(t.dst, masked_block(c, block_load(second), decrypting ? here : next, decrypting));
}

ALWAYS_INLINE void xts_crypt(const struct aes_ctx *c, const struct aes_ctx *tweak_ctx, uint8_t *dst, const uint8_t *src,
                             size_t len, const uint8_t *iv, int decrypting, int gb)
{
    size_t tail_len = len % BLOCK_LEN, num_blocks = len / BLOCK_LEN - (tail_len != 0);
    struct text t = {dst, src};
    vec tweaks;

    if (len < BLOCK_LEN) {
        return;
    }
    tweaks = xts_mask(vec_broadcast(encrypt_block(tweak_ctx, block_load(iv))), gb);
    if (num_blocks > 1) {
        tweaks = vec_spread(tweaks, times_x(tweaks, 1));
    }
#define STEP(n) xts_step(c, &t, &tweaks, n, decrypting, gb)
    EACH_STEP(num_blocks, STEP)
#undef STEP
    if (num_blocks > 0) {
        const __m128i mask = vec_first(xts_mask(tweaks, gb));
        block_store(t.dst, masked_block(c, block_load(t.src), mask, decrypting));
        tweaks = times_x(tweaks, 1);
        text_skip(&t, BLOCK_LEN);
    }
    if (tail_len != 0) {
        xts_steal(c, t, tail_len, tweaks, decrypting, gb);
    }
}

static void xts_encrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                        const uint8_t *iv)
{
    xts_crypt(ctx, tweak_ctx, dst, src, len, iv, 0, 0);
}

static void xts_decrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                        const uint8_t *iv)
{
    xts_crypt(ctx, tweak_ctx, dst, src, len, iv, 1, 0);
}

static void xts_gb_encrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                           const uint8_t *iv)
{
    xts_crypt(ctx, tweak_ctx, dst, src, len, iv, 0, 1);
}

static void xts_gb_decrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                           const uint8_t *iv)
{
    xts_crypt(ctx, tweak_ctx, dst, src, len, iv, 1, 1);
}

/* ---- LRW, drafts of IEEE P1619 -------------------------------------------------------------------------------- */

/* a * b. Of the product's upper half the upper half is folded first, which gives its lower half up to seven bits. */
ALWAYS_INLINE __m128i multiply(__m128i a, __m128i b)
{
    __m128i low = _mm_clmulepi64_si128(a, b, 0x00), high = _mm_clmulepi64_si128(a, b, 0x11);
    const __m128i middle = block_xor(_mm_clmulepi64_si128(a, b, 0x01), _mm_clmulepi64_si128(a, b, 0x10));
    __m128i fold;

    low = block_xor(low, _mm_slli_si128(middle, 8));
    high = block_xor(high, _mm_srli_si128(middle, 8));
    fold = _mm_clmulepi64_si128(high, folded(), 0x01);
    low = block_xor(low, _mm_slli_si128(fold, 8));
    high = block_xor(high, _mm_srli_si128(fold, 8));
    return block_xor(low, _mm_clmulepi64_si128(high, folded(), 0x00));
}

/* The tweak of a block as it masks it. */
ALWAYS_INLINE __m128i lrw_tweak(__m128i key2, struct counter index)
{
    return block_swap(multiply(key2, counter_number(index)));
}

ALWAYS_INLINE void lrw_step(const struct aes_ctx *c, struct text *t, __m128i key2, struct counter *index, unsigned n,
                            int decrypting)
{
    uint8_t tweaks[WIDE_VECS * VEC_LEN];
    vec masks[WIDE_VECS];

    for (unsigned i = 0; i < n * VEC_BLOCKS; i++) {
        block_store(tweaks + i * BLOCK_LEN, lrw_tweak(key2, counter_plus(*index, i)));
    }
    *index = counter_plus(*index, n * VEC_BLOCKS);
    load_vecs(masks, tweaks, n);
    masked_step(c, t, masks, n, decrypting);
}

#define LRW_CHANGES 8u

/* What WAYS tweaks from some index on are made of. The index is a multiple of WAYS, the base, and a rest, which stays
 * the same from step to step. Up to some block the tweaks are key2 * base + key2 * (rest + i); from there on rest + i
 * reaches into the next base. With k trailing ones in base / WAYS that differs by key2 * WAYS * (2^(k + 1) - 1). The
 * index is public: it may steer branches and addresses. */
struct lrw_wide {
    vec rest[WIDE_VECS];          /* key2 * ((rest + i) mod WAYS) */
    vec over[WIDE_VECS];          /* all ones where block i belongs to the next base */
    __m128i changes[LRW_CHANGES]; /* by k */
    __m128i base;                 /* key2 * base */
};

static void lrw_wide_start(struct lrw_wide *w, __m128i key2, struct counter index)
{
    uint8_t rest[WIDE_VECS * VEC_LEN], over[WIDE_VECS * VEC_LEN];
    const unsigned first = (unsigned)index.low % WAYS;
    vec power = vec_broadcast(key2);
    __m128i sum = _mm_setzero_si128();

    /* n * key2 lies where block i with (first + i) mod WAYS = n takes it; that of n + k is that of n and of k. */
    block_store(rest + (WAYS - first) % WAYS * BLOCK_LEN, sum);
    for (unsigned k = 1; k < WAYS; k *= 2) {
        const __m128i times_k = block_swap(vec_first(power));
        for (unsigned n = 0; n < k; n++) {
            const __m128i times_n = block_load(rest + (WAYS - first + n) % WAYS * BLOCK_LEN);
            block_store(rest + (WAYS - first + n + k) % WAYS * BLOCK_LEN, block_xor(times_n, times_k));
        }
        power = times_x(power, 1);
    }
    for (unsigned k = 0; k < LRW_CHANGES; k++) {
        sum = block_xor(sum, block_swap(vec_first(power)));
        w->changes[k] = sum;
        power = times_x(power, 1);
    }
    for (unsigned i = 0; i < WAYS; i++) {
        block_store(over + i * BLOCK_LEN, _mm_set1_epi8(first + i < WAYS ? 0 : -1));
    }
    load_vecs(w->rest, rest, WIDE_VECS);
    load_vecs(w->over, over, WIDE_VECS);
    w->base = lrw_tweak(key2, (struct counter){index.high, index.low - first});
}

/* From the base of `index` to the next. */
ALWAYS_INLINE __m128i lrw_change(const struct lrw_wide *w, __m128i key2, struct counter index)
{
    const uint64_t zeros = ~index.low / WAYS % (1u << LRW_CHANGES);

    if (zeros != 0) {
        return w->changes[__builtin_ctzll(zeros)];
    }
    index = counter_plus(index, WAYS);
    return block_xor(w->base, lrw_tweak(key2, (struct counter){index.high, index.low / WAYS * WAYS}));
}

ALWAYS_INLINE void lrw_wide_step(const struct aes_ctx *c, struct text *t, struct lrw_wide *w, __m128i key2,
                                 struct counter *index, int decrypting)
{
    const __m128i change = lrw_change(w, key2, *index);
    const vec base = vec_broadcast(w->base), next = vec_broadcast(change);
    vec masks[WIDE_VECS];

    UNROLL
    for (unsigned i = 0; i < WIDE_VECS; i++) {
        masks[i] = vec_xor(vec_xor(w->rest[i], base), vec_and(w->over[i], next));
    }
    w->base = block_xor(w->base, change);
    *index = counter_plus(*index, WAYS);
    masked_step(c, t, masks, WIDE_VECS, decrypting);
}

ALWAYS_INLINE void lrw_crypt(const struct aes_ctx *c, const uint8_t *key2, uint8_t *dst, const uint8_t *src, size_t len,
                             uint8_t *iv, int decrypting)
{
    const __m128i k = block_swap(block_load(key2));
    size_t num_blocks = len / BLOCK_LEN;
    struct text t = {dst, src};
    struct counter index = counter_load(iv);

    if (num_blocks >= WAYS) {
        struct lrw_wide w;
        lrw_wide_start(&w, k, index);
        for (; num_blocks >= WAYS; num_blocks -= WAYS) {
            SUBJECT_PATH("wide");
            lrw_wide_step(c, &t, &w, k, &index, decrypting);
        }
    }
#define STEP(n) lrw_step(c, &t, k, &index, n, decrypting)
    EACH_NARROW_STEP(num_blocks, STEP)
#undef STEP
    if (num_blocks > 0) {
        block_store(t.dst, masked_block(c, block_load(t.src), lrw_tweak(k, index), decrypting));
        index = counter_plus(index, 1);
    }
    counter_store(iv, index);
}

static void lrw_encrypt(const void *ctx, const uint8_t *key2, uint8_t *dst, const uint8_t *src, size_t len,
                        uint8_t *index)
{
    lrw_crypt(ctx, key2, dst, src, len, index, 0);
}

static void lrw_decrypt(const void *ctx, const uint8_t *key2, uint8_t *dst, const uint8_t *src, size_t len,
                        uint8_t *index)
{
    lrw_crypt(ctx, key2, dst, src, len, index, 1);
}

#endif
