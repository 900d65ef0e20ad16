/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a batch of one case: a header of six bytes, then records of seven bytes, each followed by its data.
 * What a case needs and the records do not give (a key, an iv, the end of a message) is put in. */
#include "target.h"

#include "shim.h"

#define HEADER_LEN 6u
#define RECORD_LEN 7u
#define GIVEN_IN_64 192u /* from this number on, what a record brings is told in 64 bytes */
#define CASES_AT 64u
#define OPS_AT 128u
#define OP_LEN 48u
#define FEW 248u          /* of 256 lengths are below 256, the others up to 2047 */
#define LONGEST_KEYED 64u /* where keys are what matters */
#define ROOM_TO_CLOSE (2u * NUM_SLOTS + 4u)

/* A record's bits. */
enum { KIND_RAW = 0x80, RAW_FLAGS = 0xc0, IN_PLACE = 1, UNOBSERVED = 2, BIG = 4, OVERLAPS = 0x18 };
enum { HEADER_DECRYPTS = 1, HEADER_EDGE = 2 };

struct slot_state {
    int keyed, open;
    uint32_t setiv, last; /* operations; `last` is UINT32_MAX where the message has no data yet */
    uint64_t aad_len, data_len;
};

struct maker {
    struct decoded *d;
    const struct target_row *row;
    unsigned family;
    const uint8_t *at, *end;
    uint8_t *ops, blob[MAX_BLOB_LEN];
    size_t blob_len;
    uint32_t tag_len;
    int begun; /* whether there was a message */
    struct slot_state slots[NUM_SLOTS];
};

struct record {
    uint8_t kind, flags, in, out;
    uint16_t len;
    int raw;
    const uint8_t *data;
    size_t data_len;
};

static const uint8_t kinds[NUM_FAMILIES][8] = {
    {OP_UPDATE, OP_UPDATE, OP_UPDATE, OP_SETIV, OP_SETIV, OP_SETKEY, OP_UPDATE, OP_FINAL},
    {OP_UPDATE, OP_UPDATE, OP_UPDATE, OP_SETIV, OP_CLONE, OP_FINAL, OP_SETKEY, OP_REINIT},
    {OP_UPDATE, OP_UPDATE, OP_AAD, OP_AAD, OP_SETIV, OP_FINAL, OP_SETKEY, OP_CLONE},
    {OP_SETKEY, OP_SETKEY, OP_SETKEY, OP_UPDATE, OP_UPDATE, OP_SETIV, OP_REINIT, OP_CLONE},
};

unsigned decode_row(const uint8_t *data, size_t len, unsigned num)
{
    return len == 0 ? 0 : data[0] % num;
}

static size_t left_of(const struct maker *m)
{
    return (size_t)(m->end - m->at);
}

/* So many bytes: what a record brings, and behind that bytes no two blocks of which are alike. */
static uint64_t take(struct maker *m, const struct record *r, size_t len)
{
    uint64_t off = m->blob_len;
    uint8_t *to = m->blob + off;
    size_t given = r == NULL ? 0 : len < r->data_len ? len : r->data_len;
    if (given > 0) {
        memcpy(to, r->data, given);
    }
    for (size_t i = given; i < len; i++) {
        to[i] = (uint8_t)(i * 0x9d + (i >> 8) + 0x35);
    }
    m->blob_len += len;
    return off;
}

static size_t room(const struct maker *m)
{
    return MAX_BLOB_LEN - m->blob_len;
}

static uint8_t *op_at(const struct maker *m, uint32_t index)
{
    return m->ops + (size_t)index * OP_LEN;
}

static uint8_t edge_of(uint8_t layout)
{
    return layout >> 6 > EDGE_MIDDLE ? EDGE_MIDDLE : layout >> 6;
}

static uint8_t *emit(struct maker *m, uint8_t kind, unsigned slot, const struct record *r)
{
    uint8_t *p = op_at(m, m->d->num_ops++);
    memset(p, 0, OP_LEN);
    p[0] = kind;
    p[1] = (uint8_t)slot;
    p[3] = p[5] = EDGE_MIDDLE;
    if (r != NULL) {
        p[3] = edge_of(r->in);
        p[4] = r->in & 63;
        p[5] = edge_of(r->out);
        p[6] = r->out & 63;
    }
    return p;
}

static void give(uint8_t *op, uint64_t in_off, uint64_t in_len)
{
    store_le64(op + 8, in_off);
    store_le64(op + 16, in_len);
}

static void put_out(struct maker *m, uint8_t *op, uint64_t out_len)
{
    store_le64(op + 24, m->d->out_len);
    m->d->out_len += out_len;
}

static size_t legal(const struct record *r, const uint16_t *lens, unsigned num, size_t most)
{
    if (r == NULL) {
        return num == 0 ? 0 : lens[0];
    }
    return r->raw ? r->len % (most + 1) : num == 0 ? 0 : lens[r->len % num];
}

static void set_key(struct maker *m, unsigned slot, const struct record *r)
{
    size_t len = legal(r, m->row->key_lens, m->row->num_key_lens, 80);
    if (len > room(m)) {
        return;
    }
    give(emit(m, OP_SETKEY, slot, r), take(m, r, len), len);
    int is_legal = 0;
    for (unsigned i = 0; i < m->row->num_key_lens; i++) {
        is_legal |= m->row->key_lens[i] == len;
    }
    m->slots[slot].keyed |= is_legal;
    m->slots[slot].open = 0;
}

static void set_iv(struct maker *m, unsigned slot, const struct record *r)
{
    struct slot_state *s = &m->slots[slot];
    if (!s->keyed && (r == NULL || !r->raw)) {
        set_key(m, slot, NULL);
    }
    size_t len = legal(r, m->row->iv_lens, m->row->num_iv_lens, 80);
    if (len > room(m)) {
        return;
    }
    s->setiv = m->d->num_ops;
    give(emit(m, OP_SETIV, slot, r), take(m, r, len), len);
    s->open = m->begun = 1;
    s->last = UINT32_MAX;
    s->aad_len = s->data_len = 0;
}

static void open_message(struct maker *m, unsigned slot, const struct record *r)
{
    if (!m->slots[slot].open && !r->raw) {
        set_iv(m, slot, NULL);
    }
}

/* All that is known of a message only behind it: the lengths that its beginning announces, and which piece was the last. */
static void settle_message(struct maker *m, const struct slot_state *s)
{
    if (s->last != UINT32_MAX) {
        op_at(m, s->last)[2] |= FLAG_LAST;
    }
    store_le64(op_at(m, s->setiv) + 32, s->aad_len);
    store_le64(op_at(m, s->setiv) + 40, s->data_len);
}

static void close_message(struct maker *m, unsigned slot, int finishes)
{
    struct slot_state *s = &m->slots[slot];
    if (!s->open) {
        return;
    }
    settle_message(m, s);
    s->open = 0;
    if (!finishes) {
        return;
    }
    emit(m, OP_FINAL, slot, NULL);
    if (m->row->num_tag_lens != 0) {
        uint8_t *op = emit(m, OP_TAG, slot, NULL);
        if (m->d->decrypting && room(m) >= m->tag_len) {
            give(op, take(m, NULL, m->tag_len), m->tag_len);
        }
        put_out(m, op, m->tag_len);
    }
}

/* Of a record's number: mostly short, since a long message takes the time of many short ones. */
static size_t length_of(const struct record *r)
{
    size_t len = r->len < FEW << 8 ? r->len & 255u : r->len - (FEW << 8);
    return (r->flags & BIG) != 0 ? 8 * len : len;
}

static size_t data_len_of(const struct maker *m, const struct record *r)
{
    const struct target_row *row = m->row;
    size_t len = length_of(r);
    len = m->family == FAMILY_KEYSCHEDULE ? len % (LONGEST_KEYED + 1) : len;
    if (r->raw) {
        return len;
    }
    if (row->partial == PARTIAL_REFUSED) {
        len -= len % row->block_len;
    }
    return len < row->min_len ? row->min_len : len;
}

static int observes_iv(const struct target_row *row, uint64_t done)
{
    return row->iv_out == IV_OUT_NEXT || (row->iv_out == IV_OUT_WHOLE && done % row->block_len == 0);
}

static void update(struct maker *m, unsigned slot, const struct record *r)
{
    const struct target_row *row = m->row;
    struct slot_state *s = &m->slots[slot];
    int overlaps = !row->is_mac && (r->flags & OVERLAPS) == OVERLAPS;
    size_t len = data_len_of(m, r);
    if (s->open && row->split == SPLIT_NONE && s->last != UINT32_MAX && !r->raw) {
        close_message(m, slot, 1);
    }
    open_message(m, slot, r);
    if (len + 2 * (size_t)m->tag_len + 256 > room(m) || m->d->num_ops + ROOM_TO_CLOSE > MAX_OPS) {
        return;
    }
    overlaps = overlaps && len >= 2;
    uint32_t index = m->d->num_ops;
    uint8_t *op = emit(m, OP_UPDATE, slot, r);
    give(op, take(m, r, len), len);
    s->data_len += overlaps ? 0 : len;
    uint8_t flags = !overlaps && !row->is_mac && (r->flags & IN_PLACE) != 0 ? FLAG_IN_PLACE : 0;
    flags |= overlaps ? FLAG_OVERLAP : 0;
    flags |= s->open && observes_iv(row, s->data_len) && (r->flags & UNOBSERVED) == 0 ? FLAG_OBSERVE_IV : 0;
    op[2] = flags;
    if (overlaps) {
        uint64_t distance = 1 + (r->out & 63u) % (len - 1);
        store_le64(op + 40, (r->out & 64u) != 0 ? 0 - distance : distance);
    } else if (s->open) {
        s->last = index;
    }
    put_out(m, op, (row->is_mac ? 0 : len) + ((flags & FLAG_OBSERVE_IV) != 0 ? row->block_len : 0));
    if (m->family == FAMILY_ONESHOT && !overlaps && !r->raw) {
        close_message(m, slot, 1);
    }
}

static void add_aad(struct maker *m, unsigned slot, const struct record *r)
{
    struct slot_state *s = &m->slots[slot];
    if (!m->row->is_aead || (s->open && s->last != UINT32_MAX && !r->raw)) {
        update(m, slot, r);
        return;
    }
    open_message(m, slot, r);
    size_t len = length_of(r);
    if (len + 512 > room(m)) {
        return;
    }
    give(emit(m, OP_AAD, slot, r), take(m, r, len), len);
    s->aad_len += s->open && s->last == UINT32_MAX ? len : 0;
}

/* The message goes on in the copy; what it was copied from is left. */
static void clone(struct maker *m, unsigned from, const struct record *r)
{
    unsigned to = (from + 1 + (r->len & 1u)) % NUM_SLOTS;
    if (!m->slots[from].keyed) {
        set_key(m, from, NULL);
    }
    close_message(m, to, 0);
    uint8_t *op = emit(m, OP_CLONE, to, NULL);
    op[7] = (uint8_t)from;
    m->slots[to] = m->slots[from];
    m->slots[from].open = 0;
}

static void follow(struct maker *m, const struct record *r)
{
    uint8_t kind = kinds[m->family][r->kind & 7];
    unsigned slot = m->family == FAMILY_ONESHOT ? 0 : r->kind >> 3 & 3u;
    switch (kind) {
    case OP_SETKEY:
        close_message(m, slot, !r->raw);
        set_key(m, slot, r);
        break;
    case OP_SETIV:
        close_message(m, slot, !r->raw);
        set_iv(m, slot, r);
        break;
    case OP_AAD: add_aad(m, slot, r); break;
    case OP_UPDATE: update(m, slot, r); break;
    case OP_FINAL: close_message(m, slot, 1); break;
    case OP_CLONE: clone(m, slot, r); break;
    default:
        close_message(m, slot, 0);
        if (m->slots[slot].keyed || r->raw) {
            emit(m, OP_REINIT, slot, NULL);
        }
    }
}

static int next_record(struct maker *m, struct record *r)
{
    if (left_of(m) < RECORD_LEN) {
        return 0;
    }
    const uint8_t *p = m->at;
    r->kind = p[0];
    r->flags = p[1];
    r->in = p[2];
    r->out = p[3];
    r->len = (uint16_t)(p[4] | p[5] << 8);
    r->raw = (p[0] & KIND_RAW) != 0 && (p[1] & RAW_FLAGS) == RAW_FLAGS;
    m->at += RECORD_LEN;
    size_t given = p[6] < GIVEN_IN_64 ? p[6] : (p[6] - GIVEN_IN_64 + 1u) * 64u;
    r->data = m->at;
    r->data_len = given < left_of(m) ? given : left_of(m);
    m->at += r->data_len;
    return 1;
}

static uint32_t tag_len_of(const struct target_row *row, uint8_t chosen)
{
    if (row->num_tag_lens == 0) {
        return 0;
    }
    return chosen >= 240 ? chosen - 239u : row->tag_lens[chosen % row->num_tag_lens];
}

static void write_head(const struct maker *m, const uint8_t *header)
{
    struct decoded *d = m->d;
    uint8_t *b = d->batch, *c = b + CASES_AT;
    size_t blob_at = (OPS_AT + (size_t)d->num_ops * OP_LEN + 63) & ~(size_t)63;
    memset(b, 0, OPS_AT);
    memcpy(b, "XLBATCH1", 8);
    store_le32(b + 8, 1);
    store_le64(b + 16, d->num_ops);
    store_le64(b + 24, CASES_AT);
    store_le64(b + 32, OPS_AT);
    store_le64(b + 40, blob_at);
    store_le64(b + 48, m->blob_len);
    store_le64(b + 56, d->out_len);
    store_le32(c + 8, d->num_ops);
    store_le32(c + 12, (header[1] >> 2 & 3u) & m->row->policies);
    c[16] = d->decrypting && !m->row->is_aead;
    c[17] = (header[1] & HEADER_EDGE) != 0 ? EDGE_END : EDGE_MIDDLE;
    store_le32(c + 20, m->tag_len);
    memset(b + OPS_AT + (size_t)d->num_ops * OP_LEN, 0, blob_at - OPS_AT - (size_t)d->num_ops * OP_LEN);
    memcpy(b + blob_at, m->blob, m->blob_len);
    d->batch_len = blob_at + m->blob_len;
}

void decode_input(struct decoded *d, const uint8_t *data, size_t len, const struct target_row *row, unsigned family)
{
    static struct maker m;
    static const uint8_t nothing[1];
    uint8_t header[HEADER_LEN] = {0};
    struct record r;
    data = len == 0 ? nothing : data;
    memcpy(header, data, len < HEADER_LEN ? len : HEADER_LEN);
    m.d = d;
    m.row = row;
    m.family = family;
    m.at = data + (len < HEADER_LEN ? len : HEADER_LEN);
    m.end = data + len;
    m.ops = d->batch + OPS_AT;
    m.blob_len = 0;
    m.begun = 0;
    m.tag_len = tag_len_of(row, header[2]);
    memset(m.slots, 0, sizeof m.slots);
    d->num_ops = 0;
    d->out_len = 0;
    d->decrypting = (header[1] & HEADER_DECRYPTS) != 0 && row->decrypts;
    d->tamper = header[3];
    d->where = header[4];
    while (d->num_ops + ROOM_TO_CLOSE <= MAX_OPS && next_record(&m, &r)) {
        follow(&m, &r);
    }
    if (!m.begun) { /* so that there is no input of which nothing runs */
        r = (struct record){.in = 0x80, .out = 0x80, .len = row->block_len};
        update(&m, 0, &r);
    }
    for (unsigned slot = 0; slot < NUM_SLOTS; slot++) {
        close_message(&m, slot, 1);
    }
    write_head(&m, header);
    d->decrypting = d->decrypting && row->is_aead;
}

size_t decode_results_len(const struct decoded *d)
{
    return 64 + 64 + (((size_t)d->num_ops + 63) & ~(size_t)63) + d->out_len;
}

void decode_seal(struct decoded *d, const uint8_t *results)
{
    const uint8_t *statuses = results + 128, *out = statuses + (((size_t)d->num_ops + 63) & ~(size_t)63);
    uint8_t *blob = d->batch + load_le64(d->batch + 40);
    for (uint32_t i = 0; i < d->num_ops; i++) {
        const uint8_t *op = d->batch + OPS_AT + (size_t)i * OP_LEN;
        int sealed = op[0] == OP_TAG || (op[0] == OP_UPDATE && (op[2] & FLAG_OVERLAP) == 0);
        if (sealed && statuses[i] == SUBJECT_OK) {
            memcpy(blob + load_le64(op + 8), out + load_le64(op + 24), load_le64(op + 16));
        }
    }
    d->batch[CASES_AT + 16] = 1;
    if (d->tamper >= 192 && d->num_ops > 0) {
        const uint8_t *op = d->batch + OPS_AT + (size_t)((d->tamper - 192u) % d->num_ops) * OP_LEN;
        uint64_t len = load_le64(op + 16);
        if (len > 0) {
            blob[load_le64(op + 8) + d->where % len] ^= (uint8_t)(1u << (d->where & 7u));
        }
    }
}
