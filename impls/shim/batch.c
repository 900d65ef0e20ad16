/* SPDX-License-Identifier: Apache-2.0
 * Reads a batch, strictly, and writes its result region. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "shim.h"

#define HEADER_LEN 64u
#define CASE_LEN 32u
#define OP_LEN 48u
#define CASE_RESULT_LEN DEPARTURE_LEN

struct batch batch;
static uint64_t current_case;

static int section_fits(uint64_t off, uint64_t count, uint64_t item_len)
{
    return off <= batch.base_len && count <= (batch.base_len - off) / item_len;
}

static uint64_t align64(uint64_t v)
{
    return (v + 63) & ~UINT64_C(63);
}

const char *batch_open(const uint8_t *base, uint64_t base_len)
{
    if (base_len < HEADER_LEN || memcmp(base, "XLBATCH1", 8) != 0) {
        return "the batch does not begin with XLBATCH1";
    }
    batch.base = base;
    batch.base_len = base_len;
    batch.num_cases = load_le32(base + 8);
    batch.num_ops = load_le64(base + 16);
    batch.cases_off = load_le64(base + 24);
    batch.ops_off = load_le64(base + 32);
    batch.blob_off = load_le64(base + 40);
    batch.blob_len = load_le64(base + 48);
    batch.out_len = load_le64(base + 56);
    if (load_le32(base + 12) != 0 || !section_fits(batch.cases_off, batch.num_cases, CASE_LEN) ||
        !section_fits(batch.ops_off, batch.num_ops, OP_LEN) || !section_fits(batch.blob_off, batch.blob_len, 1) ||
        batch.out_len > UINT64_MAX / 4) {
        return "a section of the batch lies outside it";
    }
    return NULL;
}

uint64_t batch_results_len(void)
{
    return HEADER_LEN + align64((uint64_t)batch.num_cases * CASE_RESULT_LEN) + align64(batch.num_ops) + batch.out_len;
}

void batch_bind_results(uint8_t *results, uint64_t capacity)
{
    batch.results = results;
    batch.results_capacity = capacity;
    batch.results_len = batch_results_len();
    batch.case_results = results + HEADER_LEN;
    batch.statuses = batch.case_results + align64((uint64_t)batch.num_cases * CASE_RESULT_LEN);
    batch.out = batch.statuses + align64(batch.num_ops);
    memset(results, 0, HEADER_LEN);
    memcpy(results, "XLRESLT1", 8);
}

const char *batch_case(uint64_t index, struct test_case *c)
{
    const uint8_t *p = batch.base + batch.cases_off + index * CASE_LEN;
    c->first_op = load_le64(p);
    c->num_ops = load_le32(p + 8);
    c->policy = load_le32(p + 12);
    c->decrypting = p[16];
    c->ctx_edge = p[17];
    c->tag_len = load_le32(p + 20);
    if (c->first_op > batch.num_ops || c->num_ops > batch.num_ops - c->first_op) {
        return "a case names operations outside the batch";
    }
    if (c->decrypting > 1 || c->ctx_edge > EDGE_MIDDLE || p[18] != 0 || p[19] != 0 || load_le64(p + 24) != 0) {
        return "a case has an unknown value";
    }
    return NULL;
}

const char *batch_op(uint64_t index, struct op *o)
{
    const uint8_t *p = batch.base + batch.ops_off + index * OP_LEN;
    memcpy(&o->kind, p, 8); /* eight single bytes, declared in the order of the record */
    o->in_off = load_le64(p + 8);
    o->in_len = load_le64(p + 16);
    o->out_off = load_le64(p + 24);
    o->aux0 = load_le64(p + 32);
    o->aux1 = load_le64(p + 40);
    if (o->in_off > batch.blob_len || o->in_len > batch.blob_len - o->in_off || o->out_off > batch.out_len) {
        return "an operation names bytes outside the batch";
    }
    if (o->slot >= NUM_SLOTS || o->from_slot >= NUM_SLOTS || o->in_edge > EDGE_MIDDLE || o->out_edge > EDGE_MIDDLE ||
        o->in_align > 63 || o->out_align > 63 || o->flags > 31) {
        return "an operation has an unknown value";
    }
    return NULL;
}

uint64_t batch_op_distance(const struct op *o)
{
    return o->aux1 >> 63 != 0 ? 0 - o->aux1 : o->aux1;
}

uint64_t batch_op_out_len(const struct op *o, const struct test_case *c)
{
    uint64_t len = o->kind == OP_UPDATE && subject.mode->has_output ? o->in_len : 0;
    len += (o->flags & FLAG_OBSERVE_IV) != 0 ? subject.block_len : 0;
    return len + (o->kind == OP_TAG && !c->decrypting ? c->tag_len : 0);
}

const char *batch_op_bounds(const struct op *o, const struct test_case *c)
{
    static const uint64_t most[9] = {0, 256, MAX_SMALL_LEN, MAX_SMALL_LEN, MAX_MESSAGE_LEN, 0, 64, 0, 0};
    if (o->kind == 0 || o->kind > OP_CLONE) {
        return "an operation has an unknown kind";
    }
    if (o->in_len > most[o->kind] || c->tag_len > 64) {
        return "an operation is longer than the limits of the hello";
    }
    if ((o->flags & FLAG_OVERLAP) != 0 &&
        (o->kind != OP_UPDATE || (o->flags & (FLAG_IN_PLACE | FLAG_FEED)) != 0 || o->aux0 > 1 ||
         batch_op_distance(o) == 0 || batch_op_distance(o) >= o->in_len || 2 * o->in_len > MAX_MESSAGE_LEN)) {
        return "an operation overlaps as none can";
    }
    if (batch_op_out_len(o, c) > batch.out_len - o->out_off) {
        return "an operation's output lies outside the result region";
    }
    return o->kind == OP_TAG && c->decrypting && o->in_len != c->tag_len ? "a tag has not its case's tag_len" : NULL;
}

void batch_results_lock(void)
{
    if (batch.strict) {
        (void)mprotect(batch.results, (batch.results_capacity + page_len() - 1) / page_len() * page_len(), PROT_READ);
    }
}

void batch_results_unlock(void)
{
    if (batch.strict) {
        (void)mprotect(batch.results, (batch.results_capacity + page_len() - 1) / page_len() * page_len(),
                       PROT_READ | PROT_WRITE);
    }
}

void batch_clear(uint64_t first_case, uint64_t num_cases)
{
    memset(batch.case_results + first_case * CASE_RESULT_LEN, 0, num_cases * CASE_RESULT_LEN);
}

void batch_mark(uint64_t index, uint64_t op)
{
    current_case = index;
    store_le64(batch.results + 8, index);
    store_le64(batch.results + 16, op);
}

void departure_encode(uint8_t *to, const struct departure *d, uint64_t op)
{
    to[0] = d->verdict;
    to[1] = d->symptom;
    to[2] = d->buffer;
    to[3] = d->signal;
    store_le32(to + 4, (uint32_t)op);
    store_le64(to + 8, (uint64_t)d->offset);
    store_le64(to + 16, d->registers);
    store_le64(to + 24, d->pc);
}

void batch_record(uint64_t case_index, const struct departure *d)
{
    departure_encode(batch.case_results + case_index * CASE_RESULT_LEN, d, load_le64(batch.results + 16));
}

uint64_t batch_current_case(void)
{
    return current_case;
}
