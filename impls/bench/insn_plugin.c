/* SPDX-License-Identifier: GPL-2.0-or-later OR Apache-2.0
 *
 * A plugin for QEMU's user-mode emulator: counts the guest's instructions between two marks and writes each count as a
 * line to the file out=PATH; with trace=PATH also the address of each of these instructions, eight bytes in the host's
 * order, to that file. A mark is a system call that no kernel knows (MARK_CALL, made by bench_main.c). No package
 * ships qemu-plugin.h, so the few functions used are declared here, from "QEMU TCG Plugins" in QEMU's documentation, for
 * version 1 of the interface.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK_CALL INT64_C(0x58424e)
#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint64_t qemu_plugin_id_t;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
typedef void tb_trans_fn(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void exec_fn(unsigned vcpu, void *data);
typedef void syscall_fn(qemu_plugin_id_t id, unsigned vcpu, int64_t num, uint64_t a1, uint64_t a2, uint64_t a3,
                        uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_trans_fn *callback);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, syscall_fn *callback);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, enum qemu_plugin_op op, void *to,
                                              uint64_t add);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, exec_fn *callback, enum qemu_plugin_cb_flags flags,
                                          void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

extern EXPORT int qemu_plugin_version;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv);

int qemu_plugin_version = 1;

static uint64_t executed;
static uint64_t at_first_mark;
static int marked;
static FILE *out, *trace;

/* The addresses of a block's instructions. Blocks live as long as the process. */
struct block {
    size_t num;
    uint64_t addresses[];
};

static void passed(unsigned vcpu, void *data)
{
    (void)vcpu;
    const struct block *block = data;
    if (marked && fwrite(block->addresses, sizeof block->addresses[0], block->num, trace) != block->num) {
        fputs("insn_plugin: the trace cannot be written\n", stderr);
        exit(3);
    }
}

/* A block is executed whole unless it faults, which the bench program does not. */
static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    size_t num = qemu_plugin_tb_n_insns(tb);
    qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &executed, num);
    if (trace == NULL) {
        return;
    }
    struct block *block = malloc(sizeof *block + num * sizeof block->addresses[0]);
    if (block == NULL) {
        fputs("insn_plugin: there is no memory for a block's addresses\n", stderr);
        exit(3);
    }
    block->num = num;
    for (size_t i = 0; i < num; i++) {
        block->addresses[i] = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, i));
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, passed, QEMU_PLUGIN_CB_NO_REGS, block);
}

static void called(qemu_plugin_id_t id, unsigned vcpu, int64_t num, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                   uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    (void)id, (void)vcpu, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (num != MARK_CALL) {
        return;
    }
    if (marked) {
        fprintf(out, "%" PRIu64 "\n", executed - at_first_mark);
        fflush(out);
        if (trace != NULL) {
            fflush(trace);
        }
    }
    marked = !marked;
    at_first_mark = executed;
}

static FILE *opened(const char *argument, const char *name)
{
    size_t len = strlen(name);
    return strncmp(argument, name, len) == 0 ? fopen(argument + len, "we") : NULL;
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
    (void)info;
    out = argc > 0 ? opened(argv[0], "out=") : NULL;
    trace = argc > 1 ? opened(argv[1], "trace=") : NULL;
    if (argc > 2 || out == NULL || (argc == 2 && trace == NULL)) {
        fputs("insn_plugin: give out=FILE, then trace=FILE or not, files that can be written\n", stderr);
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, called);
    return 0;
}
