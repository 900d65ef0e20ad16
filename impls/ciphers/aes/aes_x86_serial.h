/* SPDX-License-Identifier: Apache-2.0
 *
 * What goes one block after the other: encryption in CBC and CFB, OFB, CBC-MAC; and CBC with ciphertext stealing.
 *
 * A block of a chain waits for the one before it, so that only what lies between the two counts. The last round's key,
 * the first round's key of the next block and the text between them are one XOR, computed beforehand: the chain is the
 * rounds alone. `state` is a block after its first key.
 */
#ifndef AES_X86_SERIAL_H
#define AES_X86_SERIAL_H

#include "aes_x86_block.h"
#include "aes_x86_wide.h"

/* The last key and the next block's first in one. */
ALWAYS_INLINE __m128i key_between(const struct aes_ctx *c)
{
    return block_xor(c->encrypt_key[0], c->encrypt_key[c->num_rounds]);
}

static void cbc_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct aes_ctx *c = ctx;
    const __m128i between = key_between(c), first = c->encrypt_key[0], last = c->encrypt_key[c->num_rounds];
    __m128i state, block;

    if (len == 0) {
        return;
    }
    state = block_xor(block_xor(block_load(src), block_load(iv)), first);
    for (; len > BLOCK_LEN; len -= BLOCK_LEN) {
        const __m128i text = block_load(src + BLOCK_LEN);
        state = _mm_aesenclast_si128(encrypt_middle(c, state), block_xor(between, text));
        block_store(dst, block_xor(state, block_xor(first, text)));
        src += BLOCK_LEN;
        dst += BLOCK_LEN;
    }
    block = _mm_aesenclast_si128(encrypt_middle(c, state), last);
    block_store(dst, block);
    block_store(iv, block);
}

static void cfb_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct aes_ctx *c = ctx;
    const __m128i between = key_between(c), first = c->encrypt_key[0], last = c->encrypt_key[c->num_rounds];
    __m128i state = block_xor(block_load(iv), first);

    for (; len >= BLOCK_LEN; len -= BLOCK_LEN) {
        state = _mm_aesenclast_si128(encrypt_middle(c, state), block_xor(between, block_load(src)));
        block_store(dst, block_xor(state, first));
        src += BLOCK_LEN;
        dst += BLOCK_LEN;
    }
    block_store(iv, block_xor(state, first));
    if (len > 0) {
        xor_part(dst, src, _mm_aesenclast_si128(encrypt_middle(c, state), last), len);
    }
}

static void ofb_crypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct aes_ctx *c = ctx;
    const __m128i between = key_between(c), first = c->encrypt_key[0];
    __m128i state = block_xor(block_load(iv), first);

    for (; len >= BLOCK_LEN; len -= BLOCK_LEN) {
        state = _mm_aesenclast_si128(encrypt_middle(c, state), between);
        block_store(dst, block_xor(state, block_xor(first, block_load(src))));
        src += BLOCK_LEN;
        dst += BLOCK_LEN;
    }
    block_store(iv, block_xor(state, first));
    if (len > 0) {
        xor_part(dst, src, block_xor(_mm_aesenclast_si128(encrypt_middle(c, state), between), first), len);
    }
}

static void mac_update(const void *ctx, uint8_t *mac, const uint8_t *src, size_t num_blocks)
{
    const struct aes_ctx *c = ctx;
    const __m128i between = key_between(c), first = c->encrypt_key[0], last = c->encrypt_key[c->num_rounds];
    __m128i state;

    if (num_blocks == 0) {
        return;
    }
    state = block_xor(block_xor(block_load(src), block_load(mac)), first);
    for (; num_blocks > 1; num_blocks--) {
        src += BLOCK_LEN;
        state = _mm_aesenclast_si128(encrypt_middle(c, state), block_xor(between, block_load(src)));
    }
    block_store(mac, _mm_aesenclast_si128(encrypt_middle(c, state), last));
}

/* ---- CBC-CS3, addendum to SP 800-38A: the last two blocks change places; a single block is plain CBC ---------- */

/* Bytes before the last block, which has 1 to 16. */
ALWAYS_INLINE size_t cts_head_len(size_t len)
{
    return (len - 1) / BLOCK_LEN * BLOCK_LEN;
}

static void cts_cbc_encrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct aes_ctx *c = ctx;
    uint8_t chain[BLOCK_LEN], last[BLOCK_LEN] = {0};
    size_t head, tail;
    __m128i block;

    if (len == 0) {
        return;
    }
    head = cts_head_len(len);
    tail = len - head;
    memcpy(chain, iv, BLOCK_LEN);
    memcpy(last, src + head, tail);
    cbc_encrypt(ctx, dst, src, head, chain);
    block = encrypt_block(c, block_xor(block_load(last), block_load(chain)));
    if (head == 0) {
        block_store(dst, block);
        return;
    }
    block_store(dst + head - BLOCK_LEN, block);
    memcpy(dst + head, chain, tail);
}

/* Behind the tail the padding was zero, so what the last block opens to there is the ciphertext before it. */
static void cts_cbc_decrypt(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv)
{
    const struct aes_ctx *c = ctx;
    uint8_t chain[BLOCK_LEN], opened[BLOCK_LEN], stolen[BLOCK_LEN];
    size_t head, before, tail;

    if (len == 0) {
        return;
    }
    head = cts_head_len(len);
    tail = len - head;
    memcpy(chain, iv, BLOCK_LEN);
    if (head == 0) {
        cbc_decrypt(ctx, dst, src, len, chain);
        return;
    }
    before = head - BLOCK_LEN;
    cbc_decrypt(ctx, dst, src, before, chain);
    block_store(opened, decrypt_block(c, block_load(src + before)));
    memcpy(stolen, src + head, tail);
    memcpy(stolen + tail, opened + tail, BLOCK_LEN - tail);
    xor_bytes(dst + head, opened, stolen, tail);
    block_store(dst + before, block_xor(decrypt_block(c, block_load(stolen)), block_load(chain)));
}

#endif
