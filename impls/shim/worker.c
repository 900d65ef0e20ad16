/* SPDX-License-Identifier: Apache-2.0
 * One thread's share of a THREADS request: cases run as session.c runs them, less all watching, with buffers whose
 * middle lies at the border of two pages, so that a call can be held up there. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "worker.h"

enum stage { STAGE_EMPTY, STAGE_KEYED, STAGE_AAD, STAGE_DATA, STAGE_FINAL, STAGE_DONE };

/* ---- being held up ---------------------------------------------------------------------------------------- */

void worker_open_page(struct worker *w)
{
    if (w->closed != NULL) {
        (void)mprotect(w->closed, page_len(), PROT_READ | PROT_WRITE);
        w->closed = NULL;
    }
}

/* The next operation is to be held up in its input, its output or its context, in turn. */
static void close_page(struct worker *w, const struct op *o)
{
    const struct room *rooms[4] = {&w->in, &w->out, &w->contexts[o->slot][0], &w->contexts[o->slot][1]};
    if (w->held_up) {
        w->closed = rooms[w->num_closed++ % (2 + subject.num_ctx)]->border;
        (void)mprotect(w->closed, page_len(), PROT_NONE);
    }
}

/* ---- one case --------------------------------------------------------------------------------------------- */

static uint8_t *placed_at(const struct room *room, uint64_t len, uint64_t align)
{
    return room->border - len / 2 / align * align;
}

static void place(struct worker *w, unsigned slot)
{
    struct held *h = &w->held[slot];
    uint8_t *ctx[2] = {NULL, NULL};
    if (w->placed[slot]) {
        return;
    }
    for (unsigned i = 0; i < subject.num_ctx; i++) {
        ctx[i] = placed_at(&w->contexts[slot][i], subject.leaf.ctx_len, subject.leaf.ctx_align);
        memset(ctx[i], FILL_BYTE, subject.leaf.ctx_len);
    }
    driver_begin(h, ctx[0], ctx[1], w->test_case.decrypting);
    h->m.leaf = &subject.bare;
    h->m.iv = w->iv[slot];
    w->stages[slot] = STAGE_EMPTY;
    w->placed[slot] = 1;
}

static uint8_t *given(struct worker *w, const struct op *o)
{
    uint8_t *at = placed_at(&w->in, o->in_len, 1);
    memcpy(at, batch.base + batch.blob_off + o->in_off, o->in_len);
    return at;
}

/* Where the library decrypts only against a tag, it is told the one that this message's tag operation will give it. */
static void tell_tag(struct worker *w, struct held *h)
{
    const struct test_case *c = &w->test_case;
    struct op later;
    if (!driver_wants_tag() || !c->decrypting) {
        return;
    }
    for (uint64_t i = w->op_index + 1; i < c->first_op + c->num_ops && batch_op(i, &later) == NULL; i++) {
        if (later.kind == OP_TAG) {
            (void)driver_expect(h, batch.base + batch.blob_off + later.in_off, later.in_len);
        }
        if (later.kind == OP_TAG || later.kind == OP_SETIV) {
            return;
        }
    }
}

static int begin_message(struct worker *w, const struct op *o, const uint8_t *iv)
{
    const struct test_case *c = &w->test_case;
    struct held *h = &w->held[o->slot];
    memset(&h->state, 0, offsetof(struct subject_state, extra));
    h->state.decrypting = c->decrypting;
    h->state.lengths = (struct subject_lengths){o->aux0, o->aux1, c->tag_len};
    close_page(w, o);
    int status = driver_setiv(h, iv, o->in_len);
    worker_open_page(w);
    w->stages[o->slot] = status == SUBJECT_OK ? STAGE_AAD : STAGE_KEYED;
    if (status == SUBJECT_OK) {
        tell_tag(w, h);
    }
    return status;
}

static int update(struct worker *w, const struct op *o, const uint8_t *src)
{
    struct held *h = &w->held[o->slot];
    int has_output = (int)subject.mode->has_output;
    uint8_t *to = w->outcome.out + o->out_off, *dst = has_output ? placed_at(&w->out, o->in_len, 1) : NULL;
    if (has_output && (o->flags & FLAG_IN_PLACE) != 0) {
        memcpy(dst, src, o->in_len);
        src = dst;
    } else if (has_output) {
        memset(dst, FILL_BYTE, o->in_len);
    }
    close_page(w, o);
    int status = driver_update(h, dst, src, o->in_len, (o->flags & FLAG_LAST) != 0);
    worker_open_page(w);
    if (has_output) {
        memcpy(to, dst, o->in_len);
    }
    if (has_output && (o->flags & FLAG_OBSERVE_IV) != 0) {
        memset(to + o->in_len, 0, subject.block_len);
        if (status == SUBJECT_OK && driver_iv_out(h)) {
            memcpy(to + o->in_len, h->m.iv, subject.block_len);
        }
    }
    return status;
}

static int tag(struct worker *w, const struct op *o)
{
    const struct test_case *c = &w->test_case;
    uint8_t *at = placed_at(&w->in, c->tag_len, 1);
    if (c->decrypting) {
        (void)given(w, o);
    } else {
        memset(at, FILL_BYTE, c->tag_len);
    }
    close_page(w, o);
    int status = driver_tag(&w->held[o->slot], at, c->tag_len);
    worker_open_page(w);
    if (!c->decrypting) {
        memcpy(w->outcome.out + o->out_off, at, c->tag_len);
    }
    w->stages[o->slot] = STAGE_DONE;
    return status;
}

static int copy(struct worker *w, const struct op *o)
{
    struct held *to = &w->held[o->slot], *from = &w->held[o->from_slot];
    if (o->from_slot == o->slot || !w->placed[o->from_slot]) {
        return SUBJECT_BAD_ORDER;
    }
    w->placed[o->slot] = 0;
    place(w, o->slot);
    memcpy(to->m.ctx, from->m.ctx, subject.num_ctx > 0 ? subject.leaf.ctx_len : 0);
    memcpy(to->m.ctx2, from->m.ctx2, subject.num_ctx > 1 ? subject.leaf.ctx_len : 0);
    int status = driver_clone(to, from);
    memcpy(w->iv[o->slot], w->iv[o->from_slot], SUBJECT_MAX_BLOCK_LEN);
    w->stages[o->slot] = status == SUBJECT_OK ? w->stages[o->from_slot] : STAGE_EMPTY;
    return status;
}

static int setkey(struct worker *w, const struct op *o, const uint8_t *key)
{
    close_page(w, o);
    int status = driver_setkey(&w->held[o->slot], key, o->in_len, w->test_case.policy);
    worker_open_page(w);
    return status;
}

static int aad(struct worker *w, const struct op *o, const uint8_t *data)
{
    if (subject.mode->aad == NULL) {
        return SUBJECT_BAD_AAD_LEN;
    }
    close_page(w, o);
    int status = driver_aad(&w->held[o->slot], data, o->in_len);
    worker_open_page(w);
    return status;
}

static int run_op(struct worker *w, const struct op *o)
{
    struct held *h = &w->held[o->slot];
    uint8_t *stage = &w->stages[o->slot];
    int begun = *stage == STAGE_AAD || *stage == STAGE_DATA, status = SUBJECT_BAD_ORDER;
    if (o->kind == OP_SETKEY) {
        status = setkey(w, o, given(w, o));
        *stage = status == SUBJECT_OK ? STAGE_KEYED : *stage;
    } else if (o->kind == OP_SETIV && *stage != STAGE_EMPTY) {
        status = begin_message(w, o, given(w, o));
    } else if (o->kind == OP_AAD && *stage == STAGE_AAD) {
        status = aad(w, o, given(w, o));
    } else if (o->kind == OP_UPDATE && begun) {
        status = update(w, o, given(w, o));
        *stage = status == SUBJECT_OK ? STAGE_DATA : *stage;
    } else if (o->kind == OP_FINAL && begun) {
        status = driver_final(h);
        *stage = status == SUBJECT_OK ? STAGE_FINAL : *stage;
    } else if (o->kind == OP_TAG && *stage == STAGE_FINAL && subject.mode->tag != NULL) {
        status = tag(w, o);
    } else if (o->kind == OP_REINIT && *stage != STAGE_EMPTY) {
        status = driver_reinit(h);
        *stage = status == SUBJECT_OK ? STAGE_KEYED : *stage;
    } else if (o->kind == OP_CLONE) {
        status = copy(w, o);
    }
    return status;
}

void worker_begin_case(struct worker *w, uint64_t index)
{
    (void)batch_case(index, &w->test_case);
    w->case_index = index;
    w->op_index = w->test_case.first_op;
    memset(w->placed, 0, sizeof w->placed);
}

unsigned worker_step(struct worker *w)
{
    uint32_t before = *w->other;
    struct op o;
    if (w->op_index == w->test_case.first_op + w->test_case.num_ops) {
        return 0;
    }
    (void)batch_op(w->op_index, &o);
    place(w, o.slot);
    w->outcome.statuses[w->op_index] = (uint8_t)run_op(w, &o);
    w->op_index++;
    w->progress++;
    w->num_beside += !w->held_up && *w->other != before;
    return o.kind;
}

void worker_run_case(struct worker *w, uint64_t index)
{
    worker_begin_case(w, index);
    while (worker_step(w) != 0) {
    }
}

/* ---- comparison ------------------------------------------------------------------------------------------- */

static void record(struct worker *w, const struct op *o, uint64_t offset, unsigned how)
{
    struct departure d = {.verdict = VERDICT_DISAGREE, .symptom = SYMPTOM_NONDETERMINISM, .registers = how};
    d.buffer = BUFFER_NONE; /* the status */
    if (offset != UINT64_MAX) {
        int in_iv = o->kind == OP_UPDATE && offset >= (subject.mode->has_output ? o->in_len : 0);
        d.buffer = o->kind == OP_TAG ? BUFFER_TAG : in_iv ? BUFFER_IV : BUFFER_OUT;
        d.offset = (int64_t)(in_iv ? offset - (subject.mode->has_output ? o->in_len : 0) : offset);
    }
    w->result->case_index = w->case_index;
    w->result->departure = d;
}

void worker_compare(struct worker *w, const struct outcome *expected, unsigned how)
{
    const struct test_case *c = &w->test_case;
    struct op o;
    for (uint64_t i = c->first_op; i < c->first_op + c->num_ops && w->result->case_index == UINT64_MAX; i++) {
        (void)batch_op(i, &o);
        uint64_t len = batch_op_out_len(&o, c), at = 0;
        const uint8_t *ours = expected->out + o.out_off, *theirs = w->outcome.out + o.out_off;
        w->result->op = i;
        if (expected->statuses[i] != w->outcome.statuses[i]) {
            record(w, &o, UINT64_MAX, how);
        } else if (expected->statuses[i] == SUBJECT_OK && memcmp(ours, theirs, len) != 0) {
            while (ours[at] == theirs[at]) {
                at++;
            }
            record(w, &o, at, how);
        }
    }
}
