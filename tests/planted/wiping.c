/* SPDX-License-Identifier: Apache-2.0
 *
 * A leaf of ctr(sm4) that clears what its calls leave, or all but one thing: AT_RETURN of fault.h (see leaf.c) stands
 * behind the clearing, with the context in r11 or x11.
 */
#include "fault.h"
#include "sm4.h"

#define FUNCTION(name) ".balign 16\n" #name "_slot:\n\t" STUB(#name)

#if defined(__x86_64__)
#define CLEAR_TWO(a, b) "pxor %xmm" #a ", %xmm" #a "\n\tpxor %xmm" #b ", %xmm" #b "\n\t"
#define CLEAR_FOUR(a, b, c, d) CLEAR_TWO(a, b) CLEAR_TWO(c, d)
#define STUB(name)                                                                                             \
    "pushq %rdi\n\tcall " name "\n\tpopq %r11\n\tmovq %rax, %r10\n\tleaq -4096(%rsp), %rdi\n\tmovl $512, %ecx" \
    "\n\txorl %eax, %eax\n\trep stosq\n\txorl %edx, %edx\n\txorl %esi, %esi\n\txorl %r8d, %r8d\n\t"            \
    "xorl %r9d, %r9d\n\t" CLEAR_FOUR(0, 1, 2, 3) CLEAR_FOUR(4, 5, 6, 7) CLEAR_FOUR(8, 9, 10, 11)               \
        CLEAR_FOUR(12, 13, 14, 15) AT_RETURN "\n\tmovq %r10, %rax\n\txorl %r10d, %r10d\n\txorl %r11d, %r11d\n\tret\n"
#elif defined(__aarch64__)
#define CLEAR_TWO(a, b) "movi v" #a ".16b, #0\n\tmovi v" #b ".16b, #0\n\t"
#define CLEAR_FOUR(a, b, c, d) CLEAR_TWO(a, b) CLEAR_TWO(c, d)
#define EMPTY_FOUR(a, b, c, d) "mov x" #a ", xzr\n\tmov x" #b ", xzr\n\tmov x" #c ", xzr\n\tmov x" #d ", xzr\n\t"
#define STUB(name)                                                                                                    \
    "stp x29, x30, [sp, #-32]!\n\tstr x0, [sp, #16]\n\tbl " name "\n\tldr x11, [sp, #16]\n\tldp x29, x30, [sp], #32"  \
    "\n\tmov x10, x0\n\tsub x1, sp, #4096\n\tmov x2, #256\n1:\tstp xzr, xzr, [x1], #16\n\tsubs x2, x2, #1\n\tb.ne 1b" \
    "\n\t" EMPTY_FOUR(2, 3, 4, 5) EMPTY_FOUR(6, 7, 8, 9) EMPTY_FOUR(12, 13, 14, 15) EMPTY_FOUR(1, 16, 17, 17)         \
        CLEAR_FOUR(0, 1, 2, 3) CLEAR_FOUR(4, 5, 6, 7) CLEAR_FOUR(16, 17, 18, 19) CLEAR_FOUR(20, 21, 22, 23)           \
            CLEAR_FOUR(24, 25, 26, 27) CLEAR_FOUR(28, 29, 30, 31) AT_RETURN                                           \
        "\n\tmov x0, x10\n\tmov x10, xzr\n\tmov x11, xzr\n\tret\n"
#endif

__attribute__((used)) static int planted_setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    (void)policy;
    return sm4_setkey(ctx, key, key_len);
}

__attribute__((used)) static void planted_ctr(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len,
                                              uint8_t *iv)
{
    SUBJECT_PATH("ctr");
    sm4_ctr(ctx, dst, src, len, iv);
}

static void blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks, int decrypting)
{
    for (size_t i = 0; i < num_blocks; i++) {
        sm4_block(ctx, dst + 16 * i, src + 16 * i, decrypting);
    }
}

__attribute__((used)) static void planted_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    blocks(ctx, dst, src, num_blocks, 0);
}

__attribute__((used)) static void planted_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    blocks(ctx, dst, src, num_blocks, 1);
}

__asm__(".pushsection .text\n\t" FUNCTION(planted_setkey) FUNCTION(planted_ctr) FUNCTION(planted_encrypt)
            FUNCTION(planted_decrypt) ".popsection");
extern subject_setkey_fn planted_setkey_slot;
extern subject_crypt_fn planted_ctr_slot;
extern subject_blocks_fn planted_encrypt_slot, planted_decrypt_slot;

const struct subject_leaf *GETTER(uint64_t features);

const struct subject_leaf *GETTER(uint64_t features)
{
    static const struct subject_leaf leaf = {
        .contract = SUBJECT_CONTRACT,
        .block_len = 16,
        .ways = 1,
        .ctx_len = sizeof(struct sm4),
        .ctx_align = _Alignof(struct sm4),
        .setkey = planted_setkey_slot,
        .encrypt_blocks = planted_encrypt_slot,
        .decrypt_blocks = planted_decrypt_slot,
        .ctr = {planted_ctr_slot, planted_ctr_slot},
    };
    return (features & NEEDS) == NEEDS ? &leaf : NULL;
}
