/* SPDX-License-Identifier: Apache-2.0
 *
 * SM4 with AES-NI and AVX2: AESENCLAST takes the 128-bit halves of a register one by one.
 */
#define SUB_AND_SHIFT                                    \
    "vextracti128 $1, %[low], %x[high]\n\t"              \
    "vaesenclast (%[constants]), %x[low], %x[low]\n\t"   \
    "vaesenclast (%[constants]), %x[high], %x[high]\n\t" \
    "vinserti128 $1, %x[high], %[low], %[low]\n\t"

#include "sm4_avx2.h"
#include "sm4_avx2_modes.h"

#define NEEDED (SUBJECT_X86_AES | SUBJECT_X86_AVX2)

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = WAYS,
    .ctx_len = sizeof(struct sm4_ctx),
    .ctx_align = _Alignof(struct sm4_ctx),
    .setkey = setkey,
    .encrypt_blocks = encrypt_blocks,
    .decrypt_blocks = decrypt_blocks,
    .ecb = {ecb_encrypt, ecb_decrypt},
    .cbc = {NULL, cbc_decrypt}, /* encryption is one block at a time, fused or not */
    .cfb = {NULL, cfb_decrypt},
    .ctr = {ctr_crypt, ctr_crypt},
    .xts_encrypt = xts_encrypt,
    .xts_decrypt = xts_decrypt,
    .xts_gb_encrypt = xts_gb_encrypt,
    .xts_gb_decrypt = xts_gb_decrypt,
};

const struct subject_leaf *sm4_x86_64_aesni_avx2(uint64_t features);

const struct subject_leaf *sm4_x86_64_aesni_avx2(uint64_t features)
{
    return (features & NEEDED) == NEEDED ? &leaf : NULL;
}
