/* SPDX-License-Identifier: Apache-2.0
 * Counts hits of declared code paths, by path and length class. A trap stands in each place that SUBJECT_PATH declared; what
 * it replaces is a nop, so that execution goes on behind it. */
#define _GNU_SOURCE
#include "target.h"

#include "frames.h"
#include "shim.h"

#include <sys/mman.h>

struct record {
    int32_t place; /* relative to the record */
    int32_t name;  /* likewise */
};

#if defined(__x86_64__) || defined(__aarch64__)

extern const struct record __start_crosslane_paths[] __attribute__((weak, visibility("hidden")));
extern const struct record __stop_crosslane_paths[] __attribute__((weak, visibility("hidden")));

#if defined(__x86_64__)
typedef uint8_t insn;
#define NOP_INSN 0x90u
#define TRAP_INSN 0xccu
#else
typedef uint32_t insn;
#define NOP_INSN 0xd503201fu
#define TRAP_INSN 0xd4200000u
#endif

#define MAX_PLACES 512u

static struct {
    insn *place;
    unsigned path;
} places[MAX_PLACES];
static unsigned num_places, num_paths, length_class;
static const char *names[MAX_PATHS];
static uint16_t ever[MAX_PATHS]; /* length classes in which a path was hit */
static uint8_t stale[MAX_PATHS]; /* hits since a path was armed that told nothing new */
static uint8_t armed[MAX_PATHS];
static uint8_t chances[NUM_CLASSES];
static uint64_t num_cases;
static uint8_t *counters;

/* In how many calls of one length class its unseen paths are armed before the next case whose number is a power of two. */
#define MAX_CHANCES 8u
/* So many hits that tell nothing new take a path's traps away. */
#define MAX_STALE 16u

static void *resolved(const struct record *r, int32_t relative)
{
    return (void *)((uintptr_t)r + (uintptr_t)(intptr_t)relative);
}

static unsigned path_index(const char *name)
{
    unsigned i = 0;
    while (i < num_paths && strcmp(names[i], name) != 0) {
        i++;
    }
    if (i == num_paths && num_paths < MAX_PATHS) {
        names[num_paths++] = name;
    }
    return i < MAX_PATHS ? i : MAX_PATHS - 1;
}

static void set_traps(unsigned path, int on)
{
    armed[path] = (uint8_t)on;
    for (unsigned i = 0; i < num_places; i++) {
        if (places[i].path == path) {
            __atomic_store_n(places[i].place, (insn)(on ? TRAP_INSN : NOP_INSN), __ATOMIC_RELEASE);
            __builtin___clear_cache((char *)places[i].place, (char *)places[i].place + sizeof(insn));
        }
    }
}

void paths_count_into(uint8_t *to)
{
    counters = to;
    if (num_places > 0) {
        return;
    }
    for (const struct record *r = __start_crosslane_paths; r < __stop_crosslane_paths && num_places < MAX_PLACES; r++) {
        insn *place = resolved(r, r->place);
        uintptr_t page = (uintptr_t)place & ~(uintptr_t)(page_len() - 1);
        if (mprotect((void *)page, page_len(), PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
            shim_fail("the code under test cannot be made writable, which traps on its paths need");
        }
        places[num_places].place = place;
        places[num_places++].path = path_index(resolved(r, r->name));
    }
}

void paths_begin_batch(void)
{
    num_cases++;
    if ((num_cases & (num_cases - 1)) == 0) {
        memset(chances, 0, sizeof chances);
    }
}

/* A counter tells of a path in a length class the first time that it is taken. What is known of an engine's corpus is then
 * known; a trap in every call would cost more than all the rest of it. */
void paths_arm(unsigned wanted)
{
    length_class = wanted;
    if (chances[wanted] == MAX_CHANCES) {
        return;
    }
    int some = 0;
    for (unsigned path = 0; path < num_paths; path++) {
        if ((ever[path] >> wanted & 1u) == 0) {
            some = 1;
            stale[path] = 0;
            if (!armed[path]) {
                set_traps(path, 1);
            }
        }
    }
    chances[wanted] = (uint8_t)(chances[wanted] + some);
}

size_t paths_hit(uintptr_t pc)
{
    unsigned i = 0;
    while (i < num_places && (uintptr_t)places[i].place != pc) {
        i++;
    }
    if (i == num_places) {
        return 0;
    }
    unsigned path = places[i].path;
    uint16_t bit = (uint16_t)(1u << length_class);
    if ((ever[path] & bit) == 0) {
        ever[path] |= bit;
        counters[NUM_CLASSES * path + length_class] = 1;
    } else if (++stale[path] >= MAX_STALE && armed[path]) {
        set_traps(path, 0);
    }
    return sizeof(insn);
}

unsigned paths_total(void)
{
    return num_paths;
}

const char *paths_title(unsigned index)
{
    return names[index];
}

#else
#error "fuzz targets run where code paths can be seen: x86-64 and AArch64"
#endif

unsigned paths_length_class(size_t len, size_t block_len)
{
    size_t blocks = len / block_len;
    unsigned bucket = 0;
    while (blocks != 0 && bucket < 7) {
        bucket++;
        blocks >>= 1;
    }
    return 2 * bucket + (len % block_len != 0);
}
