/* SPDX-License-Identifier: Apache-2.0
 * Runs cases: builds each buffer where the case wants it, calls the subject, looks at what it left behind. */
#include "shim.h"

volatile int subject_running, getter_running;

enum stage { STAGE_EMPTY, STAGE_KEYED, STAGE_AAD, STAGE_DATA, STAGE_FINAL, STAGE_DONE };

struct slot {
    struct held h;
    enum stage stage;
    int placed;
    uint8_t ctx_copy[2][8192]; /* as the last accepted setkey left them, or the fill before it */
    uint8_t key2_copy[16];     /* likewise */
};

static struct slot slots[NUM_SLOTS];

/* The outputs of the last update and of the one before it, which FLAG_FEED takes as key and as data. */
static struct {
    uint8_t bytes[MAX_FEED_LEN];
    size_t len;
} fed[2];
static struct departure found;

/* Where the outputs of the message under way lie in the result region. */
static struct {
    uint64_t begin;
    uint64_t end;
} released;

/* ---- watchers --------------------------------------------------------------------------------------------- */

static int bytes_changed(const uint8_t *now, const uint8_t *original, size_t len, uint8_t symptom, uint8_t kind)
{
    if (memcmp(now, original, len) == 0) {
        return 0;
    }
    size_t i = 0;
    while (now[i] == original[i]) {
        i++;
    }
    found = (struct departure){.verdict = VERDICT_DISAGREE, .symptom = symptom, .buffer = kind, .offset = (int64_t)i};
    return 1;
}

static int input_changed(const struct arena *a, const uint8_t *original)
{
    return (subject.watch & WATCH_CANARY) != 0 && bytes_changed(a->at, original, a->len, SYMPTOM_INPUT, a->kind);
}

static int canaries_changed(const struct arena *a)
{
    return (subject.watch & WATCH_CANARY) != 0 && arena_check(a, &found);
}

static int holds(const uint8_t *data, uint64_t len, uint64_t word)
{
    for (uint64_t i = 0; i + sizeof word <= len; i++) {
        if (load_le64(data + i) == word) {
            return 1;
        }
    }
    return 0;
}

/* Whether eight bytes of a key are also some of the case's data, which a library may free as it is. */
static int is_data(const struct test_case *c, uint64_t word)
{
    struct op o;
    for (uint32_t i = 0; i < c->num_ops && batch_op(c->first_op + i, &o) == NULL; i++) {
        if ((o.kind != OP_SETKEY && holds(batch.base + batch.blob_off + o.in_off, o.in_len, word)) ||
            holds(batch.out + o.out_off, batch_op_out_len(&o, c), word)) {
            return 1;
        }
    }
    return 0;
}

static int memory_changed(const struct test_case *c)
{
    return heap_departed(&found) && (found.registers != HEAP_LEFT || !is_data(c, found.pc));
}

static int registers_changed(void)
{
    if (thunk_departures == 0) {
        return wipe_departed(&found);
    }
    found = (struct departure){.verdict = VERDICT_DISAGREE, .symptom = SYMPTOM_ABI, .registers = thunk_departures};
    thunk_departures = 0;
    return 1;
}

static unsigned num_contexts(void)
{
    return subject.num_ctx;
}

static void *context_of(const struct slot *s, unsigned i)
{
    return i == 0 ? s->h.m.ctx : s->h.m.ctx2;
}

/* The second key that the mode's state holds for leaves to read; of length 0 in most modes. */
static const uint8_t *key2_of(const struct slot *s)
{
    return (const uint8_t *)s->h.state.extra + subject.mode->key2_at;
}

/* A leaf's context belongs to setkey: whatever else writes to it has written where it may not. */
static int contexts_changed(unsigned slot)
{
    const struct slot *s = &slots[slot];
    if ((subject.watch & WATCH_CONTEXT) == 0 || !s->placed) {
        return 0;
    }
    for (unsigned i = 0; i < num_contexts(); i++) {
        const struct arena *a = arena_of((uint8_t)(BUFFER_CTX + i), slot);
        if (canaries_changed(a)) {
            return 1;
        }
        if (bytes_changed(context_of(s, i), s->ctx_copy[i], subject.leaf.ctx_len, SYMPTOM_CONTEXT, a->kind)) {
            return 1;
        }
    }
    return bytes_changed(key2_of(s), s->key2_copy, subject.mode->key2_len, SYMPTOM_INPUT, BUFFER_KEY);
}

/* The bytes an operation takes: the case's own, or a former output. NULL where that has another length. */
static const uint8_t *taken_from(const struct op *o, unsigned feed)
{
    if ((o->flags & FLAG_FEED) == 0) {
        return batch.base + batch.blob_off + o->in_off;
    }
    return fed[feed].len == o->in_len ? fed[feed].bytes : NULL;
}

static void feed(const uint8_t *out, size_t len)
{
    fed[1] = fed[0];
    fed[0].len = len <= MAX_FEED_LEN ? len : 0;
    memcpy(fed[0].bytes, out, fed[0].len);
}

/* An answer that is no enum subject_status stays none: it must not be cut to one. */
static uint8_t status_byte(int status)
{
    return status < SUBJECT_OK || status > SUBJECT_UNSUPPORTED ? 255 : (uint8_t)status;
}

/* ---- calls ------------------------------------------------------------------------------------------------ */

static void enter(void)
{
    batch_results_lock();
    subject_running = 1;
}

static void leave(void)
{
    subject_running = 0;
    batch_results_unlock();
    num_calls++;
}

static void place_slot(unsigned slot, const struct test_case *c)
{
    struct slot *s = &slots[slot];
    if (s->placed) {
        return;
    }
    void *ctx[2] = {NULL, NULL};
    for (unsigned i = 0; i < num_contexts(); i++) {
        ctx[i] = arena_place_context(arena_of((uint8_t)(BUFFER_CTX + i), slot), c->ctx_edge, subject.leaf.ctx_align,
                                     subject.leaf.ctx_len, subject.watch);
        memset(ctx[i], FILL_BYTE, subject.leaf.ctx_len);
        memset(s->ctx_copy[i], FILL_BYTE, subject.leaf.ctx_len);
    }
    memset(&s->h.state, 0, sizeof s->h.state); /* a case must not depend on the cases before it */
    memset(s->key2_copy, 0, sizeof s->key2_copy);
    driver_begin(&s->h, ctx[0], ctx[1], c->decrypting);
    s->h.m.iv = arena_place(arena_of(BUFFER_IV, slot), EDGE_MIDDLE, 0, subject.block_len, subject.watch);
    s->stage = STAGE_EMPTY;
    s->placed = 1;
}

static int run_setkey(struct slot *s, const struct test_case *c, const struct op *o, uint8_t *status)
{
    struct arena *a = arena_of(BUFFER_KEY, 0);
    const uint8_t *original = taken_from(o, 0);
    if (original == NULL) {
        *status = SUBJECT_BAD_ORDER;
        return 0;
    }
    uint8_t *key = arena_place(a, o->in_edge, o->in_align, o->in_len, subject.watch);
    memcpy(key, original, o->in_len);
    heap_know_key(key, o->in_len);
    enter();
    *status = status_byte(driver_setkey(&s->h, key, o->in_len, c->policy));
    leave();
    if (*status == SUBJECT_OK) {
        s->stage = STAGE_KEYED;
        if ((subject.watch & WATCH_CONTEXT) != 0) {
            for (unsigned i = 0; i < num_contexts(); i++) {
                memcpy(s->ctx_copy[i], context_of(s, i), subject.leaf.ctx_len);
            }
            memcpy(s->key2_copy, key2_of(s), subject.mode->key2_len);
        }
    }
    return input_changed(a, original) || canaries_changed(a) || contexts_changed(o->slot);
}

static int run_setiv(struct slot *s, const struct test_case *c, const struct op *o, uint8_t *status)
{
    struct arena *a = arena_of(BUFFER_IV_IN, 0);
    const uint8_t *original = batch.base + batch.blob_off + o->in_off;
    released.begin = released.end = UINT64_MAX;
    if (s->stage == STAGE_EMPTY) {
        *status = SUBJECT_BAD_ORDER;
        return 0;
    }
    uint8_t *iv = arena_place(a, o->in_edge, o->in_align, o->in_len, subject.watch);
    memcpy(iv, original, o->in_len);
    s->h.m.iv = arena_place(arena_of(BUFFER_IV, o->slot), o->out_edge, o->out_align, subject.block_len, subject.watch);
    memset(&s->h.state, 0, offsetof(struct subject_state, extra));
    s->h.state.decrypting = c->decrypting;
    s->h.state.lengths = (struct subject_lengths){o->aux0, o->aux1, c->tag_len};
    enter();
    *status = status_byte(driver_setiv(&s->h, iv, o->in_len));
    leave();
    s->stage = *status == SUBJECT_OK ? STAGE_AAD : STAGE_KEYED;
    return input_changed(a, original) || canaries_changed(a) || canaries_changed(arena_of(BUFFER_IV, o->slot));
}

/* Where the library decrypts only against a tag, it is told the one that this message's tag operation will give it. */
static void tell_tag(struct slot *s, const struct test_case *c, const struct op *o, uint32_t following)
{
    struct op later;
    if (!driver_wants_tag() || !c->decrypting || o->kind != OP_SETIV || s->stage != STAGE_AAD) {
        return;
    }
    uint8_t slot = o->slot; /* follows the message through copies, past the operations of other contexts */
    for (uint32_t i = following; i < c->num_ops && batch_op(c->first_op + i, &later) == NULL; i++) {
        if (later.kind == OP_CLONE && later.from_slot == slot) {
            slot = later.slot;
        }
        if (later.slot != slot) {
            continue;
        }
        if (later.kind == OP_TAG) {
            enter();
            (void)driver_expect(&s->h, batch.base + batch.blob_off + later.in_off, later.in_len);
            leave();
        }
        if (later.kind == OP_TAG || later.kind == OP_SETIV) {
            return;
        }
    }
}

static int run_aad(struct slot *s, const struct op *o, uint8_t *status)
{
    struct arena *a = arena_of(BUFFER_AAD, 0);
    const uint8_t *original = batch.base + batch.blob_off + o->in_off;
    if (s->stage != STAGE_AAD) {
        *status = SUBJECT_BAD_ORDER;
        return 0;
    }
    if (subject.mode->aad == NULL) {
        *status = SUBJECT_BAD_AAD_LEN;
        return 0;
    }
    uint8_t *aad = arena_place(a, o->in_edge, o->in_align, o->in_len, subject.watch);
    memcpy(aad, original, o->in_len);
    enter();
    *status = status_byte(driver_aad(&s->h, aad, o->in_len));
    leave();
    return input_changed(a, original) || canaries_changed(a);
}

static void observe_iv(struct slot *s, const struct op *o, uint8_t status)
{
    size_t block_len = subject.block_len;
    uint8_t *to = batch.out + o->out_off + o->in_len;
    if (status == SUBJECT_OK && driver_iv_out(&s->h)) {
        memcpy(to, s->h.m.iv, block_len);
    } else {
        memset(to, 0, block_len);
    }
}

/* Inverts the contexts of all other slots. While a call runs they hold no keys: what still points into the context that
 * its own was copied from computes with others. */
static void invert_others(const struct slot *s)
{
    for (unsigned n = 0; n < NUM_SLOTS && (subject.watch & WATCH_CONTEXT) != 0; n++) {
        for (unsigned i = 0; slots[n].placed && &slots[n] != s && i < num_contexts(); i++) {
            uint8_t *ctx = context_of(&slots[n], i);
            size_t k = 0, len = subject.leaf.ctx_len;
            for (uint64_t word; k + sizeof word <= len; k += sizeof word) {
                memcpy(&word, ctx + k, sizeof word);
                word = ~word;
                memcpy(ctx + k, &word, sizeof word);
            }
            for (; k < len; k++) {
                ctx[k] = (uint8_t)~ctx[k];
            }
        }
    }
}

static uint8_t call_update(struct slot *s, const struct op *o, uint8_t *dst, const uint8_t *src)
{
    int last = (o->flags & FLAG_LAST) != 0;
    if (s->stage != STAGE_AAD && s->stage != STAGE_DATA) {
        return SUBJECT_BAD_ORDER;
    }
    if ((subject.watch & WATCH_PATHS) != 0) {
        paths_arm(paths_length_class(o->in_len, subject.block_len));
    }
    invert_others(s);
    watchdog_allow(WATCHDOG_S + o->in_len / WATCHDOG_BYTES_PER_S);
    enter();
    int status = driver_update(&s->h, dst, src, o->in_len, last);
    for (uint64_t i = 1; i < o->aux0; i++) {
        num_calls++;
        status = driver_update(&s->h, dst, dst, o->in_len, last);
    }
    leave();
    invert_others(s);
    s->stage = status == SUBJECT_OK ? STAGE_DATA : s->stage;
    return status_byte(status);
}

/* A MAC takes data and gives none. */
static int run_absorb(struct slot *s, const struct op *o, const uint8_t *original, uint8_t *status)
{
    struct arena *in = arena_of(BUFFER_IN, 0);
    uint8_t *src = arena_place(in, o->in_edge, o->in_align, o->in_len, subject.watch);
    memcpy(src, original, o->in_len);
    *status = call_update(s, o, NULL, src);
    return input_changed(in, original) || canaries_changed(in);
}

/* What a library leaves in the output when it refuses is its own affair (some overwrite it): not observed. */
static void refused_output(uint8_t *dst, const uint8_t *original, size_t len)
{
    if (original != NULL) {
        memcpy(dst, original, len);
    } else {
        memset(dst, FILL_BYTE, len);
    }
}

/* Input and output are parts of one stretch in the input's arena, the output aux1 bytes behind the input. Where the call
 * is refused all of the stretch must be as it was; what the output's part of it holds is recorded either way. */
static int run_overlapping(struct slot *s, const struct op *o, const uint8_t *original, uint8_t *status)
{
    struct arena *a = arena_of(BUFFER_IN, 0);
    size_t len = o->in_len, distance = batch_op_distance(o), before = o->aux1 >> 63 != 0 ? distance : 0;
    uint8_t *stretch = arena_place(a, o->in_edge, o->in_align, len + distance, subject.watch);
    uint8_t *src = stretch + before, *dst = stretch + (distance - before);
    memset(stretch, FILL_BYTE, len + distance);
    memcpy(src, original, len);
    *status = call_update(s, o, dst, src);
    memcpy(batch.out + o->out_off, dst, len);
    if ((o->flags & FLAG_OBSERVE_IV) != 0) {
        observe_iv(s, o, *status);
    }
    if (*status != SUBJECT_OK && (subject.watch & WATCH_CANARY) != 0 &&
        bytes_changed(src, original, len, SYMPTOM_INPUT, a->kind)) {
        return 1;
    }
    return canaries_changed(a) || canaries_changed(arena_of(BUFFER_IV, o->slot));
}

static int run_update(struct slot *s, const struct op *o, uint8_t *status)
{
    struct arena *in = arena_of(BUFFER_IN, 0), *out = arena_of(BUFFER_OUT, 0);
    const uint8_t *original = taken_from(o, 1);
    if (original == NULL) {
        *status = SUBJECT_BAD_ORDER;
        return 0;
    }
    if (!subject.mode->has_output) {
        return run_absorb(s, o, original, status);
    }
    if ((o->flags & FLAG_OVERLAP) != 0) {
        return run_overlapping(s, o, original, status);
    }
    size_t len = o->in_len;
    uint8_t iv[SUBJECT_MAX_BLOCK_LEN];
    memcpy(iv, s->h.m.iv, subject.block_len);
    uint8_t *dst = arena_place(out, o->out_edge, o->out_align, len, subject.watch);
    uint8_t *src = dst;
    if ((o->flags & FLAG_IN_PLACE) != 0) {
        memcpy(dst, original, len);
    } else {
        src = arena_place(in, o->in_edge, o->in_align, len, subject.watch);
        memcpy(src, original, len);
        memset(dst, FILL_BYTE, len);
    }
    *status = call_update(s, o, dst, src);
    if (*status != SUBJECT_OK && subject.session != NULL) {
        refused_output(dst, src == dst ? original : NULL, len);
    }
    memcpy(batch.out + o->out_off, dst, len);
    released.begin = o->out_off < released.begin ? o->out_off : released.begin;
    released.end = o->out_off + len;
    if ((o->flags & FLAG_OBSERVE_IV) != 0) {
        observe_iv(s, o, *status);
    }
    if (src != dst && (input_changed(in, original) || canaries_changed(in))) {
        return 1;
    }
    if (subject.mode->keeps_iv && subject.session == NULL && input_changed(arena_of(BUFFER_IV, o->slot), iv)) {
        return 1;
    }
    feed(dst, len);
    return canaries_changed(out) || canaries_changed(arena_of(BUFFER_IV, o->slot));
}

static int run_final(struct slot *s, uint8_t *status)
{
    if (s->stage != STAGE_AAD && s->stage != STAGE_DATA) {
        *status = SUBJECT_BAD_ORDER;
        return 0;
    }
    if (subject.mode->needs_data && s->stage != STAGE_DATA) {
        *status = SUBJECT_BAD_DATA_LEN;
        return 0;
    }
    enter();
    *status = status_byte(driver_final(&s->h));
    leave();
    s->stage = *status == SUBJECT_OK ? STAGE_FINAL : s->stage;
    return 0;
}

/* A message whose tag is wrong gives no plaintext: what its updates put out is withheld. */
static void withhold(void)
{
    memset(batch.out + released.begin, 0, released.end - released.begin);
}

static int run_tag(struct slot *s, const struct test_case *c, const struct op *o, uint8_t *status)
{
    struct arena *a = arena_of(BUFFER_TAG, 0);
    const uint8_t *original = batch.base + batch.blob_off + o->in_off;
    size_t len = c->tag_len;
    int refused = s->stage != STAGE_FINAL || subject.mode->tag == NULL;
    uint8_t *tag = arena_place(a, o->out_edge, o->out_align, len, subject.watch);
    if (c->decrypting) {
        memcpy(tag, original, len);
    } else {
        memset(tag, FILL_BYTE, len);
    }
    if (!refused) {
        enter();
        *status = status_byte(driver_tag(&s->h, tag, len));
        leave();
        s->stage = STAGE_DONE;
    } else {
        *status = SUBJECT_BAD_ORDER;
    }
    if (!c->decrypting) {
        memcpy(batch.out + o->out_off, tag, len);
    } else if (*status != SUBJECT_OK) {
        withhold();
    }
    return (c->decrypting && input_changed(a, original)) || canaries_changed(a);
}

static int run_reinit(struct slot *s, uint8_t *status)
{
    if (s->stage == STAGE_EMPTY) {
        *status = SUBJECT_BAD_ORDER;
        return 0;
    }
    enter();
    *status = status_byte(driver_reinit(&s->h));
    leave();
    s->stage = *status == SUBJECT_OK ? STAGE_KEYED : s->stage;
    return 0;
}

static int run_clone(struct slot *to, const struct op *o, const struct test_case *c, uint8_t *status)
{
    struct slot *from = &slots[o->from_slot];
    if (o->from_slot == o->slot || !from->placed) {
        *status = SUBJECT_BAD_ORDER;
        return 0;
    }
    to->placed = 0;
    place_slot(o->slot, c);
    for (unsigned i = 0; i < num_contexts(); i++) {
        memcpy(context_of(to, i), context_of(from, i), subject.leaf.ctx_len);
        memcpy(to->ctx_copy[i], from->ctx_copy[i], subject.leaf.ctx_len);
    }
    memcpy(to->key2_copy, from->key2_copy, sizeof to->key2_copy);
    enter();
    *status = status_byte(driver_clone(&to->h, &from->h));
    leave();
    memcpy(to->h.m.iv, from->h.m.iv, subject.block_len);
    to->stage = *status == SUBJECT_OK ? from->stage : STAGE_EMPTY;
    return 0;
}

static int run_op(const struct test_case *c, const struct op *o, uint8_t *status)
{
    struct slot *s = &slots[o->slot];
    *status = SUBJECT_OK;
    place_slot(o->slot, c);
    switch (o->kind) {
    case OP_SETKEY: return run_setkey(s, c, o, status);
    case OP_SETIV: return run_setiv(s, c, o, status);
    case OP_AAD: return run_aad(s, o, status);
    case OP_UPDATE: return run_update(s, o, status);
    case OP_FINAL: return run_final(s, status);
    case OP_TAG: return run_tag(s, c, o, status);
    case OP_REINIT: return run_reinit(s, status);
    case OP_CLONE: return run_clone(s, o, c, status);
    default: shim_fail("an operation has an unknown kind");
    }
}

const struct departure *session_run_case(uint64_t index)
{
    struct test_case c;
    struct op o;
    const char *wrong = batch_case(index, &c);
    for (unsigned i = 0; i < NUM_SLOTS; i++) {
        slots[i].placed = 0;
    }
    heap_begin_case(c.ctx_edge);
    fed[0].len = fed[1].len = 0;
    released.begin = released.end = UINT64_MAX;
    uint8_t *statuses = batch.statuses + c.first_op, status;
    for (uint32_t i = 0; wrong == NULL && i < c.num_ops; i++) {
        wrong = batch_op(c.first_op + i, &o);
        wrong = wrong != NULL ? wrong : batch_op_bounds(&o, &c);
        if (wrong != NULL) {
            break;
        }
        batch_mark(index, c.first_op + i);
        /* The status goes into the results when the subject is back: while it runs they may be read-only. */
        int departed = run_op(&c, &o, &status);
        tell_tag(&slots[o.slot], &c, &o, i + 1);
        statuses[i] = status;
        if (departed || registers_changed() || memory_changed(&c)) {
            return &found;
        }
    }
    if (wrong != NULL) {
        shim_fail(wrong);
    }
    for (unsigned i = 0; i < NUM_SLOTS; i++) {
        if (contexts_changed(i)) {
            return &found;
        }
    }
    for (unsigned i = 0; i < NUM_SLOTS; i++) {
        driver_end(&slots[i].h);
    }
    heap_end_case();
    if (memory_changed(&c)) {
        return &found;
    }
    batch_record(index, &(struct departure){.verdict = VERDICT_RAN});
    return NULL;
}
