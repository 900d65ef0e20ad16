/* SPDX-License-Identifier: Apache-2.0
 *
 * A leaf of AES or SM4 with fused modes and one fault, or two. The test writes fault.h beside it, which includes the
 * cipher, names the getter and sets some of these to 1.
 */
#include "fault.h"

#ifdef PLANTED_SM4_H
#define cipher sm4
#define cipher_setkey sm4_setkey
#define cipher_block sm4_block
#endif

#define HAS(name) (FAULTS & (UINT32_C(1) << (name)))
enum {
    CARRY_64,
    WIDE_32,
    IV_KEPT,
    IV_KEPT_AT_8,
    CBC_IN_PLACE,
    CBC_IV_KEPT,
    XTS_IN_PLACE,
    XTS_TAIL_15,
    READS_TAIL,
    READS_BEFORE,
    KEY_24,
    KEY_32,
    LANES_4,
    LANES_8,
    WRITES_TAIL,
    ALIGN_3,
    CFB_TAIL,
    READS_KEY,
    CTR_IN_PLACE,
    CTR_TAIL,
    GHASH_6,
    GHASH_5,
    CTR_DECRYPT_3,
    CTR_DECRYPT_IN_PLACE,
    MAC_2,
    KEEPS,
    KEEPS_COUNT,
    DIRTY,
    XTS_SECTOR_BEFORE,
    XTS_SHORT_NUMBER
};

/* What the contract forbids: something that one session leaves and another one finds. Calls count once a key. */
static int kept_len, kept_calls, keyed;

static int planted_setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct cipher *c = ctx;
    (void)policy;
    keyed = 1;
    if (HAS(READS_KEY)) {
        (void)*(volatile const uint8_t *)(key + key_len);
    }
    int status = cipher_setkey(c, key, key_len);
    if ((HAS(KEY_24) && key_len == 24) || (HAS(KEY_32) && key_len == 32)) {
        ((uint8_t *)ctx)[20] ^= 1;
    }
    return status;
}

static void blocks(const struct cipher *c, uint8_t *dst, const uint8_t *src, size_t num_blocks, int decrypting)
{
    size_t width = decrypting && HAS(LANES_8) ? 8 : !decrypting && HAS(LANES_4) ? 4 : 0;
    for (; width != 0 && num_blocks >= width; num_blocks -= width) {
        uint8_t lanes[128], kept[16];
        memcpy(lanes, src, 16 * width);
        memcpy(kept, lanes + 16, 16);
        memcpy(lanes + 16, lanes + 32, 16);
        memcpy(lanes + 32, kept, 16);
        for (size_t i = 0; i < width; i++) {
            cipher_block(c, dst + 16 * i, lanes + 16 * i, decrypting);
        }
        src += 16 * width;
        dst += 16 * width;
    }
    for (; num_blocks > 0; num_blocks--) {
        cipher_block(c, dst, src, decrypting);
        src += 16;
        dst += 16;
    }
}

static void encrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    blocks(ctx, dst, src, num_blocks, 0);
}

static void decrypt_blocks(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    blocks(ctx, dst, src, num_blocks, 1);
}

__attribute__((used)) static void planted_ecb(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len,
                                              uint8_t *iv)
{
    (void)iv;
    SUBJECT_PATH("all");
    if (HAS(READS_BEFORE) && len > 0) {
        (void)*(volatile const uint8_t *)(src - 1);
    }
    blocks(ctx, dst, src, len / 16, 0);
}

static void ecb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    (void)iv;
    SUBJECT_PATH("all");
    blocks(ctx, dst, src, len / 16, 1);
}

static void add(uint8_t *dst, const uint8_t *a, const uint8_t *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        dst[i] = a[i] ^ b[i];
    }
}

static void count(uint8_t *counter, unsigned len)
{
    for (unsigned i = 16; i-- > 16 - len && ++counter[i] == 0;) {
    }
}

/* What stood in a register that holds nothing when the slot of ctr was called. */
__attribute__((used)) static volatile uint64_t dirty_register;

__attribute__((used)) static void planted_ctr(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len,
                                              uint8_t *iv)
{
    uint8_t counter[16], keystream[16], wide[16];
    int spoilt = (HAS(ALIGN_3) && ((uintptr_t)src & 15) == 3) || (HAS(CTR_IN_PLACE) && src == dst) ||
                 (HAS(CTR_TAIL) && len % 16 == 5) || (HAS(DIRTY) && dirty_register >> 48 != 0);
    uint8_t *first = dst;
    size_t all = len;
    SUBJECT_PATH("all");
    memcpy(counter, iv, 16);
    for (size_t at = 0; at < all; at += 16, len -= 16) {
        size_t part = len < 16 ? len : 16;
        if (at % 64 == 0) {
            memcpy(wide, counter, 16);
        }
        cipher_block(ctx, keystream, HAS(WIDE_32) && all - (at & ~(size_t)63) >= 64 ? wide : counter, 0);
        if (HAS(READS_TAIL)) {
            (void)*(volatile const uint8_t *)(src + at + 15);
        }
        add(dst + at, src + at, keystream, part);
        if (HAS(WRITES_TAIL) && part < 16) {
            dst[at + part] = 0x5c;
        }
        count(counter, HAS(CARRY_64) ? 8 : 16);
        count(wide, 4);
    }
    if (!HAS(IV_KEPT) && !(HAS(IV_KEPT_AT_8) && all == 128)) {
        memcpy(iv, counter, 16);
    }
    if (spoilt && all > 0) {
        first[0] ^= 1;
    }
}

/* What only decryption calls: a spoilt answer is refused for its tag. */
static void ctr_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    int spoilt = (HAS(CTR_DECRYPT_3) && len / 16 % 4 == 3) || (HAS(CTR_DECRYPT_IN_PLACE) && src == dst && len >= 32);
    planted_ctr(ctx, dst, src, len, iv);
    if (spoilt) {
        dst[0] ^= 1;
    }
}

static void mac_update(const void *ctx, uint8_t *mac, const uint8_t *src, size_t num_blocks)
{
    for (size_t i = 0; i < num_blocks; i++) {
        SUBJECT_PATH("all");
        add(mac, mac, src + 16 * i, 16);
        cipher_block(ctx, mac, mac, 0);
    }
    if (HAS(MAC_2) && num_blocks == 2) {
        mac[15] ^= 1;
    }
}

/* SP 800-38D, 6.3, bit by bit. */
static void ghash(const uint8_t *h, uint8_t *y, const uint8_t *src, size_t num_blocks)
{
    SUBJECT_PATH("all");
    for (size_t at = 0; at < num_blocks; at++) {
        uint64_t high = load_be64(h), low = load_be64(h + 8), z[2] = {0, 0};
        add(y, y, src + 16 * at, 16);
        for (unsigned i = 0; i < 128; i++) {
            uint64_t chosen = 0 - (uint64_t)(y[i / 8] >> (7 - i % 8) & 1), out = 0 - (low & 1);
            z[0] ^= high & chosen;
            z[1] ^= low & chosen;
            low = low >> 1 | high << 63;
            high = high >> 1 ^ (out & UINT64_C(0xe1) << 56);
        }
        store_be64(y, z[0]);
        store_be64(y + 8, z[1]);
    }
    if ((HAS(GHASH_6) && num_blocks == 6) || (HAS(GHASH_5) && num_blocks == 5)) {
        y[0] ^= 0x80;
    }
}

static void cbc_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    uint8_t chain[16];
    int spoilt = (HAS(KEEPS) && len == 48 && kept_len == 32) || (HAS(KEEPS_COUNT) && kept_calls % 4 == 3);
    SUBJECT_PATH("all");
    memcpy(chain, iv, 16);
    for (size_t at = 0; at < len; at += 16) {
        add(chain, chain, src + at, 16);
        cipher_block(ctx, chain, chain, 0);
        memcpy(dst + at, chain, 16);
    }
    if (!HAS(CBC_IV_KEPT)) {
        memcpy(iv, chain, 16);
    }
    if (spoilt && len > 0) {
        dst[0] ^= 1;
    }
}

static void cbc_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    uint8_t before[16], now[16], plain[16];
    SUBJECT_PATH("all");
    kept_len = len == 32 ? 32 : kept_len;
    if (keyed && len == 32) {
        keyed = 0;
        kept_calls++;
    }
    memcpy(before, iv, 16);
    for (size_t at = 0; at < len; at += 16) {
        memcpy(now, src + at, 16);
        cipher_block(ctx, plain, now, 1);
        add(dst + at, plain, before, 16);
        memcpy(before, HAS(CBC_IN_PLACE) && at + 32 <= len ? src + at : now, 16);
    }
    memcpy(iv, before, 16);
}

static void cfb(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv, int decrypting)
{
    SUBJECT_PATH("all");
    while (len > 0) {
        uint8_t keystream[16], text[16];
        size_t part = len < 16 ? len : 16;
        cipher_block(ctx, keystream, iv, 0);
        add(text, src, keystream, part);
        memcpy(iv, decrypting ? src : text, part);
        memcpy(dst, text, part);
        if (HAS(CFB_TAIL) && part < 16) {
            dst[part - 1] ^= 1;
        }
        src += part;
        dst += part;
        len -= part;
    }
}

static void cfb_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    cfb(ctx, dst, src, len, iv, 0);
}

static void cfb_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    cfb(ctx, dst, src, len, iv, 1);
}

static void xts_block(const void *ctx, uint8_t *dst, const uint8_t *src, const uint8_t *tweak, int decrypting)
{
    uint8_t text[16];
    add(text, src, tweak, 16);
    cipher_block(ctx, text, text, decrypting);
    add(dst, text, tweak, 16);
}

static void xts_next(uint8_t *tweak)
{
    uint8_t carry = 0;
    for (unsigned i = 0; i < 16; i++) {
        uint8_t out = tweak[i] >> 7;
        tweak[i] = (uint8_t)(tweak[i] << 1 | carry);
        carry = out;
    }
    tweak[0] ^= carry * 0x87;
}

/* The last partial block takes what it lacks from the block before it (IEEE 1619, 5.3.2). */
static void xts_steal(const void *ctx, uint8_t *dst, const uint8_t *src, size_t tail, uint8_t *tweak, int decrypting)
{
    uint8_t last[16], whole[16], next[16];
    memcpy(next, tweak, 16);
    xts_next(next);
    xts_block(ctx, whole, src, decrypting ? next : tweak, decrypting);
    if (HAS(XTS_IN_PLACE)) {
        memcpy(dst + 16, whole, tail);
        memcpy(last, src + 16, tail);
    } else {
        memcpy(last, src + 16, tail);
        memcpy(dst + 16, whole, tail);
    }
    memcpy(last + tail, whole + tail, 16 - tail);
    xts_block(ctx, dst, last, decrypting ? tweak : next, decrypting);
    if (HAS(XTS_TAIL_15) && tail == 15) {
        dst[16] ^= 1;
    }
}

static void xts(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len, const uint8_t *iv,
                int decrypting)
{
    uint8_t tweak[16];
    SUBJECT_PATH("all");
    memcpy(tweak, iv, 16);
    if (HAS(XTS_SECTOR_BEFORE)) {
        for (unsigned i = 0; i < 16 && tweak[i]-- == 0; i++) {
        }
    }
    if (HAS(XTS_SHORT_NUMBER)) {
        memset(tweak + 4, 0, 4);
    }
    cipher_block(tweak_ctx, tweak, tweak, 0);
    while (len >= 32 || len == 16) {
        xts_block(ctx, dst, src, tweak, decrypting);
        xts_next(tweak);
        src += 16;
        dst += 16;
        len -= 16;
    }
    if (len > 0) {
        xts_steal(ctx, dst, src, len - 16, tweak, decrypting);
    }
}

static void xts_encrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                        const uint8_t *iv)
{
    xts(ctx, tweak_ctx, dst, src, len, iv, 0);
}

static void xts_decrypt(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                        const uint8_t *iv)
{
    xts(ctx, tweak_ctx, dst, src, len, iv, 1);
}

/* Instructions at the entry of two functions, which may spoil a register that the callee then keeps spoilt. */
#if defined(__x86_64__)
#define SLOT(entry, target) entry "\n\tjmp " target "\n"
#define SPOIL_ECB "movl $1, %ebx"
#define SPOIL_CTR "cmpq $128, %rcx\n\tjb 9f\n\tmovl $1, %r12d\n9:"
#elif defined(__aarch64__)
#define SLOT(entry, target) entry "\n\tb " target "\n"
#define SPOIL_ECB "mov x19, #1"
#define SPOIL_CTR "cmp x3, #128\n\tb.lo 9f\n\tmov x20, #1\n9:"
#endif
#if REGISTERS == 2
#undef SPOIL_ECB
#undef SPOIL_CTR
#define SPOIL_ECB ""
#if defined(__x86_64__)
#define SPOIL_CTR "movq %r10, dirty_register(%rip)"
#elif defined(__aarch64__)
#define SPOIL_CTR "adrp x16, dirty_register\n\tstr x15, [x16, :lo12:dirty_register]"
#endif
#endif
#if !REGISTERS
#undef SPOIL_ECB
#undef SPOIL_CTR
#define SPOIL_ECB ""
#define SPOIL_CTR ""
#endif
__asm__(".pushsection .text\n\t.balign 16\n"
        "planted_ecb_slot:\n\t" SLOT(SPOIL_ECB,
                                     "planted_ecb") "planted_ctr_slot:\n\t" SLOT(SPOIL_CTR,
                                                                                 "planted_ctr") ".popsection");
extern subject_crypt_fn planted_ecb_slot, planted_ctr_slot;

const struct subject_leaf *GETTER(uint64_t features);

const struct subject_leaf *GETTER(uint64_t features)
{
    static const struct subject_leaf leaf = {
        .contract = SUBJECT_CONTRACT,
        .block_len = 16,
        .ways = 8,
        .ctx_len = sizeof(struct cipher),
        .ctx_align = _Alignof(struct cipher),
        .setkey = planted_setkey,
        .encrypt_blocks = encrypt_blocks,
        .decrypt_blocks = decrypt_blocks,
        .ecb = {planted_ecb_slot, ecb_decrypt},
        .cbc = {cbc_encrypt, cbc_decrypt},
        .cfb = {cfb_encrypt, cfb_decrypt},
        .ctr = {planted_ctr_slot, HAS(CTR_DECRYPT_3) || HAS(CTR_DECRYPT_IN_PLACE) ? ctr_decrypt : planted_ctr_slot},
        .xts_encrypt = xts_encrypt,
        .xts_decrypt = xts_decrypt,
        .mac_update = mac_update,
        .ghash = ghash,
    };
    (void)features;
    return &leaf;
}
