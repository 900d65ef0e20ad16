/* SPDX-License-Identifier: GPL-2.0-or-later OR Apache-2.0
 *
 * A plugin for QEMU's user-mode emulator: counts the guest's instructions between two marks and writes each count as a
 * line to the file out=PATH. A mark is a system call that no kernel knows (MARK_CALL, made by bench_main.c). No package
 * ships qemu-plugin.h, so the few functions used are declared here, from "QEMU TCG Plugins" in QEMU's documentation, for
 * version 1 of the interface.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MARK_CALL INT64_C(0x58424e)
#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
typedef uint64_t qemu_plugin_id_t;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
typedef void tb_trans_fn(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void syscall_fn(qemu_plugin_id_t id, unsigned vcpu, int64_t num, uint64_t a1, uint64_t a2, uint64_t a3,
                        uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_trans_fn *callback);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, syscall_fn *callback);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, enum qemu_plugin_op op, void *to,
                                              uint64_t add);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);

extern EXPORT int qemu_plugin_version;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv);

int qemu_plugin_version = 1;

static uint64_t executed;
static uint64_t at_first_mark;
static int marked;
static FILE *out;

/* A block is executed whole unless it faults, which the bench program does not. */
static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &executed, qemu_plugin_tb_n_insns(tb));
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
    }
    marked = !marked;
    at_first_mark = executed;
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
    (void)info;
    if (argc != 1 || strncmp(argv[0], "out=", 4) != 0 || (out = fopen(argv[0] + 4, "we")) == NULL) {
        fputs("insn_plugin: give out=FILE, a file that can be written\n", stderr);
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, called);
    return 0;
}
