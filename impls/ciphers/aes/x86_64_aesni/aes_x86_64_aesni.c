/* SPDX-License-Identifier: Apache-2.0
 *
 * AES with AES-NI and PCLMULQDQ: eight blocks side by side.
 */
#include "aes_x86_vector_xmm.h"

#include "aes_x86_block.h"
#include "aes_x86_ghash.h"
#include "aes_x86_serial.h"
#include "aes_x86_tweaked.h"
#include "aes_x86_wide.h"

#define NEEDED (SUBJECT_X86_SSSE3 | SUBJECT_X86_SSE41 | SUBJECT_X86_AES | SUBJECT_X86_PCLMUL)

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = WAYS,
    .ctx_len = sizeof(struct aes_ctx),
    .ctx_align = _Alignof(struct aes_ctx),
    .setkey = setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
    .ecb = {ecb_encrypt, ecb_decrypt},
    .cbc = {cbc_encrypt, cbc_decrypt},
    .cfb = {cfb_encrypt, cfb_decrypt},
    .ofb = {ofb_crypt, ofb_crypt},
    .ctr = {ctr_crypt, ctr_crypt},
    .cts_cbc = {cts_cbc_encrypt, cts_cbc_decrypt},
    .xts_encrypt = xts_encrypt,
    .xts_decrypt = xts_decrypt,
    .xts_gb_encrypt = xts_gb_encrypt,
    .xts_gb_decrypt = xts_gb_decrypt,
    .lrw_encrypt = lrw_encrypt,
    .lrw_decrypt = lrw_decrypt,
    .mac_update = mac_update,
    .ghash = ghash,
};

const struct subject_leaf *aes_x86_64_aesni(uint64_t features);

const struct subject_leaf *aes_x86_64_aesni(uint64_t features)
{
    return (features & NEEDED) == NEEDED ? &leaf : NULL;
}
