/* SPDX-License-Identifier: Apache-2.0
 *
 * Assembly, for a .S file of an implementation that includes des3_ede_interleaved.h: the 48 rounds of Triple DES for one
 * block, or for three of them side by side. For both conventions of x86-64 (subject_asm.h):
 *
 *   void SUBJECT_ASM_ABI des3_ede_rounds_...(const uint64_t keys[52], uint64_t *halves, const uint64_t sp[8][64]);
 *
 * A half is eight groups of six bits, as E makes them, each in the low end of a byte: S8 S6 S4 S2 S7 S5 S3 S1 from the
 * lowest byte up. The tables give this form too. halves holds for each block L, then for each block R.
 *
 * keys: a half carries the key of the round that it goes into next, so that no round waits for an exclusive or with
 * its key. What comes first is for R, then one for the half that each round changes, and after 16 rounds one more for
 * the half that was not changed last: it goes into the next round, too, since the halves are not exchanged there. */
/* clang-format off */
#include "subject_asm.h"

    .set S1, 0
    .set S2, 512
    .set S3, 1024
    .set S4, 1536
    .set S5, 2048
    .set S6, 2560
    .set S7, 3072
    .set S8, 3584
    .set OPERATION, 17 * 8 /* bytes of keys of one of the three DES operations */

/* r10: keys of this operation. rbp: tables. r11d: operations to go. */

/* to ^= f(from) for one block, which waits for its longest chain: two words to take bytes from, two sums in turn (the
 * second one in rdi), and each index as early as it can be had. */
.macro round_1 to, from, key
    mov     \from, %rax
    mov     \from, %rbx
    shr     $32, %rbx
    movzbl  %al, %esi
    movzbl  %ah, %edi
    shr     $16, %eax
    movzbl  %bl, %ecx
    movzbl  %bh, %edx
    shr     $16, %ebx
    xor     \key(%r10), \to
    xor     S8(%rbp,%rsi,8), \to
    mov     S6(%rbp,%rdi,8), %rdi
    movzbl  %al, %esi
    movzbl  %ah, %eax
    xor     S7(%rbp,%rcx,8), \to
    xor     S5(%rbp,%rdx,8), %rdi
    movzbl  %bl, %ecx
    movzbl  %bh, %ebx
    xor     S4(%rbp,%rsi,8), \to
    xor     S2(%rbp,%rax,8), %rdi
    xor     S3(%rbp,%rcx,8), \to
    xor     S1(%rbp,%rbx,8), %rdi
    xor     %rdi, \to
.endm

.macro indices word
    movzbl  %\word\()l, %esi
    movzbl  %\word\()h, %edi
.endm

/* The same with one sum and one word: three blocks side by side wait for units, not for each other. */
.macro round_of_3 to, from, key, word
    mov     \from, %r\word\()x
    xor     \key(%r10), \to
    indices \word
    shr     $16, %r\word\()x
    xor     S8(%rbp,%rsi,8), \to
    xor     S6(%rbp,%rdi,8), \to
    indices \word
    shr     $16, %r\word\()x
    xor     S4(%rbp,%rsi,8), \to
    xor     S2(%rbp,%rdi,8), \to
    indices \word
    shr     $16, %r\word\()x
    xor     S7(%rbp,%rsi,8), \to
    xor     S5(%rbp,%rdi,8), \to
    indices \word
    xor     S3(%rbp,%rsi,8), \to
    xor     S1(%rbp,%rdi,8), \to
.endm

.macro two_rounds_1 key
    round_1 %r8, %r9, \key
    round_1 %r9, %r8, \key + 8
.endm

.macro two_rounds_3 key
    round_of_3 %r8, %r9, \key, a
    round_of_3 %r12, %r13, \key, b
    round_of_3 %r14, %r15, \key, c
    round_of_3 %r9, %r8, \key + 8, a
    round_of_3 %r13, %r12, \key + 8, b
    round_of_3 %r15, %r14, \key + 8, c
.endm

.macro sixteen_rounds blocks
    two_rounds_\blocks 0
    two_rounds_\blocks 16
    two_rounds_\blocks 32
    two_rounds_\blocks 48
    two_rounds_\blocks 64
    two_rounds_\blocks 80
    two_rounds_\blocks 96
    two_rounds_\blocks 112
.endm

/* The key between operations; then L and R change names. */
.macro next_operation l, r
    mov     \l, %rax
    xor     128(%r10), %rax
    mov     \r, \l
    mov     %rax, \r
.endm

    .text
    .balign 64
FUNCTION(des3_ede_rounds_1)
    ENTER_3
    push    %rbx
    push    %rbp
    push    %rsi
    mov     %rdx, %rbp
    mov     (%rsi), %r8
    mov     8(%rsi), %r9
    xor     (%rdi), %r9
    lea     8(%rdi), %r10
    mov     $3, %r11d
    .balign 32
1:
    sixteen_rounds 1
    next_operation %r8, %r9
    add     $OPERATION, %r10
    dec     %r11d
    jnz     1b
    pop     %rsi
    mov     %r8, (%rsi)
    mov     %r9, 8(%rsi)
    pop     %rbp
    pop     %rbx
    LEAVE
END(des3_ede_rounds_1)

    .balign 64
FUNCTION(des3_ede_rounds_3)
    ENTER_3
    push    %rbx
    push    %rbp
    push    %r12
    push    %r13
    push    %r14
    push    %r15
    push    %rsi
    mov     %rdx, %rbp
    mov     (%rsi), %r8
    mov     8(%rsi), %r12
    mov     16(%rsi), %r14
    mov     (%rdi), %rax
    mov     24(%rsi), %r9
    mov     32(%rsi), %r13
    mov     40(%rsi), %r15
    xor     %rax, %r9
    xor     %rax, %r13
    xor     %rax, %r15
    lea     8(%rdi), %r10
    mov     $3, %r11d
    .balign 32
1:
    sixteen_rounds 3
    next_operation %r8, %r9
    next_operation %r12, %r13
    next_operation %r14, %r15
    add     $OPERATION, %r10
    dec     %r11d
    jnz     1b
    pop     %rsi
    mov     %r8, (%rsi)
    mov     %r12, 8(%rsi)
    mov     %r14, 16(%rsi)
    mov     %r9, 24(%rsi)
    mov     %r13, 32(%rsi)
    mov     %r15, 40(%rsi)
    pop     %r15
    pop     %r14
    pop     %r13
    pop     %r12
    pop     %rbp
    pop     %rbx
    LEAVE
END(des3_ede_rounds_3)

    .section .note.GNU-stack, "", @progbits
