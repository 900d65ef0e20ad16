/* SPDX-License-Identifier: Apache-2.0
 *
 * A leaf of ctr(sm4) with one fault, or none. The test writes fault.h beside it, which names the fault:
 *   FAULT       a function of faults.h, called before and after each setkey and each fused ctr;
 *   COUNTER_LEN as in sm4.h;
 *   AT_ENTRY    instructions at the entry of ctr, before anything else: may set the sixth argument, `stale`, which an
 *               honest machine state leaves zero and which spoils the output where it is not;
 *   AT_GETTER   statements in the getter;
 *   AT_RETURN   instructions just before ctr returns.
 */
#include "fault.h"
#include "faults.h"

#if defined(__x86_64__)
#define SLOT(entry, leave) \
    "xorl %r9d, %r9d\n\t" entry "\n\tsubq $8, %rsp\n\tcall planted_ctr\n\taddq $8, %rsp\n\t" leave "\n\tret"
#elif defined(__aarch64__)
#define SLOT(entry, leave)                                                                                         \
    "mov x5, xzr\n\t" entry "\n\tstp x29, x30, [sp, #-16]!\n\tbl planted_ctr\n\tldp x29, x30, [sp], #16\n\t" leave \
    "\n\tret"
#endif

static int planted_setkey(void *ctx, const uint8_t *key, size_t key_len, uint64_t policy)
{
    struct call c = {.stage = BEFORE_SETKEY, .ctx = ctx, .src = key, .len = key_len, .policy_register = policy};
    FAULT(&c);
    if (c.status == SUBJECT_OK) {
        c.status = sm4_setkey(ctx, key, key_len);
    }
    c.stage = AFTER_SETKEY;
    FAULT(&c);
    return c.status;
}

__attribute__((used)) static void planted_ctr(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len,
                                              uint8_t *iv, uint64_t stale)
{
    struct call c = {.stage = BEFORE_CTR, .ctx = (void *)ctx, .dst = dst, .src = src, .len = len, .iv = iv};
    SUBJECT_PATH("ctr");
    memcpy(c.iv_before, iv, 16);
    FAULT(&c);
    sm4_ctr(ctx, dst, src, c.len, iv);
    if (stale != 0 && len > 0) {
        dst[0] ^= 0x80;
    }
    c.stage = AFTER_CTR;
    FAULT(&c);
}

__asm__(".pushsection .text\n\t"
        ".balign 16\n"
        "planted_slot:\n\t" SLOT(AT_ENTRY, AT_RETURN) "\n\t"
                                                      ".popsection");
extern subject_crypt_fn planted_slot;

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (size_t i = 0; i < num_blocks; i++) {
        sm4_block(ctx, dst + 16 * i, src + 16 * i, 0);
    }
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (size_t i = 0; i < num_blocks; i++) {
        sm4_block(ctx, dst + 16 * i, src + 16 * i, 1);
    }
}

const struct subject_leaf *GETTER(uint64_t features);

const struct subject_leaf *GETTER(uint64_t features)
{
    static const struct subject_leaf leaf = {
        .contract = SUBJECT_CONTRACT,
        .block_len = 16,
        .ways = 1,
        .ctx_len = sizeof(struct sm4),
        .ctx_align = _Alignof(struct sm4),
        .setkey = (subject_setkey_fn *)(void (*)(void))planted_setkey,
        .encrypt_blocks = encrypt_blocks,
        .decrypt_blocks = decrypt_blocks,
        .ctr = {planted_slot, planted_slot},
    };
    AT_GETTER
    return (features & NEEDS) == NEEDS ? &leaf : NULL;
}
