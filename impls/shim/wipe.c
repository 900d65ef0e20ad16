/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks for secrets in what a call left: the thunk saved the registers that a function may change and 4 KiB of the stack
 * below its frame, before anything was written over them.
 *
 * Secrets are the key that setkey was given and the contexts, which hold what follows from it; for lrw and ghash their
 * second keys. Eight bytes of one of these, in a register or at a multiple of four on the stack, are a departure: as they
 * lie, a word of four bytes twice (registers hold it so), for keys also with the bytes of each word or of both reversed.
 */
#include "shim.h"

#if defined(__x86_64__) || defined(__aarch64__)

#define STACK_LEN 4096u
#define NUM_BUCKETS 32768u
#define MAX_SECRET_LEN 8192u
#define NUM_SECRETS 2u

#if defined(__x86_64__)
#define NUM_GENERAL 9u
#define NUM_VECTORS 16u
#define VECTOR_LEN 32u
#define GENERAL_ROOM 12u
#else
#define NUM_GENERAL 18u
#define NUM_VECTORS 32u
#define VECTOR_LEN 16u
#define GENERAL_ROOM 20u
#endif

struct left {
    uint64_t general[GENERAL_ROOM]; /* to a multiple of 32 bytes */
    uint8_t vectors[NUM_VECTORS][VECTOR_LEN];
    uint8_t stack[STACK_LEN];
};

extern struct left thunk_left;
extern uint64_t thunk_wipe, thunk_call[5];
void thunk_look(void);

static struct {
    uint8_t bytes[MAX_SECRET_LEN];
    size_t len;
    uint8_t kind; /* BUFFER_... */
} known[NUM_SECRETS];
static uint64_t buckets[NUM_BUCKETS]; /* 0: none */
static uint8_t kinds[NUM_BUCKETS];
static struct departure found;

static unsigned num_distinct(uint64_t v, unsigned len)
{
    unsigned num = 0;
    for (unsigned i = 0; i < len; i++) {
        unsigned j = 0;
        while (j < i && (uint8_t)(v >> 8 * j) != (uint8_t)(v >> 8 * i)) {
            j++;
        }
        num += j == i;
    }
    return num;
}

static size_t bucket_of(uint64_t v)
{
    return (size_t)((v * UINT64_C(0x9e3779b97f4a7c15)) >> 49);
}

static void add(uint64_t v, uint8_t kind)
{
    size_t at = bucket_of(v);
    while (buckets[at] != 0 && buckets[at] != v) {
        at = (at + 1) % NUM_BUCKETS;
    }
    buckets[at] = v;
    kinds[at] = kind;
}

static uint8_t kind_of(uint64_t v)
{
    size_t at = bucket_of(v);
    while (buckets[at] != 0 && buckets[at] != v) {
        at = (at + 1) % NUM_BUCKETS;
    }
    return buckets[at] != 0 ? kinds[at] : BUFFER_NONE;
}

/* Small numbers, zeros and fillings are no secrets, whatever holds them. */
static void add_bytes(uint64_t v, uint8_t kind)
{
    if (num_distinct(v, 8) >= 5) {
        add(v, kind);
    }
}

static void add_secret(const uint8_t *p, size_t len, uint8_t kind)
{
    size_t every = kind == BUFFER_KEY ? 1 : 4;
    for (size_t i = 0; i + 8 <= len; i += every) {
        uint64_t v = load_le64(p + i);
        add_bytes(v, kind);
        if (kind == BUFFER_KEY) {
            add_bytes(load_be64(p + i), kind);
            add_bytes((uint64_t)load_be32(p + i + 4) << 32 | load_be32(p + i), kind);
        }
    }
    for (size_t i = 0; i + 4 <= len; i += every) {
        uint64_t word = load_le32(p + i), swapped = load_be32(p + i);
        if (num_distinct(word, 4) >= 3) {
            add(word << 32 | word, kind);
        }
        if (kind == BUFFER_KEY && num_distinct(swapped, 4) >= 3) {
            add(swapped << 32 | swapped, kind);
        }
    }
}

/* Makes the secrets of this call those that are looked for, unless they are already. */
static void know(unsigned index, const uint8_t *p, uint64_t len, uint8_t kind, int *same)
{
    size_t n = len < MAX_SECRET_LEN ? (size_t)len : MAX_SECRET_LEN;
    if (known[index].len != n || known[index].kind != kind || memcmp(known[index].bytes, p, n) != 0) {
        memcpy(known[index].bytes, p, n);
        known[index].len = n;
        known[index].kind = kind;
        *same = 0;
    }
}

#define SLOT(member) \
    ((offsetof(struct subject_leaf, member) - offsetof(struct subject_leaf, setkey)) / sizeof(subject_setkey_fn *))

static void learn(void)
{
    static const uint8_t nothing[1];
    uint64_t slot = thunk_call[0], ctx_len = subject.leaf.ctx_len;
    const uint8_t *first = (const uint8_t *)(uintptr_t)thunk_call[1],
                  *second = (const uint8_t *)(uintptr_t)thunk_call[2];
    int same = 1;
    if (slot == SLOT(ghash)) {
        know(0, first, 16, BUFFER_KEY, &same);
    } else {
        know(0, first, ctx_len, BUFFER_CTX, &same);
    }
    if (slot == SLOT(setkey)) {
        know(1, second, thunk_call[3], BUFFER_KEY, &same);
    } else if (slot == SLOT(lrw_encrypt) || slot == SLOT(lrw_decrypt)) {
        know(1, second, 16, BUFFER_KEY, &same);
    } else if (slot >= SLOT(xts_encrypt) && slot <= SLOT(xts_gb_decrypt)) {
        know(1, second, ctx_len, BUFFER_CTX2, &same);
    } else {
        know(1, nothing, 0, BUFFER_NONE, &same);
    }
    if (!same) {
        memset(buckets, 0, sizeof buckets);
        for (unsigned i = 0; i < NUM_SECRETS; i++) {
            add_secret(known[i].bytes, known[i].len, known[i].kind);
        }
    }
}

/* Whether it is a secret that is left; then it is noted, if it is the first one. */
static void look(uint64_t v, uint64_t registers, int64_t offset)
{
    uint8_t kind = kind_of(v);
    if (kind != BUFFER_NONE && found.verdict == VERDICT_NOT_RUN) {
        found = (struct departure){.verdict = VERDICT_DISAGREE, .symptom = SYMPTOM_WIPE, .buffer = kind};
        found.registers = registers;
        found.offset = offset;
    }
}

void thunk_look(void)
{
    learn();
    for (unsigned i = thunk_call[0] == SLOT(setkey) ? 1 : 0; i < NUM_GENERAL; i++) {
        look(thunk_left.general[i], UINT64_C(1) << (32 + i), 0);
    }
    for (unsigned i = 0; i < NUM_VECTORS; i++) {
        for (unsigned j = 0; j + 8 <= VECTOR_LEN; j += 4) {
            look(load_le64(thunk_left.vectors[i] + j), UINT64_C(1) << i, 0);
        }
    }
    for (unsigned i = STACK_LEN - 8; i < STACK_LEN; i -= 4) {
        look(load_le64(thunk_left.stack + i), 0, (int64_t)i - STACK_LEN);
    }
}

void wipe_watch(int on)
{
    thunk_wipe = (uint64_t)on;
}

int wipe_departed(struct departure *d)
{
    if (found.verdict == VERDICT_NOT_RUN) {
        return 0;
    }
    *d = found;
    found.verdict = VERDICT_NOT_RUN;
    return 1;
}

#else

void wipe_watch(int on)
{
    (void)on;
}

int wipe_departed(struct departure *d)
{
    (void)d;
    return 0;
}

#endif
