/* SPDX-License-Identifier: Apache-2.0
 *
 * ECB, CBC and CFB decryption, CTR, XTS and LRW over the groups of serpent_bitslice.h, which comes first.
 *
 * A step takes WAYS blocks. What is left at the end, from two blocks on, goes through a buffer on the stack as one more
 * step, so that no more than the message is touched; the last single block goes by itself.
 */
#ifndef SERPENT_MODES_H
#define SERPENT_MODES_H

static inline void ecb_step(const struct serpent_ctx *c, uint8_t *dst, const uint8_t *src, size_t num_blocks,
                            int decrypting)
{
    vec v[WIDE_VECS];
    load_words(v, src);
    crypt_words(c, v, num_blocks, decrypting);
    store_words(dst, v);
}

static inline void ecb_crypt(const struct serpent_ctx *c, uint8_t *dst, const uint8_t *src, size_t num_blocks,
                             int decrypting)
{
    for (; num_blocks >= WAYS; num_blocks -= WAYS) {
        ecb_step(c, dst, src, WAYS, decrypting);
        dst += WIDE_LEN;
        src += WIDE_LEN;
    }
    if (num_blocks > 1) {
        uint8_t buffer[WIDE_LEN] = {0};
        memcpy(buffer, src, num_blocks * BLOCK_LEN);
        ecb_step(c, buffer, buffer, num_blocks, decrypting);
        memcpy(dst, buffer, num_blocks * BLOCK_LEN);
    } else if (num_blocks == 1) {
        crypt_block(c, dst, src, decrypting);
    }
}

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    ecb_crypt(ctx, dst, src, num_blocks, 0);
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    ecb_crypt(ctx, dst, src, num_blocks, 1);
}

static void ecb_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    (void)iv;
    ecb_crypt(ctx, dst, src, len / BLOCK_LEN, 0);
}

static void ecb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    (void)iv;
    ecb_crypt(ctx, dst, src, len / BLOCK_LEN, 1);
}

/* The blocks that come one before those of src: the chain, then all of src but its last. */
static inline void load_blocks_before(vec v[WIDE_VECS], const uint8_t *chain, const uint8_t *src)
{
    v[0] = vec_load_after(chain, src);
    v[1] = vec_load(src + VEC_LEN - BLOCK_LEN);
    v[2] = vec_load(src + 2 * VEC_LEN - BLOCK_LEN);
    v[3] = vec_load(src + 3 * VEC_LEN - BLOCK_LEN);
    v[4] = vec_load(src + 4 * VEC_LEN - BLOCK_LEN);
    v[5] = vec_load(src + 5 * VEC_LEN - BLOCK_LEN);
    v[6] = vec_load(src + 6 * VEC_LEN - BLOCK_LEN);
    v[7] = vec_load(src + 7 * VEC_LEN - BLOCK_LEN);
}

static inline void xor_wide(vec v[WIDE_VECS], const vec w[WIDE_VECS])
{
    xor_words(v, w);
    xor_words(v + GROUP_VECS, w + GROUP_VECS);
}

/* All ciphertext that is still wanted is read before the first store: dst may be src. */
static inline void cbc_step(const struct serpent_ctx *c, uint8_t *dst, const uint8_t *src, size_t num_blocks,
                            uint8_t chain[BLOCK_LEN])
{
    vec v[WIDE_VECS], before[WIDE_VECS];

    load_words(v, src);
    crypt_words(c, v, num_blocks, 1);
    transpose_groups(v);
    load_blocks_before(before, chain, src);
    xor_wide(v, before);
    memcpy(chain, src + (num_blocks - 1) * BLOCK_LEN, BLOCK_LEN);
    store_blocks(dst, v);
}

static void cbc_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct serpent_ctx *c = ctx;
    size_t num_blocks = len / BLOCK_LEN;

    for (; num_blocks >= WAYS; num_blocks -= WAYS) {
        cbc_step(c, dst, src, WAYS, iv);
        dst += WIDE_LEN;
        src += WIDE_LEN;
    }
    if (num_blocks > 1) {
        uint8_t buffer[WIDE_LEN] = {0};
        memcpy(buffer, src, num_blocks * BLOCK_LEN);
        cbc_step(c, buffer, buffer, num_blocks, iv);
        memcpy(dst, buffer, num_blocks * BLOCK_LEN);
    } else if (num_blocks == 1) {
        uint8_t block[BLOCK_LEN];
        crypt_block(c, block, src, 1);
        xor_bytes(block, block, iv, BLOCK_LEN);
        memcpy(iv, src, BLOCK_LEN);
        memcpy(dst, block, BLOCK_LEN);
    }
}

/* The keystream of num_blocks blocks of CFB is the cipher of those one before them. */
static inline void cfb_step(const struct serpent_ctx *c, uint8_t *dst, const uint8_t *src, size_t num_blocks,
                            const uint8_t chain[BLOCK_LEN])
{
    vec v[WIDE_VECS], ciphertext[WIDE_VECS];

    load_blocks_before(v, chain, src);
    transpose_groups(v);
    crypt_words(c, v, num_blocks, 0);
    transpose_groups(v);
    load_blocks(ciphertext, src);
    xor_wide(v, ciphertext);
    store_blocks(dst, v);
}

/* The iv becomes the last whole block of ciphertext. */
static void cfb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct serpent_ctx *c = ctx;
    uint8_t last[BLOCK_LEN];

    for (; len >= WIDE_LEN; len -= WIDE_LEN) {
        memcpy(last, src + WIDE_LEN - BLOCK_LEN, BLOCK_LEN);
        cfb_step(c, dst, src, WAYS, iv);
        memcpy(iv, last, BLOCK_LEN);
        dst += WIDE_LEN;
        src += WIDE_LEN;
    }
    memcpy(last, len < BLOCK_LEN ? iv : src + (len / BLOCK_LEN - 1) * BLOCK_LEN, BLOCK_LEN);
    if (len > BLOCK_LEN) {
        uint8_t buffer[WIDE_LEN] = {0};
        memcpy(buffer, src, len);
        cfb_step(c, buffer, buffer, (len + BLOCK_LEN - 1) / BLOCK_LEN, iv);
        memcpy(dst, buffer, len);
    } else if (len > 0) {
        uint8_t keystream[BLOCK_LEN];
        crypt_block(c, keystream, iv, 0);
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
static inline void counter_words(vec v[WIDE_VECS], struct counter counter)
{
    uint8_t blocks[WIDE_LEN];

    if ((uint32_t)counter.low <= UINT32_MAX - (WAYS - 1)) {
        vec low = vec_add32(vec_broadcast((uint32_t)counter.low), vec_indices());
        counter_store(blocks, &counter);
        v[0] = vec_broadcast(load_le32(blocks));
        v[1] = vec_broadcast(load_le32(blocks + 4));
        v[2] = vec_broadcast(load_le32(blocks + 8));
        v[3] = vec_bswap32(low);
        v[4] = v[0];
        v[5] = v[1];
        v[6] = v[2];
        v[7] = vec_bswap32(vec_add32(low, vec_broadcast(GROUP)));
    } else {
        SUBJECT_PATH("ctr_wrap");
        for (unsigned i = 0; i < WAYS; i++) {
            counter_store(blocks + i * BLOCK_LEN, &counter);
            counter_add(&counter, 1);
        }
        load_words(v, blocks);
    }
}

/* All but a last block that is alone; returns how many bytes that is. */
static size_t ctr_wide(const struct serpent_ctx *c, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    struct counter counter = {load_be64(iv), load_be64(iv + 8)};
    size_t done = 0;
    vec v[WIDE_VECS];

    for (; len - done >= WIDE_LEN; done += WIDE_LEN) {
        vec text[WIDE_VECS];
        counter_words(v, counter);
        crypt_words(c, v, WAYS, 0);
        transpose_groups(v);
        load_blocks(text, src + done);
        xor_wide(v, text);
        store_blocks(dst + done, v);
        counter_add(&counter, WAYS);
    }
    if (len - done > BLOCK_LEN) {
        uint8_t keystream[WIDE_LEN];
        size_t num_blocks = (len - done + BLOCK_LEN - 1) / BLOCK_LEN;
        counter_words(v, counter);
        crypt_words(c, v, num_blocks, 0);
        store_words(keystream, v);
        xor_bytes(dst + done, src + done, keystream, len - done);
        counter_add(&counter, num_blocks);
        done = len;
    }
    counter_store(iv, &counter);
    return done;
}

static void ctr_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    size_t done = len > BLOCK_LEN ? ctr_wide(ctx, dst, src, len, iv) : 0;

    if (done < len) {
        uint8_t keystream[BLOCK_LEN];
        crypt_block(ctx, keystream, iv, 0);
        xor_bytes(dst + done, src + done, keystream, len - done);
        increment_be(iv, BLOCK_LEN);
    }
}

/* out = in xor tweak, through the cipher, xor tweak: whole steps with the tweaks as words. */
static inline void masked_step(const struct serpent_ctx *c, uint8_t *dst, const uint8_t *src, const vec t[WIDE_VECS],
                               size_t num_blocks, int decrypting)
{
    vec v[WIDE_VECS];

    load_words(v, src);
    xor_wide(v, t);
    crypt_words(c, v, num_blocks, decrypting);
    xor_wide(v, t);
    store_words(dst, v);
}

/* The same for the last num_blocks blocks, fewer than WAYS. */
static inline void masked_rest(const struct serpent_ctx *c, uint8_t *dst, const uint8_t *src, const vec t[WIDE_VECS],
                               size_t num_blocks, int decrypting)
{
    uint8_t buffer[WIDE_LEN] = {0};

    memcpy(buffer, src, num_blocks * BLOCK_LEN);
    masked_step(c, buffer, buffer, t, num_blocks, decrypting);
    memcpy(dst, buffer, num_blocks * BLOCK_LEN);
}

static inline void masked_block(const struct serpent_ctx *c, uint8_t *dst, const uint8_t *src, const uint8_t *tweak,
                                int decrypting)
{
    uint8_t block[BLOCK_LEN];

    xor_bytes(block, src, tweak, BLOCK_LEN);
    crypt_block(c, block, block, decrypting);
    xor_bytes(dst, block, tweak, BLOCK_LEN);
}

/* IEEE Std 1619, 5.2: bytes are coefficients in rising order, modulo x^128 + x^7 + x^2 + x + 1. */
static inline void xts_double(uint8_t tweak[BLOCK_LEN])
{
    uint64_t low = load_le64(tweak), high = load_le64(tweak + 8);
    store_le64(tweak, (low << 1) ^ (UINT64_C(0x87) & (0 - (high >> 63))));
    store_le64(tweak + 8, (high << 1) | (low >> 63));
}

/* x^WAYS times each tweak of a group, as words: WAYS bits move up, and those that leave come back at the bottom. */
static inline void xts_advance(vec t[GROUP_VECS])
{
    const vec out = vec_shr(t[3], 32 - WAYS);
    const vec low = vec_xor(vec_xor(out, vec_shl(out, 1)), vec_xor(vec_shl(out, 2), vec_shl(out, 7)));

    t[3] = vec_or(vec_shl(t[3], WAYS), vec_shr(t[2], 32 - WAYS));
    t[2] = vec_or(vec_shl(t[2], WAYS), vec_shr(t[1], 32 - WAYS));
    t[1] = vec_or(vec_shl(t[1], WAYS), vec_shr(t[0], 32 - WAYS));
    t[0] = vec_xor(vec_shl(t[0], WAYS), low);
}

/* Two blocks or more; the tweak of the first becomes that of the block behind the last. */
static inline void xts_blocks(const struct serpent_ctx *c, uint8_t *dst, const uint8_t *src, size_t num_blocks,
                              uint8_t tweak[BLOCK_LEN], int decrypting)
{
    const size_t needed = num_blocks < WAYS ? num_blocks + 1 : WAYS;
    uint8_t tweaks[WIDE_LEN] = {0};
    vec t[WIDE_VECS];

    for (size_t i = 0; i < needed; i++) {
        memcpy(tweaks + i * BLOCK_LEN, tweak, BLOCK_LEN);
        xts_double(tweak);
    }
    load_words(t, tweaks);
    for (; num_blocks >= WAYS; num_blocks -= WAYS) {
        masked_step(c, dst, src, t, WAYS, decrypting);
        xts_advance(t);
        xts_advance(t + GROUP_VECS);
        dst += WIDE_LEN;
        src += WIDE_LEN;
    }
    if (num_blocks > 0) {
        masked_rest(c, dst, src, t, num_blocks, decrypting);
    }
    store_words(tweaks, t);
    memcpy(tweak, tweaks + num_blocks * BLOCK_LEN, BLOCK_LEN);
}

/* IEEE Std 1619, 5.3.2 and 5.4.2: the last whole block and the tail_len bytes behind it. Decryption takes the last two
 * tweaks in the other order. All of src is read before the same place of dst is written. */
static inline void xts_steal(const struct serpent_ctx *c, uint8_t *dst, const uint8_t *src, size_t tail_len,
                             const uint8_t tweak[BLOCK_LEN], int decrypting)
{
    uint8_t next[BLOCK_LEN], first[BLOCK_LEN], second[BLOCK_LEN];

    memcpy(next, tweak, BLOCK_LEN);
    xts_double(next);
    masked_block(c, first, src, decrypting ? next : tweak, decrypting);
    memcpy(second, src + BLOCK_LEN, tail_len);
    memcpy(second + tail_len, first + tail_len, BLOCK_LEN - tail_len);
    memcpy(dst + BLOCK_LEN, first, tail_len);
    masked_block(c, dst, second, decrypting ? tweak : next, decrypting);
}

static inline void xts_crypt(const struct serpent_ctx *c, const struct serpent_ctx *tweak_ctx, uint8_t *dst,
                             const uint8_t *src, size_t len, const uint8_t *iv, int decrypting)
{
    uint8_t tweak[BLOCK_LEN];
    size_t tail_len = len % BLOCK_LEN;
    size_t num_blocks = len / BLOCK_LEN - (tail_len != 0);

    if (len < BLOCK_LEN) {
        return;
    }
    serpent_encrypt_block(&tweak_ctx->keys, tweak, iv);
    if (num_blocks > 1) {
        xts_blocks(c, dst, src, num_blocks, tweak, decrypting);
    } else if (num_blocks == 1) {
        masked_block(c, dst, src, tweak, decrypting);
        xts_double(tweak);
    }
    if (tail_len != 0) {
        size_t done = num_blocks * BLOCK_LEN;
        xts_steal(c, dst + done, src + done, tail_len, tweak, decrypting);
    }
}

static void xts_encrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                        const uint8_t *iv)
{
    xts_crypt(ctx, tweak_ctx, dst, src, len, iv, 0);
}

static void xts_decrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                        const uint8_t *iv)
{
    xts_crypt(ctx, tweak_ctx, dst, src, len, iv, 1);
}

/* LRW (drafts of IEEE P1619): bit 7 of byte 0 is the highest coefficient, modulo x^128 + x^7 + x^2 + x + 1. */
struct element {
    uint64_t high, low;
};

static inline struct element element_load(const uint8_t *p)
{
    return (struct element){load_be64(p), load_be64(p + 8)};
}

static inline void element_store(uint8_t *p, struct element a)
{
    store_be64(p, a.high);
    store_be64(p + 8, a.low);
}

static inline struct element element_add(struct element a, struct element b)
{
    return (struct element){a.high ^ b.high, a.low ^ b.low};
}

static inline struct element element_double(struct element a)
{
    uint64_t carry = UINT64_C(0x87) & (0 - (a.high >> 63));
    return (struct element){(a.high << 1) | (a.low >> 63), (a.low << 1) ^ carry};
}

/* x^4 a. */
static inline struct element element_shift4(struct element a)
{
    uint64_t out = a.high >> 60;
    return (struct element){(a.high << 4) | (a.low >> 60), (a.low << 4) ^ out ^ (out << 1) ^ (out << 2) ^ (out << 7)};
}

/* Index and tweak key of one message. The index is public: it may steer branches and addresses, the key may not. */
struct lrw {
    struct element multiple[16]; /* n times the key, n as a polynomial */
    uint64_t high, low;          /* index of the next block */
};

static inline void lrw_begin(struct lrw *lrw, const uint8_t *key2, const uint8_t *index)
{
    lrw->multiple[0] = (struct element){0, 0};
    lrw->multiple[1] = element_load(key2);
    for (unsigned n = 2; n < 16; n += 2) {
        lrw->multiple[n] = element_double(lrw->multiple[n / 2]);
        lrw->multiple[n + 1] = element_add(lrw->multiple[n], lrw->multiple[1]);
    }
    lrw->high = load_be64(index);
    lrw->low = load_be64(index + 8);
}

/* The key times a number of 128 bits. */
static inline struct element lrw_product(const struct lrw *lrw, uint64_t high, uint64_t low)
{
    struct element sum = {0, 0};
    for (unsigned i = 64; i > 0; i -= 4) {
        sum = element_add(element_shift4(sum), lrw->multiple[(high >> (i - 4)) & 15]);
    }
    for (unsigned i = 64; i > 0; i -= 4) {
        sum = element_add(element_shift4(sum), lrw->multiple[(low >> (i - 4)) & 15]);
    }
    return sum;
}

/* What WAYS tweaks from some index on are made of. The index is a multiple of WAYS, the base, and a rest, which stays
 * the same from step to step. Up to some block the tweaks are key * base + key * (rest + i); from there on rest + i
 * reaches into the next base. */
struct lrw_tweaks {
    vec rest[WIDE_VECS]; /* key * ((rest + i) mod WAYS), as words */
    vec over[2];         /* all ones where block i belongs to the next base, for each group */
    struct element base, next;
    uint64_t high, low; /* the number of the next base: its index divided by WAYS */
};

#define LRW_SHIFT (VEC_BLOCKS == 1 ? 3 : 4) /* WAYS = 2^LRW_SHIFT */

_Static_assert(WAYS == 1u << LRW_SHIFT && WAYS <= 16, "multiple[] holds what a rest can be");

/* From one base to the next the tweak changes by key * x^LRW_SHIFT * (2^(k+1) - 1), k the trailing ones of its number:
 * one doubling for each of them. The last number of all has none behind it. */
static inline void lrw_next_base(const struct lrw *lrw, struct lrw_tweaks *t)
{
    struct element power = element_double(lrw->multiple[WAYS / 2]);
    uint64_t high = t->high, low = t->low;

    t->base = t->next;
    t->next = element_add(t->next, power);
    for (unsigned i = 1; (low & 1) != 0 && i < 128 - LRW_SHIFT; i++) {
        power = element_double(power);
        t->next = element_add(t->next, power);
        low = (low >> 1) | (high << 63);
        high >>= 1;
    }
    t->low++;
    t->high = (t->high + (t->low == 0)) & (UINT64_MAX >> LRW_SHIFT);
}

/* For num_blocks blocks; the tweaks behind them are none. */
static inline void lrw_start(const struct lrw *lrw, struct lrw_tweaks *t, size_t num_blocks)
{
    uint8_t blocks[WIDE_LEN] = {0}, over[WIDE_LEN] = {0};
    unsigned rest = (unsigned)lrw->low & (WAYS - 1);
    vec words[WIDE_VECS];

    for (unsigned i = 0; i < WAYS && i < num_blocks; i++) {
        element_store(blocks + i * BLOCK_LEN, lrw->multiple[(rest + i) % WAYS]);
        memset(over + i * BLOCK_LEN, rest + i < WAYS ? 0x00 : 0xff, BLOCK_LEN);
    }
    load_words(t->rest, blocks);
    load_words(words, over);
    t->over[0] = words[0];
    t->over[1] = words[GROUP_VECS];
    t->low = (lrw->low >> LRW_SHIFT) | (lrw->high << (64 - LRW_SHIFT));
    t->high = lrw->high >> LRW_SHIFT;
    t->next = lrw_product(lrw, lrw->high, lrw->low - rest);
    lrw_next_base(lrw, t);
}

/* The tweaks of WAYS blocks, as words. */
static inline void lrw_words(vec v[WIDE_VECS], const struct lrw_tweaks *t)
{
    uint8_t base[BLOCK_LEN], change[BLOCK_LEN];

    element_store(base, t->base);
    element_store(change, element_add(t->base, t->next));
    for (unsigned j = 0; j < GROUP_VECS; j++) {
        vec same = vec_broadcast(load_le32(base + 4 * j)), other = vec_broadcast(load_le32(change + 4 * j));
        v[j] = vec_xor(t->rest[j], vec_xor(same, vec_and(other, t->over[0])));
        v[GROUP_VECS + j] = vec_xor(t->rest[GROUP_VECS + j], vec_xor(same, vec_and(other, t->over[1])));
    }
}

static inline void lrw_crypt(const struct serpent_ctx *c, const uint8_t *key2, uint8_t *dst, const uint8_t *src,
                             size_t len, uint8_t *index, int decrypting)
{
    size_t num_blocks = len / BLOCK_LEN;
    struct lrw lrw;
    struct counter after;

    if (num_blocks == 0) {
        return;
    }
    lrw_begin(&lrw, key2, index);
    if (num_blocks > 1) {
        size_t left = num_blocks;
        struct lrw_tweaks t;
        vec v[WIDE_VECS];
        lrw_start(&lrw, &t, num_blocks);
        for (; left >= WAYS; left -= WAYS) {
            lrw_words(v, &t);
            masked_step(c, dst, src, v, WAYS, decrypting);
            lrw_next_base(&lrw, &t);
            dst += WIDE_LEN;
            src += WIDE_LEN;
        }
        if (left > 0) {
            lrw_words(v, &t);
            masked_rest(c, dst, src, v, left, decrypting);
        }
    } else {
        uint8_t tweak[BLOCK_LEN];
        element_store(tweak, lrw_product(&lrw, lrw.high, lrw.low));
        masked_block(c, dst, src, tweak, decrypting);
    }
    after = (struct counter){lrw.high, lrw.low};
    counter_add(&after, num_blocks);
    counter_store(index, &after);
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
