/* SPDX-License-Identifier: Apache-2.0
 *
 * For implementations with assembly sources: the same text assembles for the System V and, with -DSUBJECT_WIN64, for the
 * Windows x64 convention, and the C code beside it calls by the one that was built.
 *
 * In a .S file:
 *     FUNCTION(sm4_asm_crypt)
 *         ENTER_4                  up to six arguments are in rdi rsi rdx rcx r8 r9 then, under both conventions
 *         ...                      rbx rbp r12-r15 are the caller's, as ever
 *         LEAVE
 *     END(sm4_asm_crypt)
 * ENTER_n and LEAVE (or RESTORE and a jump or ret) keep what Windows wants kept beyond that: rdi, rsi and xmm6 to xmm15.
 * Nothing may be on the stack at LEAVE that was not there behind ENTER_n, and behind ENTER_n the stack pointer is a multiple
 * of 8, not always of 16. For AArch64 they are a plain entry and ret.
 *
 * In C:
 *     void SUBJECT_ASM_ABI sm4_asm_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks);
 *     ... SUBJECT_ASM_CALL(sm4_asm_crypt)(ctx, dst, src, num_blocks);
 * The macro is where the shim's thunk comes in (thunk_asm_x86_64.S); without the shim it is a plain call. It is one call
 * at a time: not for code that the shim runs in two threads, where the shim takes the thunk out.
 */
#ifndef CROSSLANE_SUBJECT_ASM_H
#define CROSSLANE_SUBJECT_ASM_H

#ifdef __ASSEMBLER__

#if defined(__aarch64__)

#define FUNCTION(name)      \
    .text;                  \
    .balign 16;             \
    .globl name;            \
    .hidden name;           \
    .type name, % function; \
    name:
#define END(name) .size name, .- name
#define ENTER_1
#define ENTER_2
#define ENTER_3
#define ENTER_4
#define ENTER_5
#define ENTER_6
#define RESTORE

#else

#define FUNCTION(name)     \
    .text;                 \
    .balign 16;            \
    .globl name;           \
    .hidden name;          \
    .type name, @function; \
    name:
#define END(name) .size name, .- name

#ifdef SUBJECT_WIN64

#define ASM_FRAME_LEN 184 /* xmm6 to xmm15, rdi, rsi, and 8 bytes that align it */
#define ASM_EACH_XMM(do) \
    do                   \
    (6, 0) do(7, 16) do(8, 32) do(9, 48) do(10, 64) do(11, 80) do(12, 96) do(13, 112) do(14, 128) do(15, 144)
#define ASM_SAVE_XMM(n, at) movdqa % xmm##n, at(% rsp);
#define ASM_LOAD_XMM(n, at) movdqa at(% rsp), % xmm##n;
#define ASM_ENTER               \
    subq $ASM_FRAME_LEN, % rsp; \
    ASM_EACH_XMM(ASM_SAVE_XMM)  \
    movq % rdi, 160(% rsp);     \
    movq % rsi, 168(% rsp);     \
    movq % rcx, % rdi;
/* Behind the frame: the return address, then 32 bytes of shadow space, then the fifth argument. */
#define ENTER_1 ASM_ENTER
#define ENTER_2 ASM_ENTER movq % rdx, % rsi;
#define ENTER_3 ENTER_2 movq % r8, % rdx;
#define ENTER_4 ENTER_3 movq % r9, % rcx;
#define ENTER_5 ENTER_4 movq ASM_FRAME_LEN + 40(% rsp), % r8;
#define ENTER_6 ENTER_5 movq ASM_FRAME_LEN + 48(% rsp), % r9;
#define RESTORE                \
    ASM_EACH_XMM(ASM_LOAD_XMM) \
    movq 160(% rsp), % rdi;    \
    movq 168(% rsp), % rsi;    \
    addq $ASM_FRAME_LEN, % rsp;

#else

#define ENTER_1
#define ENTER_2
#define ENTER_3
#define ENTER_4
#define ENTER_5
#define ENTER_6
#define RESTORE

#endif
#endif

#define LEAVE RESTORE ret

#else /* C */

#include <stddef.h>

#if defined(SUBJECT_WIN64) && defined(__x86_64__)
#define SUBJECT_ASM_ABI __attribute__((ms_abi))
#else
#define SUBJECT_ASM_ABI
#endif

typedef void subject_asm_fn(void);

/* Part of the shim alone. `thunk` is NULL where calls are not watched. */
struct subject_asm_watch {
    subject_asm_fn *thunk;
    subject_asm_fn *target;
};
extern struct subject_asm_watch subject_asm_watch __attribute__((weak));

static inline subject_asm_fn *subject_asm_entry(subject_asm_fn *function)
{
    struct subject_asm_watch *watch = &subject_asm_watch;
    if (watch == NULL || watch->thunk == NULL) {
        return function;
    }
    watch->target = function;
    return watch->thunk;
}

#define SUBJECT_ASM_CALL(function) ((__typeof__(&(function)))subject_asm_entry((subject_asm_fn *)(function)))

#endif
#endif
