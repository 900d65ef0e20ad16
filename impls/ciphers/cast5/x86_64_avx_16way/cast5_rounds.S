/* SPDX-License-Identifier: Apache-2.0
 *
 * The rounds of CAST-128 (RFC 2144, 2) for one chunk of four blocks, or for four of them side by side. A chunk's halves
 * fill a register each. For both conventions of x86-64 (subject_asm.h):
 *
 *   void SUBJECT_ASM_ABI cast5_rounds_...(const struct cast5_ctx *ctx, __m128i *halves, const uint32_t *const boxes[4]);
 *
 * halves holds for each chunk the half that changes first, then for each the other one; boxes are S1 to S4. Of ctx the
 * offsets below are known, and that of each four-byte member there is one more before the first and after the last.
 *
 * What begins a chunk's round (mask, rotate, move to general registers) waits for vector units, what finishes it (byte
 * by byte index, load, insert; join) for load units. With four chunks the next one is begun before each is finished:
 * a core that looks far ahead does not do so by itself, since the waiting instructions fill its queues. */
#include "subject_asm.h"

    .set NUM_ROUNDS, 0
    .set MASK, 4           /* Kmi */
    .set LEFT, MASK + 64   /* Kri + 16 modulo 32: turns Ia and Ib into the low half */
    .set RIGHT, LEFT + 64  /* 32 - LEFT */

/* xmm0 to xmm7: halves. xmm8 to xmm10: the round's key. xmm11 to xmm14: what S1 to S4 gave. rax rbx, rcx rdx: the words
 * of a chunk. r8 to r11: S1 to S4. rbp: the mask of the next round; r12d: rounds to go. */

/* Loads a round's key and steps to the next one, or with step -4 to the one before. */
.macro load_key step
    vbroadcastss (%rbp), %xmm8
    vmovd   LEFT - MASK(%rbp), %xmm9
    vmovd   RIGHT - MASK(%rbp), %xmm10
    add     $\step, %rbp
.endm

/* I of four blocks (2.2), two words to a general register. A shift by 32, where LEFT is 0, gives zeros, which is right. */
.macro begin type, from, w01, w23
    .if \type == 1
    vpaddd  \from, %xmm8, %xmm15
    .elseif \type == 2
    vpxor   \from, %xmm8, %xmm15
    .else
    vpsubd  \from, %xmm8, %xmm15
    .endif
    vpslld  %xmm9, %xmm15, %xmm14
    vpsrld  %xmm10, %xmm15, %xmm15
    vpor    %xmm14, %xmm15, %xmm15
    vmovq   %xmm15, %r\w01\()x
    vpextrq $1, %xmm15, %r\w23\()x
.endm

/* Indices: edi the lowest byte of a register, esi the one above it. */
.macro indices word
    movzbl  %\word\()l, %edi
    movzbl  %\word\()h, %esi
.endm

.macro insert lane, word
    indices \word
    shr     $16, %r\word\()x
    vpinsrd $\lane, (%r9,%rdi,4), %xmm12, %xmm12
    vpinsrd $\lane, (%r8,%rsi,4), %xmm11, %xmm11
    indices \word
    .if \lane == 2
    shr     $16, %r\word\()x
    .endif
    vpinsrd $\lane, (%r11,%rdi,4), %xmm14, %xmm14
    vpinsrd $\lane, (%r10,%rsi,4), %xmm13, %xmm13
.endm

/* to ^= f, with the four S-boxes joined as the type says (2.2). */
.macro finish type, to, w01, w23
    indices \w01
    shr     $16, %r\w01\()x
    vmovd   (%r9,%rdi,4), %xmm12
    vmovd   (%r8,%rsi,4), %xmm11
    indices \w01
    shr     $16, %r\w01\()x
    vmovd   (%r11,%rdi,4), %xmm14
    vmovd   (%r10,%rsi,4), %xmm13
    insert  1, \w01
    insert  2, \w23
    insert  3, \w23
    .if \type == 1
    vpxor   %xmm12, %xmm11, %xmm11
    vpsubd  %xmm13, %xmm11, %xmm11
    vpaddd  %xmm14, %xmm11, %xmm11
    .elseif \type == 2
    vpsubd  %xmm12, %xmm11, %xmm11
    vpaddd  %xmm13, %xmm11, %xmm11
    vpxor   %xmm14, %xmm11, %xmm11
    .else
    vpaddd  %xmm12, %xmm11, %xmm11
    vpxor   %xmm13, %xmm11, %xmm11
    vpsubd  %xmm14, %xmm11, %xmm11
    .endif
    vpxor   %xmm11, \to, \to
.endm

/* One round of four chunks. It finds its key loaded and its first chunk begun, and leaves the next round so: past the
 * last one that is done with other members of ctx, and dropped. */
.macro round_16 type, next, step, t0, t1, t2, t3, f0, f1, f2, f3
    begin   \type, \f1, c, d
    finish  \type, \t0, a, b
    begin   \type, \f2, a, b
    finish  \type, \t1, c, d
    begin   \type, \f3, c, d
    load_key \step
    finish  \type, \t2, a, b
    begin   \next, \t0, a, b
    finish  \type, \t3, c, d
.endm

.macro round_first_16 type, next, step
    round_16 \type, \next, \step, %xmm0, %xmm1, %xmm2, %xmm3, %xmm4, %xmm5, %xmm6, %xmm7
.endm

.macro round_second_16 type, next, step
    round_16 \type, \next, \step, %xmm4, %xmm5, %xmm6, %xmm7, %xmm0, %xmm1, %xmm2, %xmm3
.endm

.macro start_16 type, step
    load_key \step
    begin   \type, %xmm4, a, b
.endm

.macro round_first_4 type, next, step
    load_key \step
    begin   \type, %xmm4, a, b
    finish  \type, %xmm0, a, b
.endm

.macro round_second_4 type, next, step
    load_key \step
    begin   \type, %xmm0, a, b
    finish  \type, %xmm4, a, b
.endm

.macro start_4 type, step
.endm

.macro move_halves_16 from_memory
    .if \from_memory
    vmovdqu (%rsi), %xmm0
    vmovdqu 16(%rsi), %xmm1
    vmovdqu 32(%rsi), %xmm2
    vmovdqu 48(%rsi), %xmm3
    vmovdqu 64(%rsi), %xmm4
    vmovdqu 80(%rsi), %xmm5
    vmovdqu 96(%rsi), %xmm6
    vmovdqu 112(%rsi), %xmm7
    .else
    vmovdqu %xmm0, (%rsi)
    vmovdqu %xmm1, 16(%rsi)
    vmovdqu %xmm2, 32(%rsi)
    vmovdqu %xmm3, 48(%rsi)
    vmovdqu %xmm4, 64(%rsi)
    vmovdqu %xmm5, 80(%rsi)
    vmovdqu %xmm6, 96(%rsi)
    vmovdqu %xmm7, 112(%rsi)
    .endif
.endm

.macro move_halves_4 from_memory
    .if \from_memory
    vmovdqu (%rsi), %xmm0
    vmovdqu 16(%rsi), %xmm4
    .else
    vmovdqu %xmm0, (%rsi)
    vmovdqu %xmm4, 16(%rsi)
    .endif
.endm

.macro enter blocks
    ENTER_3
    push    %rbx
    push    %rbp
    push    %r12
    push    %rsi
    move_halves_\blocks 1
    mov     (%rdx), %r8
    mov     8(%rdx), %r9
    mov     16(%rdx), %r10
    mov     24(%rdx), %r11
    mov     NUM_ROUNDS(%rdi), %r12d
.endm

.macro leave_with_halves blocks
    pop     %rsi
    move_halves_\blocks 0
    pop     %r12
    pop     %rbp
    pop     %rbx
    LEAVE
.endm

/* Types repeat after three rounds and halves after two: six rounds make a loop. 16 rounds are 6 + 6 + 4. */
.macro encrypt blocks
    enter   \blocks
    lea     MASK(%rdi), %rbp
    start_\blocks 1, 4
    .balign 32
1:
    round_first_\blocks 1, 2, 4
    round_second_\blocks 2, 3, 4
    round_first_\blocks 3, 1, 4
    round_second_\blocks 1, 2, 4
    sub     $4, %r12d
    jz      2f
    round_first_\blocks 2, 3, 4
    round_second_\blocks 3, 1, 4
    sub     $2, %r12d
    jnz     1b
2:
    leave_with_halves \blocks
.endm

/* The same in reverse: 16 rounds are 4 + 6 + 6, and begin within the loop. */
.macro decrypt blocks
    enter   \blocks
    lea     MASK - 4(%rdi,%r12,4), %rbp
    cmp     $12, %r12d
    je      1f
    add     $2, %r12d
    start_\blocks 1, -4
    jmp     3f
1:
    start_\blocks 3, -4
    .balign 32
2:
    round_first_\blocks 3, 2, -4
    round_second_\blocks 2, 1, -4
3:
    round_first_\blocks 1, 3, -4
    round_second_\blocks 3, 2, -4
    round_first_\blocks 2, 1, -4
    round_second_\blocks 1, 3, -4
    sub     $6, %r12d
    jnz     2b
    leave_with_halves \blocks
.endm

    .text
    .balign 64
FUNCTION(cast5_rounds_encrypt_16)
    encrypt 16
END(cast5_rounds_encrypt_16)

    .balign 64
FUNCTION(cast5_rounds_decrypt_16)
    decrypt 16
END(cast5_rounds_decrypt_16)

    .balign 64
FUNCTION(cast5_rounds_encrypt_4)
    encrypt 4
END(cast5_rounds_encrypt_4)

    .balign 64
FUNCTION(cast5_rounds_decrypt_4)
    decrypt 4
END(cast5_rounds_decrypt_4)

    .section .note.GNU-stack, "", @progbits
