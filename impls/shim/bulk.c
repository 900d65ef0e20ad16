/* SPDX-License-Identifier: Apache-2.0
 * The self-test that libraries run when they start: many blocks in one call against the same blocks one at a time. Both
 * go through the implementation itself, so that it needs no other to be held against.
 *
 * One at a time means: the portable mode code over the block functions, each call of which is taken apart. */
#include "shim.h"

#define MAX_BLOCKS 1025u
#define FEW_BLOCKS 33u

static void apart(subject_blocks_fn *blocks, const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (size_t i = 0; i < num_blocks; i++) {
        blocks(ctx, dst + i * subject.block_len, src + i * subject.block_len, 1);
    }
}

static void encrypt_apart(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    apart(subject.bare.encrypt_blocks, ctx, dst, src, num_blocks);
}

static void decrypt_apart(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    apart(subject.bare.decrypt_blocks, ctx, dst, src, num_blocks);
}

static struct subject_leaf leaf_apart(void)
{
    const struct subject_leaf *whole = &subject.bare;
    return (struct subject_leaf){
        .contract = whole->contract,
        .block_len = whole->block_len,
        .ways = 1,
        .ctx_len = whole->ctx_len,
        .ctx_align = whole->ctx_align,
        .setkey = whole->setkey,
        .encrypt_blocks = encrypt_apart,
        .decrypt_blocks = decrypt_apart,
    };
}

/* 1 to 2 * ways + 1, of many ways those about multiples of them, and what is few anyhow; then 4 * ways + 1, for loops that go
 * round more often. With `few` ways and 2 * ways + 1 alone. */
static int is_tried(uint32_t num_blocks, int few)
{
    uint32_t ways = subject.ways, most = 2 * ways + 1;
    if (few) {
        return num_blocks == ways || num_blocks == most;
    }
    if (num_blocks <= most) {
        return num_blocks <= FEW_BLOCKS || (num_blocks + 1) % ways <= 2;
    }
    return num_blocks == 4 * ways + 1;
}

/* The number of blocks behind this one, 0 behind the last. */
static uint32_t next_num_blocks(uint32_t num_blocks, int few)
{
    do {
        num_blocks++;
    } while (num_blocks <= MAX_BLOCKS && !is_tried(num_blocks, few));
    return num_blocks <= MAX_BLOCKS ? num_blocks : 0;
}

/* The counter's lowest bits wrap in the middle of the message. */
static void set_counter(uint8_t *iv, uint32_t iv_len, uint32_t wrap_bits, uint32_t num_blocks)
{
    uint8_t *low = iv + iv_len - 4;
    memset(iv + iv_len - wrap_bits / 8, 0xff, wrap_bits / 8);
    store_be32(low, load_be32(low) - num_blocks / 2);
}

struct answer {
    int status, has_iv;
    uint8_t data[MAX_BLOCKS * SUBJECT_MAX_BLOCK_LEN], iv[SUBJECT_MAX_BLOCK_LEN], tag[MADE_MAX_TAG_LEN];
};

static void run(struct held *h, const struct made_request *r, const uint8_t *iv, size_t len, struct answer *to)
{
    h->m.iv = to->iv;
    memset(to->iv, 0, sizeof to->iv);
    memset(to->tag, 0, sizeof to->tag);
    made_data(r, to->data, len);
    to->status = made_message(h, r, iv, to->data, len, to->tag);
    to->has_iv = to->status == SUBJECT_OK && driver_iv_out(h);
}

static uint32_t differs(const uint8_t *a, const uint8_t *b, size_t len, uint32_t what, uint64_t *offset)
{
    for (size_t i = 0; i < len; i++) {
        if (a[i] != b[i]) {
            *offset = i;
            return what;
        }
    }
    return BULK_AGREES;
}

static uint32_t compare(const struct answer *bulk, const struct answer *single, size_t len, uint64_t *offset)
{
    uint32_t what = bulk->status != single->status ? BULK_STATUS : BULK_AGREES;
    if (what == BULK_AGREES && single->status == SUBJECT_OK) {
        what = differs(bulk->data, single->data, subject.mode->has_output ? len : 0, BULK_OUTPUT, offset);
        what =
            what != 0 ? what : differs(bulk->iv, single->iv, single->has_iv ? subject.block_len : 0, BULK_IV, offset);
        what = what != 0 ? what : differs(bulk->tag, single->tag, sizeof bulk->tag, BULK_TAG, offset);
    }
    return what;
}

const char *bulk_run(const struct made_request *r, int counts, int few, struct bulk_result *result)
{
    static const uint32_t wraps[] = {0, 32, 64, 128};
    static struct held held;
    static struct answer bulk, single;
    static uint8_t iv[MADE_MAX_LEN];
    struct subject_leaf leaf = leaf_apart();
    if (subject.session != NULL || !made_fits(r) || (counts && r->iv_len < 4)) {
        return "BULK asks of a library, for more than 256 bytes of key, iv or aad or 64 of tag, or for what the mode does not have";
    }
    watchdog_allow(10);
    subject_running = 1;
    result->what = made_begin(&held, r) != SUBJECT_OK ? BULK_STATUS : BULK_AGREES;
    for (uint32_t n = next_num_blocks(0, few); n > 0 && result->what == BULK_AGREES; n = next_num_blocks(n, few)) {
        for (unsigned i = 0; i < (counts ? 4 : 1) && result->what == BULK_AGREES; i++) {
            size_t len = (size_t)n * subject.block_len;
            if (wraps[i] > 8 * r->iv_len) {
                break;
            }
            made_iv(r, iv);
            if (wraps[i] > 0) {
                set_counter(iv, r->iv_len, wraps[i], n);
            }
            held.m.leaf = &leaf;
            run(&held, r, iv, len, &single);
            held.m.leaf = &subject.bare;
            run(&held, r, iv, len, &bulk);
            result->what = compare(&bulk, &single, len, &result->offset);
            result->num_compared += bulk.status == SUBJECT_OK;
            result->num_blocks = n;
            result->wrap_bits = wraps[i];
        }
    }
    driver_end(&held);
    subject_running = 0;
    watchdog_allow(WATCHDOG_S);
    return NULL;
}
