/* SPDX-License-Identifier: Apache-2.0
 *
 * Triple DES with AVX2: 256 blocks bitsliced; few blocks, and modes that take one after the other, as des3_ede-x86_64.
 */
#include "des3_ede_vector_avx2.h"

#include "des3_ede_interleaved.h"

#define PAYS 24u

#include "des3_ede_bitslice.h"

static const struct subject_leaf leaf = {
    .contract = SUBJECT_CONTRACT,
    .block_len = BLOCK_LEN,
    .ways = WAYS,
    .ctx_len = sizeof(struct bitslice_ctx),
    .ctx_align = _Alignof(struct bitslice_ctx),
    .setkey = bitslice_setkey,
    .encrypt_blocks = bitslice_encrypt_blocks,
    .decrypt_blocks = bitslice_decrypt_blocks,
    .ecb = {bitslice_ecb_encrypt, bitslice_ecb_decrypt},
    .cbc = {cbc_encrypt, bitslice_cbc_decrypt},
    .cfb = {cfb_encrypt, bitslice_cfb_decrypt},
    .ofb = {ofb_crypt, ofb_crypt},
    .ctr = {bitslice_ctr_crypt, bitslice_ctr_crypt},
};

const struct subject_leaf *des3_ede_x86_64_avx2_bitslice(uint64_t features);

const struct subject_leaf *des3_ede_x86_64_avx2_bitslice(uint64_t features)
{
    return (features & SUBJECT_X86_AVX2) != 0 ? &leaf : NULL;
}
