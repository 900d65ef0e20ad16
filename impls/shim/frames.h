/* SPDX-License-Identifier: Apache-2.0
 * What a signal's frame says of the instruction that it interrupted, on each architecture. */
#ifndef CROSSLANE_FRAMES_H
#define CROSSLANE_FRAMES_H

#include <stdint.h>
#include <ucontext.h>

/* Some emulators enter a handler with the stack 8 bytes off, where the compiler's own aligned stores fault (qemu-x86_64
 * 7.2). */
#if defined(__x86_64__)
#define HANDLER __attribute__((force_align_arg_pointer))
#else
#define HANDLER
#endif

uintptr_t frame_pc(const ucontext_t *u);
/* Where the trap stands that a SIGTRAP came from. */
uintptr_t frame_trap_place(const ucontext_t *u);
void frame_resume_at(ucontext_t *u, uintptr_t pc);
/* Whether the instruction wrote to the address that it could not reach; otherwise it read. */
int frame_fault_is_write(const ucontext_t *u, uintptr_t address);

#endif
