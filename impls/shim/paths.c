/* SPDX-License-Identifier: Apache-2.0
 * Traps in the places that SUBJECT_PATH declared. What they replace is a nop: behind a trap that was run into, execution
 * goes on, and the trap stays for a while. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "shim.h"

/* In how many calls of one length class its unseen paths are armed, before the next batch whose number is a power of two:
 * a class in which a path cannot be reached would otherwise cost a trap each time that another class takes it. */
#define MAX_CHANCES 8u

/* So many hits that taught nothing take a path's traps away. Under an emulator a change of code costs ten times what a hit
 * does, since code around it is translated anew. */
#define MAX_STALE 16u

struct record {
    int32_t place; /* relative to the record */
    int32_t name;  /* likewise */
};

#if defined(__x86_64__) || defined(__aarch64__)

/* The linker's bounds of the section; the weak ones are NULL where no implementation declares a path. */
extern const struct record __start_crosslane_paths[] __attribute__((weak));
extern const struct record __stop_crosslane_paths[] __attribute__((weak));

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
static unsigned num_places;
static const char *path_names[MAX_PATHS];
static unsigned num_paths;
static uint64_t taken[NUM_CLASSES];
static uint64_t armed;
static unsigned chances[NUM_CLASSES];
static uint64_t num_batches;
static unsigned current_class;
static unsigned stale[MAX_PATHS]; /* hits that taught nothing since a path was armed */

static unsigned path_index(const char *name)
{
    unsigned i = 0;
    while (i < num_paths && strcmp(path_names[i], name) != 0) {
        i++;
    }
    if (i == num_paths) {
        if (num_paths == MAX_PATHS) {
            shim_fail("an implementation declares more than 64 paths");
        }
        path_names[num_paths++] = name;
    }
    return i;
}

void paths_init(const char *symbol)
{
    size_t symbol_len = strlen(symbol);
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (const struct record *r = __start_crosslane_paths; r < __stop_crosslane_paths; r++) {
        const char *name = (const char *)((uintptr_t)r + (uintptr_t)(intptr_t)r->name);
        if (strncmp(name, symbol, symbol_len) != 0 || name[symbol_len] != ':') {
            continue;
        }
        if (num_places == MAX_PLACES) {
            shim_fail("an implementation declares its paths in more than 512 places");
        }
        uintptr_t place = (uintptr_t)r + (uintptr_t)(intptr_t)r->place;
        places[num_places].place = (insn *)place;
        places[num_places].path = path_index(name + symbol_len + 1);
        num_places++;
        low = place < low ? place : low;
        high = place > high ? place : high;
    }
    if (num_places > 0) {
        uintptr_t first = low & ~(uintptr_t)(page_len() - 1);
        uintptr_t end = (high + sizeof(insn) + page_len() - 1) & ~(uintptr_t)(page_len() - 1);
        if (mprotect((void *)first, end - first, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
            shim_fail("the host does not let code be patched, which path traps need (mprotect with write and exec)");
        }
    }
}

static void put(insn *place, insn value)
{
    __atomic_store_n(place, value, __ATOMIC_RELEASE);
    __builtin___clear_cache((char *)place, (char *)place + sizeof(insn));
}

void paths_begin_batch(void)
{
    num_batches++;
    if ((num_batches & (num_batches - 1)) == 0) {
        memset(chances, 0, sizeof chances);
    }
}

void paths_arm(unsigned length_class)
{
    current_class = length_class;
    uint64_t all = num_paths == 64 ? UINT64_MAX : (UINT64_C(1) << num_paths) - 1;
    if ((all & ~taken[length_class]) == 0 || chances[length_class] == MAX_CHANCES) {
        return;
    }
    chances[length_class]++;
    uint64_t want = all & ~taken[length_class] & ~armed;
    if (want == 0) {
        return;
    }
    for (unsigned i = 0; i < num_places; i++) {
        if (((want >> places[i].path) & 1u) != 0) {
            put(places[i].place, TRAP_INSN);
        }
    }
    armed |= want;
    for (unsigned path = 0; path < num_paths; path++) {
        stale[path] = ((want >> path) & 1u) != 0 ? 0 : stale[path];
    }
}

void paths_disarm(void)
{
    for (unsigned i = 0; i < num_places; i++) {
        if (((armed >> places[i].path) & 1u) != 0) {
            put(places[i].place, NOP_INSN);
        }
    }
    armed = 0;
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
    uint64_t bit = UINT64_C(1) << path;
    if ((taken[current_class] & bit) == 0) {
        taken[current_class] |= bit;
    } else if ((armed & bit) != 0 && ++stale[path] == MAX_STALE) {
        armed &= ~bit;
        for (i = 0; i < num_places; i++) {
            if (places[i].path == path) {
                put(places[i].place, NOP_INSN);
            }
        }
    }
    return sizeof(insn);
}

/* As if no batch had run yet. */
void paths_forget(void)
{
    paths_disarm();
    memset(taken, 0, sizeof taken);
    num_batches = 0;
}

const uint64_t *paths_taken(void)
{
    return taken;
}

unsigned paths_count(void)
{
    return num_paths;
}

const char *paths_name(unsigned index)
{
    return path_names[index];
}

#else

static const uint64_t taken[NUM_CLASSES];

void paths_init(const char *symbol)
{
    (void)symbol;
}

void paths_begin_batch(void)
{
}

void paths_forget(void)
{
}

void paths_arm(unsigned length_class)
{
    (void)length_class;
}

void paths_disarm(void)
{
}

size_t paths_hit(uintptr_t pc)
{
    (void)pc;
    return 0;
}

const uint64_t *paths_taken(void)
{
    return taken;
}

unsigned paths_count(void)
{
    return 0;
}

const char *paths_name(unsigned index)
{
    (void)index;
    return "";
}

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
