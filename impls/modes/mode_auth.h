/* SPDX-License-Identifier: Apache-2.0
 * What the MACs and the modes with associated data share. A layout of subject_state.extra holds 64-bit words and bytes
 * only. The running CBC-MAC or GHASH value lies in m->iv, so that a leaf sees it wherever the shim puts it. */
#ifndef CROSSLANE_MODE_AUTH_H
#define CROSSLANE_MODE_AUTH_H

#include "mode.h"

#define MODE_EXTRA_FITS(type)                                                                                        \
    _Static_assert(sizeof(type) <= sizeof((struct subject_state *)0)->extra && _Alignof(type) <= _Alignof(uint64_t), \
                   #type " does not fit subject_state.extra")

/* ---- CBC-MAC ---------------------------------------------------------------------------------------------- */

/* Bytes not absorbed yet. The last block of a message is held back even where it is full, until it is known to be the
 * last: the MACs treat it differently. `used` is 0 only before the first byte and after padding. Bytes behind a part of a
 * block are 0, and before the first byte all are, so that padding is there already. */
struct mode_pending {
    uint64_t used;
    uint8_t bytes[SUBJECT_MAX_BLOCK_LEN];
};

static inline void mode_mac_start(struct subject_message *m, struct mode_pending *pending)
{
    memset(m->iv, 0, 8);
    if (m->leaf->block_len > 8) {
        memset(m->iv + 8, 0, 8);
    }
    *pending = (struct mode_pending){0};
}

/* mac = E(mac xor block) for each block, under the key of ctx. */
static inline void mode_mac_blocks(struct subject_message *m, const void *ctx, const uint8_t *src, size_t num_blocks)
{
    const struct subject_leaf *leaf = m->leaf;
    if (leaf->mac_update != NULL) {
        leaf->mac_update(ctx, m->iv, src, num_blocks);
        return;
    }
    for (size_t i = 0; i < num_blocks; i++) {
        xor_bytes(m->iv, m->iv, src + i * leaf->block_len, leaf->block_len);
        leaf->encrypt_blocks(ctx, m->iv, m->iv, 1);
    }
}

/* What is more or less than a first block: not inlined, so that a message of one block saves no registers for it. */
__attribute__((noinline, unused)) static int mode_mac_absorb(struct subject_message *m, const void *ctx,
                                                             struct mode_pending *pending, const uint8_t *src,
                                                             size_t len)
{
    size_t bs = m->leaf->block_len, used = (size_t)pending->used;
    if (used > 0) {
        size_t n = len < bs - used ? len : bs - used;
        memcpy(pending->bytes + used, src, n);
        pending->used += n;
        if (n == len) {
            return SUBJECT_OK;
        }
        src += n;
        len -= n;
        mode_mac_blocks(m, ctx, pending->bytes, 1);
    } else if (len == 0) {
        return SUBJECT_OK;
    }
    size_t whole = (len - 1) / bs;
    /* Behind a block that was begun before, also for none. */
    if (used > 0 || whole > 0) {
        mode_mac_blocks(m, ctx, src, whole);
    }
    pending->used = len - whole * bs;
    if (pending->used == bs) {
        mode_copy_block(pending->bytes, src + whole * bs, bs);
    } else {
        memset(pending->bytes, 0, sizeof(pending->bytes));
        memcpy(pending->bytes, src + whole * bs, (size_t)pending->used);
    }
    return SUBJECT_OK;
}

static inline int mode_mac_update(struct subject_message *m, const void *ctx, struct mode_pending *pending,
                                  const uint8_t *src, size_t len)
{
    if (pending->used > 0 || len != m->leaf->block_len) {
        return mode_mac_absorb(m, ctx, pending, src, len);
    }
    pending->used = len;
    mode_copy_block(pending->bytes, src, len);
    return SUBJECT_OK;
}

/* Absorbs the last block, filled up with zeros; nothing where none was begun. */
static inline void mode_mac_pad(struct subject_message *m, const void *ctx, struct mode_pending *pending)
{
    if (pending->used > 0) {
        mode_mac_blocks(m, ctx, pending->bytes, 1);
        pending->used = 0;
    }
}

/* The end of CMAC and XCBC: a complete last block is masked with `whole`; another one gets 10* and is masked with
 * `padded`. */
static inline void mode_mac_final(struct subject_message *m, const void *ctx, struct mode_pending *pending,
                                  const uint8_t *whole, const uint8_t *padded)
{
    size_t bs = m->leaf->block_len, used = (size_t)pending->used;
    if (used < bs) {
        pending->bytes[used] = 0x80;
    }
    const uint8_t *mask = used < bs ? padded : whole;
    xor_bytes(m->iv, m->iv, mask, 8);
    if (bs > 8) {
        xor_bytes(m->iv + 8, m->iv + 8, mask + 8, 8);
    }
    pending->used = 0;
    mode_mac_blocks(m, ctx, pending->bytes, 1);
}

/* setiv of a MAC: there is no iv, and the tag is a block. */
static inline int mode_mac_check_lengths(const struct subject_message *m, size_t iv_len)
{
    if (iv_len != 0) {
        return SUBJECT_BAD_IV_LEN;
    }
    return m->state->lengths.tag_len == m->leaf->block_len ? SUBJECT_OK : SUBJECT_BAD_TAG_LEN;
}

/* tag of a MAC: the running value is the tag once the message is final. */
static inline int mode_mac_tag(struct subject_message *m, uint8_t *tag, size_t tag_len)
{
    if (tag_len != m->leaf->block_len) {
        return SUBJECT_BAD_TAG_LEN;
    }
    mode_copy_block(tag, m->iv, tag_len);
    return SUBJECT_OK;
}

static inline uint32_t mode_auth_iv_out_len(const struct subject_message *m)
{
    (void)m;
    return 0;
}

/* ---- associated data -------------------------------------------------------------------------------------- */

/* Counter blocks, of which the last `width` bytes count up, big-endian and modulo 2^(8 * width), over 16-byte blocks. */
static inline void mode_counter_blocks(struct subject_message *m, uint8_t *counter, size_t width, uint8_t *dst,
                                       const uint8_t *src, size_t num_blocks)
{
    uint8_t keystream[MODE_MAX_RUN * 16];
    for (unsigned step = 0; num_blocks > 0; step++) {
        size_t run = mode_run_len(m->leaf, step, num_blocks);
        for (size_t i = 0; i < run; i++) {
            memcpy(keystream + 16 * i, counter, 16);
            increment_be(counter + 16 - width, width);
        }
        m->leaf->encrypt_blocks(m->ctx, keystream, keystream, run);
        xor_bytes(dst, src, keystream, 16 * run);
        dst += 16 * run;
        src += 16 * run;
        num_blocks -= run;
    }
}

/* The same by a leaf's counter mode, which counts over the whole block: a call ends where the last `width` bytes have
 * wrapped, and what they carried is taken back. */
static inline void mode_counter_fused(const struct subject_message *m, uint8_t *counter, size_t width,
                                      subject_crypt_fn *fused, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    const uint64_t last = width < 8 ? (UINT64_C(1) << (8 * width)) - 1 : UINT64_MAX;
    while (num_blocks > 0) {
        uint8_t fixed[16];
        uint64_t room = (0 - load_be64(counter + 8)) & last;
        room = room == 0 ? last : room;
        size_t run = num_blocks < room ? num_blocks : (size_t)room;
        memcpy(fixed, counter, 16 - width);
        fused(m->ctx, dst, src, 16 * run, counter);
        memcpy(counter, fixed, 16 - width);
        dst += 16 * run;
        src += 16 * run;
        num_blocks -= run;
    }
}

/* Encrypts or decrypts any bytes of a message: what is left of a keystream block serves the next call. `fused` is the
 * leaf's counter mode, NULL where it has none. */
static inline void mode_counter_crypt(struct subject_message *m, uint8_t *counter, size_t width,
                                      subject_crypt_fn *fused, uint8_t *dst, const uint8_t *src, size_t len)
{
    size_t spent = mode_spend_keystream(m, dst, src, len);
    size_t whole = (len - spent) / 16 * 16, rest = len - spent - whole;
    dst += spent;
    src += spent;
    if (fused == NULL) {
        mode_counter_blocks(m, counter, width, dst, src, whole / 16);
    } else {
        mode_counter_fused(m, counter, width, fused, dst, src, whole / 16);
    }
    if (rest > 0) {
        uint8_t *keystream = m->state->keystream;
        memset(keystream, 0, 16);
        mode_counter_blocks(m, counter, width, keystream, keystream, 1);
        xor_bytes(dst + whole, src + whole, keystream, rest);
        m->state->used = (uint32_t)rest;
    }
}

/* Gives the first tag_len bytes of the tag or compares them, in a time that does not depend on where they differ. */
static inline int mode_aead_tag(const struct subject_message *m, const uint8_t *computed, uint8_t *tag, size_t tag_len)
{
    if (tag_len != m->state->lengths.tag_len) {
        return SUBJECT_BAD_TAG_LEN;
    }
    if (!m->state->decrypting) {
        memcpy(tag, computed, tag_len);
        return SUBJECT_OK;
    }
    uint8_t difference = 0;
    for (size_t i = 0; i < tag_len; i++) {
        difference |= (uint8_t)(computed[i] ^ tag[i]);
    }
    return difference == 0 ? SUBJECT_OK : SUBJECT_BAD_TAG;
}

#endif
