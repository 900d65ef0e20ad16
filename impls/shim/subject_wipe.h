/* SPDX-License-Identifier: Apache-2.0
 *
 * For implementations that claim to wipe (wipes = true in impl.toml): slots that leave nothing of a key behind.
 *
 * A slot calls the function that works through a pointer that the compiler cannot see through, so that its frame is its
 * own, and then a function that clears that frame: it begins at the same place of the stack, and writes as many bytes
 * below it as it was made for. It clears every register too that a call may change. The slot itself holds pointers and
 * lengths.
 *
 *   SUBJECT_WIPE(wipe, 768)                      defines the clearing function for frames of 768 bytes in all
 *   SUBJECT_WIPED_BLOCKS(name, work, wipe)       defines the slot `name` over the function `work`; likewise
 *   SUBJECT_WIPED_SETKEY, _CRYPT, _XTS, _LRW     for the other slots
 *
 * How much stack a function takes, with all that it calls, says -fstack-usage at -O2; leave a quarter of room. Frames
 * that are not optimised are larger, and a sanitizer's own functions keep what they find: 8 KiB more is cleared there.
 */
#ifndef CROSSLANE_SUBJECT_WIPE_H
#define CROSSLANE_SUBJECT_WIPE_H

#include "subject.h"

#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
#define SUBJECT_WIPE_LEN(len) (len)
#else
#define SUBJECT_WIPE_LEN(len) (8192 + (len))
#endif

#if defined(__x86_64__)

#define SUBJECT_CLEAR_XMM(a, b, c, d)                                    \
    "pxor %%xmm" #a ", %%xmm" #a "\n\tpxor %%xmm" #b ", %%xmm" #b "\n\t" \
    "pxor %%xmm" #c ", %%xmm" #c "\n\tpxor %%xmm" #d ", %%xmm" #d "\n\t"
#define SUBJECT_CLEAR_VECTORS     \
    SUBJECT_CLEAR_XMM(0, 1, 2, 3) \
    SUBJECT_CLEAR_XMM(4, 5, 6, 7) SUBJECT_CLEAR_XMM(8, 9, 10, 11) SUBJECT_CLEAR_XMM(12, 13, 14, 15)
#define SUBJECT_CLEAR_STACK                                      \
    "leaq %c0(%%rsp), %%rax\n"                                   \
    "1:\tmovups %%xmm0, (%%rax)\n\tmovups %%xmm0, 16(%%rax)\n\t" \
    "movups %%xmm0, 32(%%rax)\n\tmovups %%xmm0, 48(%%rax)\n\t"   \
    "addq $64, %%rax\n\tcmpq %%rsp, %%rax\n\tjb 1b\n\t"
#define SUBJECT_CLEAR_GENERAL                                                                \
    "xorl %%eax, %%eax\n\txorl %%ecx, %%ecx\n\txorl %%edx, %%edx\n\txorl %%esi, %%esi\n\t"   \
    "xorl %%edi, %%edi\n\txorl %%r8d, %%r8d\n\txorl %%r9d, %%r9d\n\txorl %%r10d, %%r10d\n\t" \
    "xorl %%r11d, %%r11d"
#define SUBJECT_CLEARED                                                                                          \
    "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", \
        "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory"
#define SUBJECT_CLEAR_FROM(len) (-(len))

#elif defined(__aarch64__)

#define SUBJECT_CLEAR_V(a, b, c, d) \
    "movi v" #a ".16b, #0\n\tmovi v" #b ".16b, #0\n\tmovi v" #c ".16b, #0\n\tmovi v" #d ".16b, #0\n\t"
/* The lower halves are the caller's. */
#define SUBJECT_CLEAR_UPPER(a, b, c, d) \
    "mov v" #a ".d[1], xzr\n\tmov v" #b ".d[1], xzr\n\tmov v" #c ".d[1], xzr\n\tmov v" #d ".d[1], xzr\n\t"
/* clang-format off: its answer is another each time */
#define SUBJECT_CLEAR_VECTORS       \
    SUBJECT_CLEAR_V(0, 1, 2, 3)     \
    SUBJECT_CLEAR_V(4, 5, 6, 7)     \
    SUBJECT_CLEAR_V(16, 17, 18, 19) \
    SUBJECT_CLEAR_V(20, 21, 22, 23) \
    SUBJECT_CLEAR_V(24, 25, 26, 27) \
    SUBJECT_CLEAR_V(28, 29, 30, 31) SUBJECT_CLEAR_UPPER(8, 9, 10, 11) SUBJECT_CLEAR_UPPER(12, 13, 14, 15)
/* clang-format on */
#define SUBJECT_CLEAR_STACK                                  \
    "mov x2, sp\n\tmov x1, %0\n\tsub x1, x2, x1\n"           \
    "1:\tstp q0, q0, [x1], #32\n\tstp q0, q0, [x1], #32\n\t" \
    "cmp x1, x2\n\tb.lo 1b\n\t"
#define SUBJECT_CLEAR_X(a, b, c) "mov x" #a ", xzr\n\tmov x" #b ", xzr\n\tmov x" #c ", xzr\n\t"
#define SUBJECT_CLEAR_GENERAL \
    SUBJECT_CLEAR_X(0, 1, 2)  \
    SUBJECT_CLEAR_X(3, 4, 5)  \
    SUBJECT_CLEAR_X(6, 7, 8) SUBJECT_CLEAR_X(9, 10, 11) SUBJECT_CLEAR_X(12, 13, 14) SUBJECT_CLEAR_X(15, 16, 17)
#define SUBJECT_CLEARED                                                                                                \
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",       \
        "x17", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", \
        "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory"
#define SUBJECT_CLEAR_FROM(len) (len)

#endif

#if defined(SUBJECT_CLEARED)

/* len is a multiple of 64. What lies below the stack pointer is nobody's: the function has no variables. */
#define SUBJECT_WIPE(name, len)                                                                 \
    __attribute__((noinline)) static void name(void)                                            \
    {                                                                                           \
        __asm__ volatile(SUBJECT_CLEAR_VECTORS SUBJECT_CLEAR_STACK SUBJECT_CLEAR_GENERAL ::"i"( \
                             SUBJECT_CLEAR_FROM(SUBJECT_WIPE_LEN(len)))                         \
                         : SUBJECT_CLEARED);                                                    \
    }

#else

/* Elsewhere nothing looks at what a call leaves, and registers stay as they are. */
#define SUBJECT_WIPE(name, len)                          \
    __attribute__((noinline)) static void name(void)     \
    {                                                    \
        uint8_t dead[SUBJECT_WIPE_LEN(len)];             \
        memset(dead, 0, sizeof dead);                    \
        __asm__ volatile("" ::"r"(&dead[0]) : "memory"); \
    }

#endif

#define SUBJECT_WIPED_SETKEY(name, work, wipe)                                      \
    static int name(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy) \
    {                                                                               \
        subject_setkey_fn *apart = work;                                            \
        __asm__("" : "+r"(apart));                                                  \
        int status = apart(ctx, key, key_len, policy);                              \
        wipe();                                                                     \
        return status;                                                              \
    }

#define SUBJECT_WIPED_(type, name, work, wipe, parameters, arguments) \
    static void name parameters                                       \
    {                                                                 \
        type *apart = work;                                           \
        __asm__("" : "+r"(apart));                                    \
        apart arguments;                                              \
        wipe();                                                       \
    }

#define SUBJECT_WIPED_BLOCKS(name, work, wipe)                                             \
    SUBJECT_WIPED_(subject_blocks_fn, name, work, wipe,                                    \
                   (const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks), \
                   (ctx, dst, src, num_blocks))

#define SUBJECT_WIPED_CRYPT(name, work, wipe)                                                    \
    SUBJECT_WIPED_(subject_crypt_fn, name, work, wipe,                                           \
                   (const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv), \
                   (ctx, dst, src, len, iv))

#define SUBJECT_WIPED_XTS(name, work, wipe)                                                                        \
    SUBJECT_WIPED_(                                                                                                \
        subject_xts_fn, name, work, wipe,                                                                          \
        (const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len, const uint8_t *iv), \
        (ctx, tweak_ctx, dst, src, len, iv))

#define SUBJECT_WIPED_LRW(name, work, wipe)                                                                   \
    SUBJECT_WIPED_(                                                                                           \
        subject_lrw_fn, name, work, wipe,                                                                     \
        (const void *ctx, const uint8_t *key2, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *index), \
        (ctx, key2, dst, src, len, index))

#endif
