/* SPDX-License-Identifier: Apache-2.0
 *
 * Thunks for assembly functions that C code calls by SUBJECT_ASM_CALL (subject_asm.h), for both conventions: registers
 * that the function has to keep hold noise when it begins and are compared when it is back. System V as in
 * thunk_x86_64.S; Windows x64 also keeps rdi, rsi and all of xmm6 to xmm15, and gives the function 32 bytes of shadow
 * space above its return address, which hold noise. Up to eight words of stack arguments are handed on.
 *
 * One call at a time. Bits of thunk_departures as in thunk_x86_64.S, further 11 rdi, 12 rsi, 13 to 22 xmm6 to xmm15.
 */
    .set NUM_WORDS, 8
    .set FRAME_LEN, 8 + 32 + 8 * NUM_WORDS

    .data
    .balign 64
saved_xmm: .fill 20, 8, 0
saved_rbx: .quad 0
saved_rbp: .quad 0
saved_r12: .quad 0
saved_r13: .quad 0
saved_r14: .quad 0
saved_r15: .quad 0
saved_rdi: .quad 0
saved_rsi: .quad 0
saved_rsp: .quad 0
result_rax: .quad 0
saved_mxcsr: .long 0
now_mxcsr: .long 0
saved_x87: .short 0
now_x87: .short 0

    .section .rodata
    .balign 64
noise_xmm:
    .set value, 0x13198a2e03707344
    .rept 20
    .quad value
    .set value, value * 0x5851f42d4c957f2d + 0x14057b7ef767814f
    .endr
noise_rbx: .quad 0x452821e638d01377
noise_rbp: .quad 0xbe5466cf34e90c6c
noise_r12: .quad 0xc0ac29b7c97c50dd
noise_r13: .quad 0x3f84d5b5b5470917
noise_r14: .quad 0x9216d5d98979fb1b
noise_r15: .quad 0xd1310ba698dfb5ac
noise_rdi: .quad 0x2ffd72dbd01adfb7
noise_rsi: .quad 0xb8e1afed6a267e96

    .text
    .altmacro
    .macro KEEP reg
    movq %\reg, saved_\reg(%rip)
    movq noise_\reg(%rip), %\reg
    .endm

    .macro KEPT reg, bit
    cmpq noise_\reg(%rip), %\reg
    je 77f
    orl $(1 << \bit), %ecx
77: movq saved_\reg(%rip), %\reg
    .endm

    .macro KEEP_XMM number
    movdqa %xmm\number, saved_xmm+16*(\number-6)(%rip)
    movdqa noise_xmm+16*(\number-6)(%rip), %xmm\number
    .endm

    .macro KEPT_XMM number
    movdqa %xmm\number, %xmm0
    pcmpeqb noise_xmm+16*(\number-6)(%rip), %xmm0
    pmovmskb %xmm0, %eax
    cmpl $0xffff, %eax
    je 77f
    orl $(1 << (\number+7)), %ecx
77: movdqa saved_xmm+16*(\number-6)(%rip), %xmm\number
    .endm

    .macro NOISE_XMM number
    movdqa noise_xmm+16*\number(%rip), %xmm\number
    .endm

    .macro WORD from, to
    movq \from(%rsp), %rax
    movq %rax, \to(%rsp)
    .endm

    .macro THUNK name, windows
    .globl \name
    .hidden \name
    .type \name, @function
    .balign 16
\name:
    KEEP rbx
    KEEP rbp
    KEEP r12
    KEEP r13
    KEEP r14
    KEEP r15
    movq %rsp, saved_rsp(%rip)
    stmxcsr saved_mxcsr(%rip)
    fnstcw saved_x87(%rip)
    subq $FRAME_LEN, %rsp
    .set n, 0
    .rept 6
    NOISE_XMM %n
    .set n, n + 1
    .endr
    .set n, 0
    .if \windows
    KEEP rdi
    KEEP rsi
    .set n, 6
    .rept 10
    KEEP_XMM %n
    .set n, n + 1
    .endr
    movq %rbx, (%rsp)
    movq %rbp, 8(%rsp)
    movq %r12, 16(%rsp)
    movq %r13, 24(%rsp)
    .set n, 0
    .rept NUM_WORDS
    WORD %(FRAME_LEN+40+8*n), %(32+8*n)
    .set n, n + 1
    .endr
    .else
    .rept NUM_WORDS
    WORD %(FRAME_LEN+8+8*n), %(8*n)
    .set n, n + 1
    .endr
    .endif
    movq noise_r14(%rip), %rax
    movq noise_r15(%rip), %r10
    leaq subject_asm_watch(%rip), %r11
    call *8(%r11)
    movq %rax, result_rax(%rip)
    xorl %ecx, %ecx
    leaq FRAME_LEN(%rsp), %rax
    cmpq saved_rsp(%rip), %rax
    je 1f
    orl $(1 << 6), %ecx
1:  movq saved_rsp(%rip), %rsp
    KEPT rbx, 0
    KEPT rbp, 1
    KEPT r12, 2
    KEPT r13, 3
    KEPT r14, 4
    KEPT r15, 5
    .if \windows
    KEPT rdi, 11
    KEPT rsi, 12
    .set n, 6
    .rept 10
    KEPT_XMM %n
    .set n, n + 1
    .endr
    .endif
    pushfq
    popq %rax
    testl $0x400, %eax
    je 2f
    cld
    orl $(1 << 7), %ecx
2:  stmxcsr now_mxcsr(%rip)
    movl now_mxcsr(%rip), %eax
    xorl saved_mxcsr(%rip), %eax
    testl $0xffc0, %eax
    je 3f
    ldmxcsr saved_mxcsr(%rip)
    orl $(1 << 8), %ecx
3:  fnstcw now_x87(%rip)
    movzwl now_x87(%rip), %eax
    cmpw saved_x87(%rip), %ax
    je 4f
    fldcw saved_x87(%rip)
    orl $(1 << 9), %ecx
4:  fldz                                /* see thunk_x86_64.S */
    fstp %st(0)
    fnstsw %ax
    testl $0x3840, %eax
    je 5f
    fninit
    fldcw saved_x87(%rip)
    orl $(1 << 10), %ecx
5:  orq %rcx, thunk_departures(%rip)
    movq result_rax(%rip), %rax
    ret
    .size \name, . - \name
    .endm

    THUNK thunk_asm_system, 0
    THUNK thunk_asm_win64, 1

    .section .note.GNU-stack, "", @progbits
