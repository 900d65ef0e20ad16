/* SPDX-License-Identifier: Apache-2.0
 * A function with more arguments than Windows x64 has registers for, which uses what only one convention lets it use;
 * AT_LEAVE of fault.h is its fault. */
#include "fault.h"
#include "subject_asm.h"

#if defined(__x86_64__)

/* uint64_t planted_sum(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f): a + 2b + 4c + 8d + 16e + 32f */
FUNCTION(planted_sum)
    ENTER_6
    pushq %rbx
    pushq %r12
    movq %r9, %rbx
    addq %rbx, %rbx
    addq %r8, %rbx
    addq %rbx, %rbx
    addq %rcx, %rbx
    addq %rbx, %rbx
    addq %rdx, %rbx
    addq %rbx, %rbx
    movq %rbx, %xmm6
    movq %rsi, %xmm7
    paddq %xmm7, %xmm6
    paddq %xmm6, %xmm6
    movq %xmm6, %rax
    addq %rdi, %rax
    popq %r12
    popq %rbx
    RESTORE
    AT_LEAVE
    ret
END(planted_sum)

#endif

    .section .note.GNU-stack, "", %progbits
