/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one message of each algorithm through an adapter and shows what runs in the library, so that a switch of it is
 * seen to change that.
 *
 *   probe entries|marks MODE,CIPHER,DECRYPTING,KEY_LEN,IV_LEN,AAD_LEN,DATA_LEN,TAG_LEN...
 *
 * Each message runs once before, so that what a library does the first time (self-tests, loading, binding of symbols) does
 * not count. Then `marks` makes system calls that no kernel knows around each, for a counter of instructions
 * (impls/bench/insn_plugin.c). `entries` plants a trap at the beginning of each function of every loaded file, as the
 * tables for unwinding name them (.eh_frame_hdr, in the Linux Standard Base), which is gone once it was run into: that
 * costs some microseconds a function, where single steps cost them for each instruction.
 *
 * Output: `module BEGIN END NAME` for each loaded file, hexadecimal addresses; then for each message, in their order,
 * `ran`, `absent` where this build lacks it, or `refused STATUS`, with `entries` followed by `entered ADDRESS...`.
 */
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "adapter.h"

#if defined(__x86_64__)
typedef uint8_t trap_code;
#define TRAP ((trap_code)0xcc) /* int3 */
#define PC(u) ((u)->uc_mcontext.gregs[REG_RIP])
#define BEHIND 1 /* where the processor stops, from the trap's beginning */
#elif defined(__aarch64__)
typedef uint32_t trap_code;
#define TRAP UINT32_C(0xd4200000) /* brk */
#define PC(u) ((u)->uc_mcontext.pc)
#define BEHIND 0
#else
#error "the probe knows the traps of x86-64 and AArch64 only"
#endif

#define MARK_CALL 0x58424eL
#define MAX_LEN 8192u
#define MAX_TAG_LEN 64u
#define MAX_FUNCTIONS 65536u

struct message {
    char mode[33], cipher[33];
    unsigned decrypting;
    unsigned key_len, iv_len, aad_len, data_len, tag_len;
};

static uint8_t key[MAX_LEN], iv[MAX_LEN], aad[MAX_LEN], data[MAX_LEN], out[MAX_LEN], tag[MAX_TAG_LEN];

static _Noreturn void fail(const char *sentence)
{
    fprintf(stderr, "probe: %s\n", sentence);
    exit(2);
}

/* ---- entries ---------------------------------------------------------------------------------------------- */

static struct function {
    uintptr_t at;
    trap_code code; /* in place of which the trap stands */
    int entered;
} functions[MAX_FUNCTIONS];
static size_t num_functions;

static int by_address(const void *a, const void *b)
{
    uintptr_t x = ((const struct function *)a)->at, y = ((const struct function *)b)->at;
    return (x > y) - (x < y);
}

static void write_code(uintptr_t at, trap_code code)
{
    memcpy((void *)at, &code, sizeof code);
    __builtin___clear_cache((char *)at, (char *)at + sizeof code);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    struct function wanted = {.at = (uintptr_t)PC(u) - BEHIND};
    struct function *f = bsearch(&wanted, functions, num_functions, sizeof functions[0], by_address);
    (void)info;
    if (f == NULL || f->entered) {
        (void)signal(number, SIG_DFL);
        return;
    }
    f->entered = 1;
    write_code(f->at, f->code);
    PC(u) -= BEHIND;
}

static int is_ours(const struct dl_phdr_info *info)
{
    static const char *const others[] = {"ld-linux", "libc.so", "libm.so", "linux-vdso", "libstdc++", "libgcc_s"};
    const char *name = strrchr(info->dlpi_name, '/') != NULL ? strrchr(info->dlpi_name, '/') + 1 : info->dlpi_name;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strncmp(name, others[i], strlen(others[i])) == 0) {
            return 0;
        }
    }
    return name[0] != 0;
}

/* The sorted table of an .eh_frame_hdr: pairs of four bytes each, the first a function's place from the table's header. */
static void note_functions(const uint8_t *header)
{
    uint32_t num;
    if (header[0] != 1 || header[1] != 0x1b || header[2] != 0x03 || header[3] != 0x3b) {
        return;
    }
    memcpy(&num, header + 8, sizeof num);
    for (uint32_t i = 0; i < num && num_functions < MAX_FUNCTIONS; i++) {
        int32_t place;
        memcpy(&place, header + 12 + 8 * (size_t)i, sizeof place);
        functions[num_functions++].at = (uintptr_t)header + (uintptr_t)(intptr_t)place;
    }
}

static int note_module(struct dl_phdr_info *info, size_t len, void *nothing)
{
    long page = sysconf(_SC_PAGESIZE);
    (void)len;
    (void)nothing;
    for (unsigned i = 0; is_ours(info) && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + h->p_vaddr, begin = at / (uintptr_t)page * (uintptr_t)page;
        if (h->p_type == PT_GNU_EH_FRAME) {
            note_functions((const uint8_t *)at);
        } else if (h->p_type == PT_LOAD && (h->p_flags & PF_X) != 0 &&
                   mprotect((void *)begin, at + h->p_memsz - begin, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
            fail("the library's code cannot be made writable");
        }
    }
    return 0;
}

static void note_all_functions(void)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    (void)dl_iterate_phdr(note_module, NULL);
    qsort(functions, num_functions, sizeof functions[0], by_address);
    for (size_t i = 0; i < num_functions; i++) {
        memcpy(&functions[i].code, (const void *)functions[i].at, sizeof functions[i].code);
        functions[i].entered = 1;
    }
    if (num_functions == 0 || sigaction(SIGTRAP, &action, NULL) != 0) {
        fail("the library has no tables for unwinding");
    }
}

static void arm(void)
{
    for (size_t i = 0; i < num_functions; i++) {
        functions[i].entered = 0;
        write_code(functions[i].at, TRAP);
    }
}

static void disarm(void)
{
    for (size_t i = 0; i < num_functions; i++) {
        write_code(functions[i].at, functions[i].code);
    }
}

static void print_entered(void)
{
    printf("entered");
    for (size_t i = 0; i < num_functions; i++) {
        if (functions[i].entered) {
            printf(" %lx", (unsigned long)functions[i].at);
        }
    }
    printf("\n");
}

/* ---- messages --------------------------------------------------------------------------------------------- */

enum watching { WATCH_NOTHING, WATCH_ENTRIES, WATCH_MARKS };

/* Bytes without meaning: no weak key, no two equal keys. */
static void fill(uint8_t *to, size_t len, uint32_t seed)
{
    for (size_t i = 0; i < len; i++) {
        seed = seed * UINT32_C(1664525) + UINT32_C(1013904223);
        to[i] = (uint8_t)(seed >> 24);
    }
}

static struct message parsed(const char *text)
{
    struct message m = {.decrypting = 2};
    if (sscanf(text, "%32[a-z0-9_],%32[a-z0-9_],%u,%u,%u,%u,%u,%u", m.mode, m.cipher, &m.decrypting, &m.key_len,
               &m.iv_len, &m.aad_len, &m.data_len, &m.tag_len) != 8 ||
        m.decrypting > 1 || m.key_len > MAX_LEN || m.iv_len > MAX_LEN || m.aad_len > MAX_LEN || m.data_len > MAX_LEN ||
        m.tag_len > MAX_TAG_LEN) {
        fail("give messages as MODE,CIPHER,DECRYPTING,KEY_LEN,IV_LEN,AAD_LEN,DATA_LEN,TAG_LEN");
    }
    return m;
}

/* A tag that is given is wrong: what a library does about it is the same with every switch. */
static int run(const struct subject_session *s, void *h, const struct message *m, int is_mac)
{
    struct subject_lengths lengths = {m->aad_len, m->data_len, m->tag_len};
    int status = s->setkey(h, key, m->key_len, 0);
    status = status != SUBJECT_OK ? status : s->setiv(h, iv, m->iv_len, &lengths);
    if (status == SUBJECT_OK && s->expect != NULL && m->decrypting && m->tag_len > 0) {
        status = s->expect(h, tag, m->tag_len);
    }
    if (status == SUBJECT_OK && m->aad_len > 0) {
        status = s->aad(h, aad, m->aad_len);
    }
    status = status != SUBJECT_OK ? status : s->update(h, is_mac ? NULL : out, data, m->data_len, 1);
    status = status != SUBJECT_OK ? status : s->final(h);
    if (status == SUBJECT_OK && m->tag_len > 0) {
        status = s->tag(h, tag, m->tag_len);
    }
    return status == SUBJECT_BAD_TAG ? SUBJECT_OK : status;
}

static void around(enum watching how, void (*entries)(void))
{
    if (how == WATCH_ENTRIES) {
        entries();
    } else if (how == WATCH_MARKS) {
        (void)syscall(MARK_CALL);
    }
}

static int message(const struct message *m, enum watching how)
{
    const struct subject_session *s = &PROVIDER_SESSION;
    int is_mac = m->tag_len > 0 && m->aad_len == 0 && m->iv_len == 0;
    void *h = s->block_len(m->mode, m->cipher) != 0 ? s->open(m->mode, m->cipher, (int)m->decrypting) : NULL;
    fill(key, m->key_len, 1);
    fill(iv, m->iv_len, 2);
    fill(aad, m->aad_len, 3);
    fill(data, m->data_len, 4);
    fill(tag, m->tag_len, 5);
    around(how, arm);
    int status = h != NULL ? run(s, h, m, is_mac) : SUBJECT_UNSUPPORTED;
    around(how, disarm);
    if (h != NULL) {
        s->close(h);
    }
    return status;
}

static int print_module(struct dl_phdr_info *info, size_t len, void *nothing)
{
    (void)len;
    (void)nothing;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type == PT_LOAD && (h->p_flags & PF_X) != 0 && info->dlpi_name[0] != 0) {
            unsigned long begin = (unsigned long)(info->dlpi_addr + h->p_vaddr);
            printf("module %lx %lx %s\n", begin, begin + (unsigned long)h->p_memsz, info->dlpi_name);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    int entries = argc > 1 && strcmp(argv[1], "entries") == 0;
    if (argc < 2 || (!entries && strcmp(argv[1], "marks") != 0)) {
        fail("say entries or marks, then messages");
    }
    (void)PROVIDER_SESSION.version();
    for (int i = 2; i < argc; i++) {
        struct message m = parsed(argv[i]);
        (void)message(&m, WATCH_NOTHING);
    }
    (void)dl_iterate_phdr(print_module, NULL);
    if (entries) {
        note_all_functions();
    }
    for (int i = 2; i < argc; i++) {
        struct message m = parsed(argv[i]);
        int status = message(&m, entries ? WATCH_ENTRIES : WATCH_MARKS);
        if (PROVIDER_SESSION.block_len(m.mode, m.cipher) == 0) {
            puts("absent");
        } else if (status == SUBJECT_OK) {
            puts("ran");
        } else {
            printf("refused %d\n", status);
        }
        if (entries) {
            print_entered();
        }
    }
    return 0;
}
