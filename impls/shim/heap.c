/* SPDX-License-Identifier: Apache-2.0
 *
 * The C library's allocator as a library under test sees it: what is allocated while the subject runs lies alone in
 * pages of its own, at an inaccessible page and between canaries, as the contexts of leaves do. So a library's contexts
 * are watched wherever they come from malloc, calloc, realloc, memalign and their like, through which C++ allocates
 * too. Everything else goes to the C library, whose own names for these functions glibc keeps.
 *
 * A freed block is filled with a pattern and used again only behind QUARANTINE others, so that writing to it is seen at
 * the end of the case. Blocks beyond MAX_PAGES pages, or of more than a page's alignment, are not placed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "shim.h"

#define CANARY_LEN 64u
#define CANARY_BYTE(i) ((uint8_t)(0x5b + 41 * (i)))
#define FREED_BYTE 0xd9
#define LEAST_ALIGN 16u
#define NUM_SIZES 6u
#define MAX_PAGES 32u
#define MAX_BLOCKS 2048u
#define QUARANTINE 16u
#define MAX_IN_CASE 1024u
#define NUM_KEY_WORDS 32u

extern void *__libc_malloc(size_t len);
extern void *__libc_calloc(size_t num, size_t len);
extern void *__libc_realloc(void *p, size_t len);
extern void *__libc_memalign(size_t align, size_t len);
extern void __libc_free(void *p);

enum state { STATE_NEW, STATE_LIVE, STATE_FREED };

struct block {
    uint8_t *at;
    size_t len;
    enum state state;
};

/* Blocks of at most so many pages, each behind and before a page that cannot be reached. */
static struct size {
    unsigned pages, num_blocks;
    uint8_t *first;
    unsigned num_used;               /* blocks that were ever placed */
    unsigned oldest, num_freed;      /* of the ring */
    uint16_t freed[MAX_BLOCKS];      /* in the order in which they were freed */
    struct block blocks[MAX_BLOCKS]; /* of which num_blocks are there */
} sizes[NUM_SIZES] = {
    {.pages = 1, .num_blocks = 2048}, {.pages = 2, .num_blocks = 512}, {.pages = 4, .num_blocks = 256},
    {.pages = 8, .num_blocks = 128},  {.pages = 16, .num_blocks = 64}, {.pages = MAX_PAGES, .num_blocks = 32},
};

static atomic_flag taken = ATOMIC_FLAG_INIT;
static int watching, wipes;
static unsigned edge;
static uint8_t *region, *region_end;
static struct block *in_case[MAX_IN_CASE]; /* placed or freed in this case */
static unsigned num_in_case;
static uint64_t key_words[NUM_KEY_WORDS];
static unsigned num_key_words;
static struct departure found;

static void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&taken, memory_order_acquire)) {
    }
}

static void unlock(void)
{
    atomic_flag_clear_explicit(&taken, memory_order_release);
}

int heap_available(void)
{
    return 1;
}

void heap_use(int on, int claims_wiping)
{
    size_t page = page_len(), len = page;
    for (unsigned i = 0; i < NUM_SIZES; i++) {
        len += sizes[i].num_blocks * (size_t)(sizes[i].pages + 1) * page;
    }
    uint8_t *at = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        shim_fail("cannot map the guarded heap: raise the memory limit of the lane");
    }
    region = at;
    region_end = at + len;
    at += page;
    for (unsigned i = 0; i < NUM_SIZES; i++) {
        sizes[i].first = at;
        at += sizes[i].num_blocks * (size_t)(sizes[i].pages + 1) * page;
    }
    watching = on;
    wipes = claims_wiping;
}

/* ---- where blocks lie ------------------------------------------------------------------------------------- */

static uint8_t *begin_of(const struct size *s, size_t index)
{
    return s->first + index * (s->pages + 1) * page_len();
}

static size_t index_of(const struct size *s, const uint8_t *p)
{
    return (size_t)(p - s->first) / ((s->pages + 1) * page_len());
}

/* The size whose blocks lie there; an address in front of the first block belongs to it. */
static struct size *size_at(const uint8_t *p)
{
    unsigned i = NUM_SIZES - 1;
    while (i > 0 && p < sizes[i].first) {
        i--;
    }
    return &sizes[i];
}

static int is_placed(const void *p)
{
    return region != NULL && (const uint8_t *)p >= region && (const uint8_t *)p < region_end;
}

static uint64_t distance(const struct block *b, const uint8_t *p)
{
    if (b->at == NULL) {
        return UINT64_MAX;
    }
    return p < b->at ? (uint64_t)(b->at - p) : p < b->at + b->len ? 0 : (uint64_t)(p - b->at) - b->len;
}

int heap_locate(uintptr_t address, int64_t *offset)
{
    const uint8_t *p = (const uint8_t *)address;
    if (!is_placed(p)) {
        return 0;
    }
    const struct size *s = size_at(p);
    size_t index = p < s->first ? 0 : index_of(s, p);
    index = index < s->num_blocks ? index : s->num_blocks - 1;
    const struct block *b = &s->blocks[index], *next = index + 1 < s->num_blocks ? b + 1 : b;
    b = distance(next, p) < distance(b, p) ? next : b;
    *offset = p - b->at;
    return b->at != NULL;
}

/* ---- watching --------------------------------------------------------------------------------------------- */

static void note(uint8_t symptom, uint8_t buffer, int64_t offset, uint64_t registers)
{
    if (found.verdict == VERDICT_NOT_RUN) {
        found = (struct departure){.verdict = VERDICT_DISAGREE, .symptom = symptom, .buffer = buffer};
        found.offset = offset;
        found.registers = registers;
    }
}

/* Canaries: as many bytes as there is room for, at most CANARY_LEN, on each side. */
static void fence(const struct size *s, const struct block *b, size_t *before, size_t *behind)
{
    uint8_t *begin = begin_of(s, (size_t)(b - s->blocks));
    size_t front = (size_t)(b->at - begin), rest = s->pages * page_len() - front - b->len;
    *before = front < CANARY_LEN ? front : CANARY_LEN;
    *behind = rest < CANARY_LEN ? rest : CANARY_LEN;
}

static void set_fence(const struct size *s, const struct block *b)
{
    size_t before, behind;
    fence(s, b, &before, &behind);
    for (size_t i = 0; i < before; i++) {
        b->at[-1 - (ptrdiff_t)i] = CANARY_BYTE(i);
    }
    for (size_t i = 0; i < behind; i++) {
        b->at[b->len + i] = CANARY_BYTE(i);
    }
}

static void check_fence(const struct size *s, const struct block *b)
{
    size_t before, behind;
    fence(s, b, &before, &behind);
    for (size_t i = 0; i < before; i++) {
        if (b->at[-1 - (ptrdiff_t)i] != CANARY_BYTE(i)) {
            note(SYMPTOM_CANARY, BUFFER_CTX, -1 - (int64_t)i, 0);
        }
    }
    for (size_t i = 0; i < behind; i++) {
        if (b->at[b->len + i] != CANARY_BYTE(i)) {
            note(SYMPTOM_CANARY, BUFFER_CTX, (int64_t)(b->len + i), 0);
        }
    }
}

static void check_freed(const struct block *b)
{
    size_t i = 0;
    while (i < b->len && b->at[i] == FREED_BYTE) {
        i++;
    }
    if (i < b->len) {
        note(SYMPTOM_CONTEXT, BUFFER_CTX, (int64_t)i, HEAP_FREED);
    }
}

/* Whether eight bytes are few different ones or go up in even steps, as in vectors and in what self-tests fill memory
 * with: whatever holds them need not have them from the key. */
static int is_plain(const uint8_t *p)
{
    unsigned num_distinct = 0, num_even = 0;
    for (unsigned i = 0; i < 8; i++) {
        num_distinct += memchr(p, p[i], i) == NULL;
        num_even += i > 1 && (uint8_t)(p[i] - p[i - 1]) == (uint8_t)(p[1] - p[0]);
    }
    return num_distinct < 5 || num_even == 6;
}

/* A key is a secret to the end of the case. */
void heap_know_key(const uint8_t *key, size_t key_len)
{
    for (size_t i = 0; wipes && i + 8 <= key_len && num_key_words < NUM_KEY_WORDS; i += 8) {
        if (!is_plain(key + i)) {
            key_words[num_key_words++] = load_le64(key + i);
        }
    }
}

static void check_wiped(const struct block *b)
{
    for (size_t i = 0; num_key_words > 0 && i + 8 <= b->len; i++) {
        uint64_t word = load_le64(b->at + i);
        for (unsigned k = 0; k < num_key_words; k++) {
            if (word == key_words[k]) {
                note(SYMPTOM_WIPE, BUFFER_KEY, (int64_t)i, HEAP_LEFT);
                found.pc = word;
                return;
            }
        }
    }
}

static void remember(struct block *b)
{
    if (num_in_case < MAX_IN_CASE) {
        in_case[num_in_case++] = b;
    }
}

void heap_begin_case(unsigned ctx_edge)
{
    edge = ctx_edge;
    num_in_case = num_key_words = 0;
}

void heap_end_case(void)
{
    lock();
    for (unsigned i = 0; i < num_in_case; i++) {
        const struct block *b = in_case[i];
        if (b->state == STATE_FREED) {
            check_freed(b);
        } else {
            check_fence(size_at(b->at), b);
        }
    }
    num_key_words = 0;
    unlock();
}

int heap_departed(struct departure *d)
{
    if (found.verdict == VERDICT_NOT_RUN) {
        return 0;
    }
    *d = found;
    found.verdict = VERDICT_NOT_RUN;
    return 1;
}

/* ---- placing ---------------------------------------------------------------------------------------------- */

/* A block that is free, the one that was freed first; NULL where there is none left. */
static struct block *take_block(struct size *s)
{
    if (s->num_used < s->num_blocks && s->num_freed <= QUARANTINE) {
        uint8_t *begin = begin_of(s, s->num_used);
        if (mprotect(begin, s->pages * page_len(), PROT_READ | PROT_WRITE) != 0) {
            return NULL;
        }
        return &s->blocks[s->num_used++];
    }
    if (s->num_freed == 0) {
        return NULL;
    }
    struct block *b = &s->blocks[s->freed[s->oldest]];
    s->oldest = (s->oldest + 1) % MAX_BLOCKS;
    s->num_freed--;
    return b;
}

static uint8_t *place_within(const struct size *s, const struct block *b, size_t align, size_t padded)
{
    uint8_t *begin = begin_of(s, (size_t)(b - s->blocks));
    size_t room = s->pages * page_len(), middle = CANARY_LEN + (align > CANARY_LEN ? align - CANARY_LEN : align);
    if (edge == EDGE_START) {
        return begin;
    }
    /* 80 behind a page's beginning: aligned as malloc promises and no better */
    return edge == EDGE_MIDDLE && middle + padded + CANARY_LEN <= room ? begin + middle : begin + room - padded;
}

/* NULL: the C library is to allocate it. */
static void *place(size_t align, size_t len)
{
    align = align < LEAST_ALIGN ? LEAST_ALIGN : align;
    if (!watching || !subject_running || len > MAX_PAGES * page_len() || align > page_len()) {
        return NULL;
    }
    size_t padded = ((len > 0 ? len : 1) + align - 1) / align * align;
    struct block *b = NULL;
    lock();
    for (unsigned i = 0; i < NUM_SIZES && b == NULL; i++) {
        struct size *s = &sizes[i];
        b = padded <= s->pages * page_len() ? take_block(s) : NULL;
        if (b != NULL) {
            b->at = place_within(s, b, align, padded);
            b->len = len;
            b->state = STATE_LIVE;
            set_fence(s, b);
            remember(b);
        }
    }
    unlock();
    return b != NULL ? b->at : NULL;
}

/* The live block that begins there. Whoever names another one corrupts the heap: the process ends as glibc ends it. */
static struct block *block_of(const void *p)
{
    struct size *s = size_at(p);
    struct block *b = (const uint8_t *)p < s->first ? NULL : &s->blocks[index_of(s, p)];
    if (b == NULL || b->at != p || b->state != STATE_LIVE) {
        abort();
    }
    return b;
}

static void release(void *p)
{
    struct block *b = block_of(p);
    lock();
    struct size *s = size_at(p);
    check_fence(s, b);
    check_wiped(b);
    memset(b->at, FREED_BYTE, b->len);
    b->state = STATE_FREED;
    remember(b);
    s->freed[(s->oldest + s->num_freed++) % MAX_BLOCKS] = (uint16_t)(b - s->blocks);
    unlock();
}

/* ---- the C library's names -------------------------------------------------------------------------------- */

void *malloc(size_t len)
{
    void *p = place(0, len);
    return p != NULL ? memset(p, FILL_BYTE, len) : __libc_malloc(len);
}

void *calloc(size_t num, size_t len)
{
    size_t whole;
    void *p = __builtin_mul_overflow(num, len, &whole) ? NULL : place(0, whole);
    return p != NULL ? memset(p, 0, whole) : __libc_calloc(num, len);
}

void free(void *p)
{
    if (is_placed(p)) {
        release(p);
    } else {
        __libc_free(p);
    }
}

void *realloc(void *p, size_t len)
{
    if (p == NULL) {
        return malloc(len);
    }
    if (!is_placed(p)) {
        return __libc_realloc(p, len);
    }
    const struct block *old = block_of(p);
    void *moved = malloc(len);
    if (moved != NULL) {
        memcpy(moved, p, old->len < len ? old->len : len);
        release(p);
    }
    return moved;
}

void *memalign(size_t align, size_t len)
{
    void *p = align != 0 && (align & (align - 1)) == 0 ? place(align, len) : NULL;
    return p != NULL ? memset(p, FILL_BYTE, len) : __libc_memalign(align, len);
}

void *aligned_alloc(size_t align, size_t len)
{
    return memalign(align, len);
}

int posix_memalign(void **p, size_t align, size_t len)
{
    if (align % sizeof(void *) != 0 || align == 0 || (align & (align - 1)) != 0) {
        return EINVAL;
    }
    void *made = memalign(align, len);
    if (made == NULL) {
        return ENOMEM;
    }
    *p = made;
    return 0;
}

size_t malloc_usable_size(void *p)
{
    static size_t (*theirs)(void *);
    if (is_placed(p)) {
        return block_of(p)->len;
    }
    if (theirs == NULL) {
        void *symbol = dlsym(RTLD_NEXT, "malloc_usable_size");
        memcpy(&theirs, &symbol, sizeof theirs);
    }
    return theirs(p);
}
