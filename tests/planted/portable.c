/* SPDX-License-Identifier: Apache-2.0
 *
 * A leaf of ctr(sm4) that is right on most machines. The test writes fault.h beside it, which names the getter and
 * defines one of these as FAULT_...:
 *   BYTE_ORDER  takes words in the machine's own order and swaps them, as is right where that is little-endian;
 *   NARROW      counts in an unsigned long, as is right where that has 64 bits;
 *   STACK, HEAP, TABLE  touches one byte beyond an array of its own, which no guard page encloses and no answer shows;
 *   READ_BEYOND, WRITE_BEYOND, NOWHERE  reads a byte behind the input, writes one behind the output, writes to NULL;
 *   GREEDY      takes 4 GiB of memory and uses it;
 *   SHIFT       rotates by a variable amount with a shift by 32 where it is 0, which most processors take as one by 0.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "fault.h"
#include "sm4.h"

static void hide(const void *p)
{
    __asm__ volatile("" ::"r"(p) : "memory");
}

static void touch_beyond(uint8_t *dst, const uint8_t *src, size_t len)
{
    (void)dst;
    (void)src;
    (void)len;
#if defined(FAULT_READ_BEYOND)
    (void)((volatile const uint8_t *)src)[len];
#elif defined(FAULT_WRITE_BEYOND)
    ((volatile uint8_t *)dst)[len] = 1;
#elif defined(FAULT_NOWHERE)
    uintptr_t nowhere = 0;
    hide(&nowhere);
    *(volatile uint8_t *)nowhere = 1;
#elif defined(FAULT_GREEDY)
    for (unsigned i = 0; i < 64; i++) {
        uint8_t *more = mmap(NULL, 64u << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (more == MAP_FAILED) {
            abort();
        }
        memset(more, 1, 64u << 20);
    }
#elif defined(FAULT_STACK)
    _Alignas(16) uint8_t tail[13];
    hide(tail);
    tail[len % 16 == 0 ? 13 : 0] = 1;
    hide(tail);
#elif defined(FAULT_HEAP)
    uint8_t *copy = malloc(13);
    hide(copy);
    if (copy != NULL) {
        copy[len % 16 == 0 ? 13 : 0] = 1;
    }
    hide(copy);
    free(copy);
#elif defined(FAULT_TABLE)
    volatile const uint8_t *table = sm4_sbox;
    (void)table[len % 16 == 0 ? 256 : 0];
#endif
}

static uint32_t take_word(const uint8_t *p)
{
#if defined(FAULT_BYTE_ORDER)
    uint32_t word;
    memcpy(&word, p, 4);
    return __builtin_bswap32(word);
#else
    return load_be32(p);
#endif
}

static void add_one(uint8_t *iv)
{
#if defined(FAULT_NARROW)
    unsigned long low = (unsigned long)load_be64(iv + 8) + 1;
    store_be64(iv + 8, low);
    if (low == 0) {
        store_be64(iv, load_be64(iv) + 1);
    }
#else
    increment_be(iv, 16);
#endif
}

/* The word, turned left and back again. */
static uint32_t turn_and_back(uint32_t word, unsigned n)
{
#if defined(FAULT_SHIFT)
    word = word << n | word >> (32 - n);
    hide(&word);
    return word >> n | word << (32 - n);
#else
    return rotr32(rotl32(word, n), n);
#endif
}

static void ctr(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    uint8_t counter[16], keystream[16];
    SUBJECT_PATH("ctr");
    touch_beyond(dst, src, len);
    for (size_t at = 0; at < len; at++) {
        if (at % 16 == 0) {
            for (unsigned i = 0; i < 4; i++) {
                store_be32(counter + 4 * i, turn_and_back(take_word(iv + 4 * i), iv[15] & 31u));
            }
            sm4_block(ctx, keystream, counter, 0);
            add_one(iv);
        }
        dst[at] = src[at] ^ keystream[at % 16];
    }
}

static int setkey(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy)
{
    (void)policy;
    return sm4_setkey(ctx, key, key_len);
}

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

subject_getter_fn GETTER;

const struct subject_leaf *GETTER(uint64_t features)
{
    static const struct subject_leaf leaf = {
        .contract = SUBJECT_CONTRACT,
        .block_len = 16,
        .ways = 1,
        .ctx_len = sizeof(struct sm4),
        .ctx_align = _Alignof(struct sm4),
        .setkey = setkey,
        .encrypt_blocks = encrypt_blocks,
        .decrypt_blocks = decrypt_blocks,
        .ctr = {ctr, ctr},
    };
    (void)features;
    return &leaf;
}
