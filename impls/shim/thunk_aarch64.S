/* SPDX-License-Identifier: Apache-2.0
 *
 * Thunks for the slots of a leaf, AArch64: see thunk_x86_64.S. AAPCS64, 6.1.1 (callee-saved: x19-x29, sp) and 6.1.2
 * (the low 64 bits of v8-v15); FPCR is kept too. x18 belongs to the platform and is left alone. Arguments in x0-x7.
 */
    .set NUM_SLOTS, 32
    .set DEAD_STACK, 512
    .set WATCHED_STACK, 4096
    .set FRAME_LEN, 256                 /* two registers in its middle, where a stack pointer somewhat wrong does no harm */

    .data
    .balign 64
saved: .fill 24, 8, 0                   /* x19-x29, x30, sp, fpcr, d8-d15 */
result_x0: .quad 0
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
thunk_left: .fill 18, 8, 0              /* struct left of wipe.c: x0-x17, v0-v31, dead stack */
    .balign 32
left_vectors: .fill 64, 8, 0
left_stack: .fill 512, 8, 0

    .section .rodata
    .balign 64
/* Twice 1024 bytes, the second time complemented: calls take them in turn, so that every bit is seen as 0 and as 1. */
noise:
    .set value, 0x243f6a8885a308d3
    .rept 128
    .quad value
    .set value, value * 0x5851f42d4c957f2d + 0x14057b7ef767814f
    .endr
    .set value, 0x243f6a8885a308d3
    .rept 128
    .quad ~value
    .set value, value * 0x5851f42d4c957f2d + 0x14057b7ef767814f
    .endr
    .set NOISE_LEN, 1024

    .text
    .macro ADDRESS reg, symbol
    adrp \reg, \symbol
    add \reg, \reg, :lo12:\symbol
    .endm

    .globl thunk_stubs
    .hidden thunk_stubs
    .type thunk_stubs, %function
    .balign 16
thunk_stubs:
    .set stub, 0
    .rept NUM_SLOTS
    mov w16, #stub
    b thunk_common
    .balign 16
    .set stub, stub + 1
    .endr
    .size thunk_stubs, . - thunk_stubs

    .macro CHECK reg, offset, bit
    ldr x9, [x16, #\offset]
    eor x9, x9, \reg
    cmp x9, #0
    cset x9, ne
    orr x10, x10, x9, lsl #\bit
    .endm

    .macro CHECK_D reg, offset, bit
    fmov x11, \reg
    CHECK x11, \offset, \bit
    .endm

    .type thunk_common, %function
thunk_common:
    ADDRESS x17, saved
    stp x19, x20, [x17]
    stp x21, x22, [x17, #16]
    stp x23, x24, [x17, #32]
    stp x25, x26, [x17, #48]
    stp x27, x28, [x17, #64]
    stp x29, x30, [x17, #80]
    mov x9, sp
    mrs x10, fpcr
    stp x9, x10, [x17, #96]
    stp d8, d9, [x17, #112]
    stp d10, d11, [x17, #128]
    stp d12, d13, [x17, #144]
    stp d14, d15, [x17, #160]
    cbnz w16, 1f
    movz x9, #0x8ebc, lsl #48           /* slot 0 is setkey: its policy has 32 bits */
    movk x9, #0x6af0, lsl #32
    orr x3, x3, x9
1:
    ADDRESS x17, thunk_targets
    ldr x17, [x17, w16, uxtw #3]
    mov w10, w16
    ADDRESS x9, noise_turn
    ldr x11, [x9]
    eor x11, x11, #NOISE_LEN
    str x11, [x9]
    ADDRESS x16, noise
    add x16, x16, x11
    sub sp, sp, #FRAME_LEN
    .altmacro
    .macro LOAD_PAIR first, second
    ldp q\first, q\second, [x16, #16*\first]
    .endm
    .macro STORE_PAIR first, second
    stp q\first, q\second, [sp, #-32-16*\first]
    .endm
    .set n, 0
    .rept 16
    LOAD_PAIR %n, %(n+1)
    .set n, n + 2
    .endr
    .set n, 0
    .rept 16
    STORE_PAIR %n, %(n+1)
    .set n, n + 2
    .endr
    cmp w10, #2                         /* slots 0 to 2 have four arguments, those to 14 five, the others up to six */
    b.hi 3f
    ldr x4, [x16, #160]
3:  cmp w10, #14
    b.hi 4f
    ldr x5, [x16, #168]
4:  ldp x6, x7, [x16, #176]
    ADDRESS x9, thunk_wipe
    ldr x9, [x9]
    cbnz x9, wipe_before
called_with_noise:
    ldp x19, x20, [x16]
    ldp x21, x22, [x16, #16]
    ldp x23, x24, [x16, #32]
    ldp x25, x26, [x16, #48]
    ldp x27, x28, [x16, #64]
    ldr x29, [x16, #80]
    ldp x8, x9, [x16, #96]
    ldp x10, x11, [x16, #112]
    ldp x12, x13, [x16, #128]
    ldp x14, x15, [x16, #144]
    blr x17
    stp x16, x17, [sp, #FRAME_LEN / 2]
    ADDRESS x17, thunk_wipe
    ldr x17, [x17]
    cbnz x17, wipe_after
left_saved:
    add sp, sp, #FRAME_LEN
    ADDRESS x17, result_x0
    str x0, [x17]
    ADDRESS x9, noise_turn
    ldr x11, [x9]
    ADDRESS x16, noise
    add x16, x16, x11
    mov x10, #0
    CHECK x19, 0, 0
    CHECK x20, 8, 1
    CHECK x21, 16, 2
    CHECK x22, 24, 3
    CHECK x23, 32, 4
    CHECK x24, 40, 5
    CHECK x25, 48, 6
    CHECK x26, 56, 7
    CHECK x27, 64, 8
    CHECK x28, 72, 9
    CHECK x29, 80, 10
    CHECK_D d8, 128, 11
    CHECK_D d9, 144, 12
    CHECK_D d10, 160, 13
    CHECK_D d11, 176, 14
    CHECK_D d12, 192, 15
    CHECK_D d13, 208, 16
    CHECK_D d14, 224, 17
    CHECK_D d15, 240, 18
    ADDRESS x16, saved
    mov x11, sp
    CHECK x11, 96, 19
    mrs x11, fpcr
    CHECK x11, 104, 20
    ldp x9, x11, [x16, #96]
    mov sp, x9
    msr fpcr, x11
    ldp x19, x20, [x16]
    ldp x21, x22, [x16, #16]
    ldp x23, x24, [x16, #32]
    ldp x25, x26, [x16, #48]
    ldp x27, x28, [x16, #64]
    ldp x29, x30, [x16, #80]
    ldp d8, d9, [x16, #112]
    ldp d10, d11, [x16, #128]
    ldp d12, d13, [x16, #144]
    ldp d14, d15, [x16, #160]
    cbz x10, 2f
    ADDRESS x16, thunk_departures
    ldr x9, [x16]
    orr x9, x9, x10
    str x9, [x16]
2:
    ADDRESS x9, thunk_wipe
    ldr x9, [x9]
    cbnz x9, 5f
    ldr x0, [x17]
    ret
5:
    stp x29, x30, [sp, #-16]!
    bl thunk_look
    ldp x29, x30, [sp], #16
    ADDRESS x17, result_x0
    ldr x0, [x17]
    ret

/* For wipe.c: the arguments, and noise in all of the stack that will be looked at. x10 is the slot. */
wipe_before:
    ADDRESS x9, thunk_call
    stp x10, x0, [x9]
    stp x1, x2, [x9, #16]
    str x3, [x9, #32]
    sub x9, sp, #WATCHED_STACK
    mov x11, #(WATCHED_STACK - DEAD_STACK) / 16
6:  str q0, [x9], #16
    subs x11, x11, #1
    b.ne 6b
    b called_with_noise

/* What the call left, before anything is written over it; x16 and x17 lie above the stack pointer. */
wipe_after:
    ADDRESS x16, thunk_left
    stp x0, x1, [x16]
    stp x2, x3, [x16, #16]
    stp x4, x5, [x16, #32]
    stp x6, x7, [x16, #48]
    stp x8, x9, [x16, #64]
    stp x10, x11, [x16, #80]
    stp x12, x13, [x16, #96]
    stp x14, x15, [x16, #112]
    ldp x10, x11, [sp, #FRAME_LEN / 2]
    stp x10, x11, [x16, #128]
    ADDRESS x16, left_vectors
    .macro SAVE_PAIR first, second
    stp q\first, q\second, [x16, #16*\first]
    .endm
    .set n, 0
    .rept 16
    SAVE_PAIR %n, %(n+1)
    .set n, n + 2
    .endr
    add x9, sp, #FRAME_LEN
    ADDRESS x16, saved
    ldr x10, [x16, #96]
    cmp x9, x10
    b.ne left_saved
    sub x9, sp, #WATCHED_STACK
    ADDRESS x16, left_stack
    mov x11, #WATCHED_STACK / 16
7:  ldr q0, [x9], #16
    str q0, [x16], #16
    subs x11, x11, #1
    b.ne 7b
    b left_saved
    .size thunk_common, . - thunk_common

    .section .note.GNU-stack, "", %progbits
