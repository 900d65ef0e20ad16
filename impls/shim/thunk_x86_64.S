/* SPDX-License-Identifier: Apache-2.0
 *
 * Thunks for the slots of a leaf: registers hold noise when the subject begins and are compared when it is back.
 * System V ABI for x86-64, 3.2.1 (callee-saved: rbx rbp r12-r15 rsp; DF clear; MXCSR and x87 control bits kept; the
 * x87 stack empty). Arguments in rdi rsi rdx rcx r8 r9 pass through, at most six. One call at a time: what is kept
 * lies in static cells, since no register may be trusted.
 *
 * Also done before each call: all vector registers with their upper halves, the scratch and unused argument registers,
 * bits 63:32 of setkey's 32-bit policy, and 512 bytes of dead stack below the frame are filled with noise.
 */
    .set NUM_SLOTS, 32
    .set DEAD_STACK, 512
    .set WATCHED_STACK, 4096

    .data
    .balign 64
saved_rbx: .quad 0
saved_rbp: .quad 0
saved_r12: .quad 0
saved_r13: .quad 0
saved_r14: .quad 0
saved_r15: .quad 0
saved_rsp: .quad 0
result_rax: .quad 0
saved_mxcsr: .long 0
now_mxcsr: .long 0
saved_x87: .short 0
now_x87: .short 0
    .balign 8
    .globl thunk_departures
    .hidden thunk_departures
thunk_departures: .quad 0
    .globl thunk_targets
    .hidden thunk_targets
thunk_targets: .fill NUM_SLOTS, 8, 0
    .globl thunk_has_avx
    .hidden thunk_has_avx
thunk_has_avx: .quad 0
noise_turn: .quad 0
    .globl thunk_wipe
    .hidden thunk_wipe
thunk_wipe: .quad 0                     /* whether wipe.c is to look at what a call left */
    .globl thunk_call
    .hidden thunk_call
thunk_call: .fill 5, 8, 0               /* the slot, then its first four arguments */
    .balign 32
    .globl thunk_left
    .hidden thunk_left
thunk_left: .fill 9, 8, 0               /* struct left of wipe.c: rax rcx rdx rsi rdi r8-r11, ymm0-ymm15, dead stack */
    .balign 32
left_vectors: .fill 64, 8, 0
left_stack: .fill 512, 8, 0

    .section .rodata
    .balign 64
noise_rbx: .quad 0x9e3779b97f4a7c15
noise_rbp: .quad 0xbf58476d1ce4e5b9
noise_r12: .quad 0x94d049bb133111eb
noise_r13: .quad 0xd6e8feb86659fd93
noise_r14: .quad 0xa0761d6478bd642f
noise_r15: .quad 0xe7037ed1a0b428db
noise_upper: .quad 0x8ebc6af000000000
    .balign 32
/* Twice 16 vectors, the second time complemented: calls take them in turn, so that every bit is seen as 0 and as 1. */
noise_vectors:
    .set value, 0x243f6a8885a308d3
    .rept 64
    .quad value
    .set value, value * 0x5851f42d4c957f2d + 0x14057b7ef767814f
    .endr
    .set value, 0x243f6a8885a308d3
    .rept 64
    .quad ~value
    .set value, value * 0x5851f42d4c957f2d + 0x14057b7ef767814f
    .endr
    .set NOISE_LEN, 512

    .text
    .globl thunk_stubs
    .hidden thunk_stubs
    .type thunk_stubs, @function
    .balign 16
thunk_stubs:
    .set stub, 0
    .rept NUM_SLOTS
    movl $stub, %eax
    jmp thunk_common
    .balign 16
    .set stub, stub + 1
    .endr
    .size thunk_stubs, . - thunk_stubs

    .altmacro
    .macro LOAD_YMM number
    vmovdqa 32*\number(%r10), %ymm\number
    .endm

    .macro LOAD_XMM number
    movdqa 32*\number(%r10), %xmm\number
    .endm

    .macro STORE_YMM number
    vmovdqu %ymm\number, -40-32*\number(%rsp)
    .endm

    .macro STORE_XMM number
    movdqu %xmm\number, -40-32*\number(%rsp)
    movdqu %xmm\number, -24-32*\number(%rsp)
    .endm

    .macro SAVE_YMM number
    vmovdqu %ymm\number, left_vectors+32*\number(%rip)
    .endm

    .macro SAVE_XMM number
    movdqu %xmm\number, left_vectors+32*\number(%rip)
    .endm

    .macro KEEP_CHECK reg, bit
    cmpq noise_\reg(%rip), %\reg
    je 9f
    orl $(1 << \bit), %ecx
9:
    movq saved_\reg(%rip), %\reg
    .endm

    .type thunk_common, @function
thunk_common:
    movq %rbx, saved_rbx(%rip)
    movq %rbp, saved_rbp(%rip)
    movq %r12, saved_r12(%rip)
    movq %r13, saved_r13(%rip)
    movq %r14, saved_r14(%rip)
    movq %r15, saved_r15(%rip)
    movq %rsp, saved_rsp(%rip)
    stmxcsr saved_mxcsr(%rip)
    fnstcw saved_x87(%rip)
    leaq thunk_targets(%rip), %r11
    movq (%r11,%rax,8), %r11
    testl %eax, %eax
    jne 1f
    orq noise_upper(%rip), %rcx         /* slot 0 is setkey: its policy has 32 bits */
1:
    cmpl $2, %eax                       /* slots 0 to 2 have four arguments, those to 14 five, the others up to six */
    ja 10f
    movq noise_rbp(%rip), %r8
10: cmpl $14, %eax
    ja 11f
    movq noise_r12(%rip), %r9
11: xorq $NOISE_LEN, noise_turn(%rip)
    leaq noise_vectors(%rip), %r10
    addq noise_turn(%rip), %r10
    cmpq $0, thunk_has_avx(%rip)
    je 2f
    .set n, 0
    .rept 16
    LOAD_YMM %n
    .set n, n + 1
    .endr
    .set n, 0
    .rept DEAD_STACK / 32
    STORE_YMM %n
    .set n, n + 1
    .endr
    jmp 3f
2:
    .set n, 0
    .rept 16
    LOAD_XMM %n
    .set n, n + 1
    .endr
    .set n, 0
    .rept DEAD_STACK / 32
    STORE_XMM %n
    .set n, n + 1
    .endr
3:
    cmpq $0, thunk_wipe(%rip)
    jne wipe_before
called_with_noise:
    movq noise_rbx(%rip), %rbx
    movq noise_rbp(%rip), %rbp
    movq noise_r12(%rip), %r12
    movq noise_r13(%rip), %r13
    movq noise_r14(%rip), %r14
    movq noise_r15(%rip), %r15
    movq %rbx, %r10
    subq $8, %rsp
    call *%r11
    movq %rax, result_rax(%rip)
    cmpq $0, thunk_wipe(%rip)
    jne wipe_after
left_saved:
    xorl %ecx, %ecx
    leaq 8(%rsp), %rax
    cmpq saved_rsp(%rip), %rax
    je 4f
    orl $(1 << 6), %ecx
    movq saved_rsp(%rip), %rsp
    subq $8, %rsp
4:
    KEEP_CHECK rbx, 0
    KEEP_CHECK rbp, 1
    KEEP_CHECK r12, 2
    KEEP_CHECK r13, 3
    KEEP_CHECK r14, 4
    KEEP_CHECK r15, 5
    pushfq
    popq %rax
    testl $0x400, %eax
    je 5f
    cld
    orl $(1 << 7), %ecx
5:
    stmxcsr now_mxcsr(%rip)
    movl now_mxcsr(%rip), %eax
    xorl saved_mxcsr(%rip), %eax
    testl $0xffc0, %eax
    je 6f
    ldmxcsr saved_mxcsr(%rip)
    orl $(1 << 8), %ecx
6:
    fnstcw now_x87(%rip)
    movzwl now_x87(%rip), %eax
    cmpw saved_x87(%rip), %ax
    je 7f
    fldcw saved_x87(%rip)
    orl $(1 << 9), %ecx
7:
    fldz                                /* overflows, and says so, unless the register stack is empty */
    fstp %st(0)
    fnstsw %ax
    testl $0x3840, %eax                 /* top of stack, stack fault; other exceptions are the subject's own */
    je 8f
    fninit
    fldcw saved_x87(%rip)
    orl $(1 << 10), %ecx
8:
    addq $8, %rsp
    testl %ecx, %ecx
    je 9f
    orq %rcx, thunk_departures(%rip)
9:
    cmpq $0, thunk_wipe(%rip)
    jne 12f
    movq result_rax(%rip), %rax
    ret
12:
    subq $8, %rsp
    call thunk_look
    addq $8, %rsp
    movq result_rax(%rip), %rax
    ret

/* For wipe.c: the arguments, and noise in all of the stack that will be looked at. */
wipe_before:
    movq %rax, thunk_call(%rip)
    movq %rdi, thunk_call+8(%rip)
    movq %rsi, thunk_call+16(%rip)
    movq %rdx, thunk_call+24(%rip)
    movq %rcx, thunk_call+32(%rip)
    leaq -8-WATCHED_STACK(%rsp), %r10
    movl $(WATCHED_STACK - DEAD_STACK) / 16, %eax
13: movdqu %xmm0, (%r10)
    addq $16, %r10
    decl %eax
    jnz 13b
    jmp called_with_noise

/* What the call left, before anything is written over it. */
wipe_after:
    movq %rax, thunk_left(%rip)
    movq %rcx, thunk_left+8(%rip)
    movq %rdx, thunk_left+16(%rip)
    movq %rsi, thunk_left+24(%rip)
    movq %rdi, thunk_left+32(%rip)
    movq %r8, thunk_left+40(%rip)
    movq %r9, thunk_left+48(%rip)
    movq %r10, thunk_left+56(%rip)
    movq %r11, thunk_left+64(%rip)
    cmpq $0, thunk_has_avx(%rip)
    je 14f
    .set n, 0
    .rept 16
    SAVE_YMM %n
    .set n, n + 1
    .endr
    jmp 15f
14:
    .set n, 0
    .rept 16
    SAVE_XMM %n
    .set n, n + 1
    .endr
15:
    leaq 8(%rsp), %rax
    cmpq saved_rsp(%rip), %rax
    jne left_saved
    leaq -WATCHED_STACK(%rsp), %rcx
    leaq left_stack(%rip), %rdx
    movl $WATCHED_STACK / 16, %eax
16: movdqu (%rcx), %xmm0
    movdqu %xmm0, (%rdx)
    addq $16, %rcx
    addq $16, %rdx
    decl %eax
    jnz 16b
    jmp left_saved
    .size thunk_common, . - thunk_common

    .section .note.GNU-stack, "", @progbits
