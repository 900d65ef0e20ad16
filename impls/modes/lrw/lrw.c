/* SPDX-License-Identifier: Apache-2.0
 * LRW, drafts of IEEE P1619 (before XTS): C = E_K1(P xor T) xor T, T = K2 * I in GF(2^128) modulo
 * x^128 + x^7 + x^2 + x + 1, where bit 7 of byte 0 is the highest coefficient. The index I is a 128-bit big-endian
 * number that rises by one a block, modulo 2^128.
 *
 * From I to I + 1 the tweak changes by K2 * (I xor (I + 1)), and with k trailing ones in I that is K2 * (2^(k+1) - 1):
 * setkey stores these products. The table holds those that turn up; behind its end the tweak is multiplied anew. */
#include "mode.h"
#include "mode_overlap.h"

extern const struct subject_mode subject_mode_lrw;

#define LRW_BLOCK_LEN 16u

/* Places in the state's extra words. Those before the running tweak and behind it are the key's. */
enum { KEY2_AT = 0, TWEAK_AT = 2, PRODUCTS_AT = 4, NUM_PRODUCTS = 62 };

_Static_assert(sizeof(((struct subject_state *)0)->extra) >= 8 * (PRODUCTS_AT + 2 * NUM_PRODUCTS),
               "the products fit into the state");

struct element {
    uint64_t high, low;
};

static struct element load_element(const uint8_t *p)
{
    return (struct element){load_be64(p), load_be64(p + 8)};
}

static struct element add(struct element a, struct element b)
{
    return (struct element){a.high ^ b.high, a.low ^ b.low};
}

static struct element times_x(struct element a)
{
    uint64_t carry = a.high >> 63;
    return (struct element){(a.high << 1) | (a.low >> 63), (a.low << 1) ^ (UINT64_C(0x87) & (0 - carry))};
}

/* Bit i of a 128-bit number. */
static unsigned bit(struct element a, unsigned i)
{
    return (unsigned)((i < 64 ? a.low >> i : a.high >> (i - 64)) & 1);
}

/* The index is public: only key2 and the product must not steer a branch. */
static struct element times_index(struct element key2, struct element index)
{
    struct element product = {0, 0};
    for (unsigned i = 128; i > 0; i--) {
        product = times_x(product);
        if (bit(index, i - 1)) {
            product = add(product, key2);
        }
    }
    return product;
}

static struct element get(const struct subject_state *s, size_t at)
{
    return (struct element){s->extra[at], s->extra[at + 1]};
}

static void put(struct subject_state *s, size_t at, struct element a)
{
    s->extra[at] = a.high;
    s->extra[at + 1] = a.low;
}

/* The second key as bytes, as leaves take it. */
static const uint8_t *key2_of(const struct subject_state *s)
{
    return (const uint8_t *)&s->extra[KEY2_AT];
}

static int lrw_setkey(struct subject_message *m, const uint8_t *key, size_t key_len, uint32_t policy)
{
    if (key_len < LRW_BLOCK_LEN) {
        return SUBJECT_BAD_KEY_LEN;
    }
    const uint8_t *key2 = key + key_len - LRW_BLOCK_LEN;
    int status = m->leaf->setkey(m->ctx, key, key_len - LRW_BLOCK_LEN, policy);
    if (status != SUBJECT_OK) {
        return status;
    }
    memcpy(&m->state->extra[KEY2_AT], key2, LRW_BLOCK_LEN);
    struct element power = load_element(key2), sum = {0, 0};
    for (size_t k = 0; k < NUM_PRODUCTS; k++) {
        sum = add(sum, power);
        put(m->state, PRODUCTS_AT + 2 * k, sum);
        power = times_x(power);
    }
    return SUBJECT_OK;
}

/* The fused function of this direction, NULL where there is none. */
static subject_lrw_fn *fused_of(const struct subject_message *m)
{
    return m->state->decrypting ? m->leaf->lrw_decrypt : m->leaf->lrw_encrypt;
}

/* A fused function computes its own tweaks. */
static int lrw_setiv(struct subject_message *m, const uint8_t *iv, size_t iv_len)
{
    int status = mode_setiv_block(m, iv, iv_len);
    if (status == SUBJECT_OK && fused_of(m) == NULL) {
        put(m->state, TWEAK_AT, times_index(load_element(key2_of(m->state)), load_element(iv)));
    }
    return status;
}

/* Writes the tweak of the current index and goes on to the next. */
static void next_mask(struct subject_message *m, uint8_t *mask)
{
    struct subject_state *s = m->state;
    struct element tweak = get(s, TWEAK_AT), index = load_element(m->iv);
    unsigned ones = 0;
    store_be64(mask, tweak.high);
    store_be64(mask + 8, tweak.low);
    while (ones < NUM_PRODUCTS && bit(index, ones)) {
        ones++;
    }
    increment_be(m->iv, LRW_BLOCK_LEN);
    if (ones < NUM_PRODUCTS) {
        tweak = add(tweak, get(s, PRODUCTS_AT + 2 * (size_t)ones));
    } else {
        tweak = times_index(load_element(key2_of(s)), load_element(m->iv));
    }
    put(s, TWEAK_AT, tweak);
}

static void lrw_run(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    uint8_t masks[MODE_MAX_RUN * LRW_BLOCK_LEN];
    for (size_t i = 0; i < num_blocks; i++) {
        next_mask(m, masks + i * LRW_BLOCK_LEN);
    }
    mode_blocks_masked(m, dst, src, masks, num_blocks);
}

static int lrw_update(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    const struct subject_leaf *leaf = m->leaf;
    (void)last;
    if (mode_overlaps(dst, src, len)) {
        return SUBJECT_OVERLAP;
    }
    if (len % LRW_BLOCK_LEN != 0) {
        return SUBJECT_BAD_DATA_LEN;
    }
    subject_lrw_fn *fused = fused_of(m);
    if (fused != NULL) {
        fused(m->ctx, key2_of(m->state), dst, src, len, m->iv);
        return SUBJECT_OK;
    }
    size_t num_blocks = len / LRW_BLOCK_LEN;
    for (unsigned step = 0; num_blocks > 0; step++) {
        size_t run = mode_run_len(leaf, step, num_blocks);
        lrw_run(m, dst, src, run);
        dst += run * LRW_BLOCK_LEN;
        src += run * LRW_BLOCK_LEN;
        num_blocks -= run;
    }
    return SUBJECT_OK;
}

const struct subject_mode subject_mode_lrw = {
    .name = "lrw",
    .num_ctx = 1,
    .has_output = 1,
    .key2_at = 8 * KEY2_AT,
    .key2_len = LRW_BLOCK_LEN,
    .setkey = lrw_setkey,
    .setiv = lrw_setiv,
    .update = lrw_update,
    .final = mode_final_nothing,
    .iv_out_len = mode_iv_out_block,
};
