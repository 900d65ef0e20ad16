/* SPDX-License-Identifier: Apache-2.0
 * Guard pages and canaries around every buffer that a subject is given. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "shim.h"

#define CANARY_LEN 64u
#define FENCE_LEN (UINT64_C(2) << 20)
#define NEAR_LEN (UINT64_C(1) << 20) /* an address farther away may be any buffer's */
#define NUM_SHARED 6u                /* key, iv_in, in, out, aad, tag */
#define NUM_PER_SLOT 3u              /* iv, ctx, ctx2 */

static struct arena arenas[NUM_SHARED + NUM_PER_SLOT * NUM_SLOTS];
static size_t page;

/* Bytes that neither zeroing nor a repeated pattern writes by accident. */
static const uint8_t canary[CANARY_LEN] = {0xc5, 0x3a, 0x91, 0x6e, 0x17, 0xe8, 0x4b, 0xb4, 0x2d, 0xd2, 0x79, 0x86, 0xf3,
                                           0x0c, 0xa7, 0x58, 0x63, 0x9c, 0x35, 0xca, 0xb1, 0x4e, 0xed, 0x12, 0x8b, 0x74,
                                           0xdf, 0x20, 0x55, 0xaa, 0x01, 0xfe, 0x39, 0xc6, 0x6d, 0x92, 0xeb, 0x14, 0xb7,
                                           0x48, 0xd1, 0x2e, 0x85, 0x7a, 0x0f, 0xf0, 0x5b, 0xa4, 0x9f, 0x60, 0xc9, 0x36,
                                           0x4d, 0xb2, 0x11, 0xee, 0x77, 0x88, 0x23, 0xdc, 0xa9, 0x56, 0xfd, 0x02};

static void arena_init(struct arena *a, uint8_t kind, uint64_t capacity)
{
    uint64_t room = (capacity + 4 * CANARY_LEN + page - 1) / page * page;
    uint8_t *p = mmap(NULL, room + 2 * FENCE_LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED || mprotect(p + FENCE_LEN, room, PROT_READ | PROT_WRITE) != 0) {
        shim_fail("cannot map the guarded buffers: raise the memory limit of the lane");
    }
    a->start = p + FENCE_LEN;
    a->end = a->start + room;
    a->at = a->start;
    a->len = 0;
    a->kind = kind;
}

void arenas_init(void)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    arena_init(arena_of(BUFFER_KEY, 0), BUFFER_KEY, page);
    arena_init(arena_of(BUFFER_IV_IN, 0), BUFFER_IV_IN, MAX_SMALL_LEN);
    arena_init(arena_of(BUFFER_IN, 0), BUFFER_IN, MAX_MESSAGE_LEN);
    arena_init(arena_of(BUFFER_OUT, 0), BUFFER_OUT, MAX_MESSAGE_LEN);
    arena_init(arena_of(BUFFER_AAD, 0), BUFFER_AAD, MAX_SMALL_LEN);
    arena_init(arena_of(BUFFER_TAG, 0), BUFFER_TAG, page);
    for (unsigned slot = 0; slot < NUM_SLOTS; slot++) {
        arena_init(arena_of(BUFFER_IV, slot), BUFFER_IV, page);
        arena_init(arena_of(BUFFER_CTX, slot), BUFFER_CTX, 8 * page);
        arena_init(arena_of(BUFFER_CTX2, slot), BUFFER_CTX2, 8 * page);
    }
}

struct arena *arena_of(uint8_t kind, unsigned slot)
{
    static const uint8_t shared[12] = {0, 0, 1, 2, 3, 0, 4, 5, 0, 0, 0, 0};
    struct arena *own = arenas + NUM_SHARED + NUM_PER_SLOT * slot;
    switch (kind) {
    case BUFFER_IV: return own;
    case BUFFER_CTX: return own + 1;
    case BUFFER_CTX2: return own + 2;
    default: return arenas + shared[kind];
    }
}

static uint8_t *settle(struct arena *a, uint8_t *at, size_t len, unsigned watch)
{
    a->at = at;
    a->len = len;
    if ((watch & WATCH_CANARY) != 0) {
        if (at - a->start >= (ptrdiff_t)CANARY_LEN) {
            memcpy(at - CANARY_LEN, canary, CANARY_LEN);
        }
        if (a->end - (at + len) >= (ptrdiff_t)CANARY_LEN) {
            memcpy(at + len, canary, CANARY_LEN);
        }
    }
    return at;
}

uint8_t *arena_place(struct arena *a, unsigned edge, unsigned align, size_t len, unsigned watch)
{
    uint8_t *at;
    if ((watch & WATCH_LAYOUT) == 0) {
        at = a->start + 2 * CANARY_LEN;
    } else if (edge == EDGE_END) {
        at = a->end - len;
    } else if (edge == EDGE_START) {
        at = a->start;
    } else {
        at = a->start + CANARY_LEN + align;
    }
    return settle(a, at, len, watch);
}

uint8_t *arena_place_context(struct arena *a, unsigned edge, size_t ctx_align, size_t len, unsigned watch)
{
    uint8_t *at;
    if ((watch & WATCH_LAYOUT) != 0 && edge == EDGE_END) {
        at = a->end - (len + ctx_align - 1) / ctx_align * ctx_align;
    } else if ((watch & WATCH_LAYOUT) != 0 && edge == EDGE_START) {
        at = a->start;
    } else {
        at = a->start + 2 * page + ctx_align; /* page-aligned plus ctx_align: not a multiple of twice that */
    }
    return settle(a, at, len, watch);
}

static int canary_changed(const struct arena *a, const uint8_t *at, struct departure *d)
{
    if (memcmp(at, canary, CANARY_LEN) == 0) {
        return 0;
    }
    size_t i = 0;
    while (at[i] == canary[i]) {
        i++;
    }
    d->verdict = VERDICT_DISAGREE;
    d->symptom = SYMPTOM_CANARY;
    d->buffer = a->kind;
    d->offset = (at + i) - a->at;
    return 1;
}

int arena_check(const struct arena *a, struct departure *d)
{
    if (a->at - a->start >= (ptrdiff_t)CANARY_LEN && canary_changed(a, a->at - CANARY_LEN, d)) {
        return 1;
    }
    const uint8_t *after = a->at + a->len;
    return a->end - after >= (ptrdiff_t)CANARY_LEN && canary_changed(a, after, d);
}

const struct arena *arena_at(uintptr_t address)
{
    for (size_t i = 0; i < sizeof arenas / sizeof arenas[0]; i++) {
        if (arenas[i].start != NULL && address >= (uintptr_t)arenas[i].start - NEAR_LEN &&
            address < (uintptr_t)arenas[i].end + NEAR_LEN) {
            return &arenas[i];
        }
    }
    return NULL;
}

size_t page_len(void)
{
    return page;
}
