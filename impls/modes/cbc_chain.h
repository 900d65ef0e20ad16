/* SPDX-License-Identifier: Apache-2.0
 * The chain of CBC over whole blocks, which the modes built on CBC share: C_j = E(P_j xor C_{j-1}),
 * P_j = D(C_j) xor C_{j-1}, C_0 = m->iv, which becomes the last C_j. */
#ifndef CROSSLANE_CBC_CHAIN_H
#define CROSSLANE_CBC_CHAIN_H

#include "mode.h"

static inline void cbc_encrypt_chain(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    size_t bs = m->leaf->block_len;
    for (size_t i = 0; i < num_blocks; i++) {
        uint8_t block[SUBJECT_MAX_BLOCK_LEN];
        xor_bytes(block, src + i * bs, m->iv, bs);
        m->leaf->encrypt_blocks(m->ctx, dst + i * bs, block, 1);
        memcpy(m->iv, dst + i * bs, bs);
    }
}

/* Decryption has no chain between the block calls, so it goes in runs; a copy of the ciphertext serves in place. */
static inline void cbc_decrypt_run(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    size_t bs = m->leaf->block_len, len = num_blocks * bs;
    uint8_t before[(MODE_MAX_RUN + 1) * SUBJECT_MAX_BLOCK_LEN];
    memcpy(before, m->iv, bs);
    memcpy(before + bs, src, len);
    m->leaf->decrypt_blocks(m->ctx, dst, src, num_blocks);
    xor_bytes(dst, dst, before, len);
    memcpy(m->iv, before + len, bs);
}

static inline void cbc_decrypt_chain(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t num_blocks)
{
    for (unsigned step = 0; num_blocks > 0; step++) {
        size_t run = mode_run_len(m->leaf, step, num_blocks);
        cbc_decrypt_run(m, dst, src, run);
        dst += run * m->leaf->block_len;
        src += run * m->leaf->block_len;
        num_blocks -= run;
    }
}

#endif
