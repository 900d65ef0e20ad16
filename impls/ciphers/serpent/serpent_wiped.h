/* SPDX-License-Identifier: Apache-2.0
 *
 * The slots of serpent_modes.h, which comes first, such that they leave nothing of the keys behind (subject_wipe.h).
 */
#ifndef SERPENT_WIPED_H
#define SERPENT_WIPED_H

#include "subject_wipe.h"

SUBJECT_WIPE(wipe_block, SERPENT_BLOCK_FRAME)
SUBJECT_WIPE(wipe, 768)
SUBJECT_WIPE(wipe_more, SERPENT_KEY_FRAME) /* also for tweaks with their products */

/* A single block goes by itself. */
#define WIPE_LEN (len > BLOCK_LEN ? wipe : wipe_block)

SUBJECT_WIPED_SETKEY(wiped_setkey, setkey, wipe_more)
SUBJECT_WIPED_BLOCKS(wiped_encrypt_blocks, encrypt_blocks, (num_blocks > 1 ? wipe : wipe_block))
SUBJECT_WIPED_BLOCKS(wiped_decrypt_blocks, decrypt_blocks, (num_blocks > 1 ? wipe : wipe_block))
SUBJECT_WIPED_CRYPT(wiped_ecb_encrypt, ecb_encrypt, WIPE_LEN)
SUBJECT_WIPED_CRYPT(wiped_ecb_decrypt, ecb_decrypt, WIPE_LEN)
SUBJECT_WIPED_CRYPT(wiped_cbc_decrypt, cbc_decrypt, WIPE_LEN)
SUBJECT_WIPED_CRYPT(wiped_cfb_decrypt, cfb_decrypt, WIPE_LEN)
SUBJECT_WIPED_CRYPT(wiped_ctr_crypt, ctr_crypt, WIPE_LEN)
SUBJECT_WIPED_XTS(wiped_xts_encrypt, xts_encrypt, wipe_more)
SUBJECT_WIPED_XTS(wiped_xts_decrypt, xts_decrypt, wipe_more)
SUBJECT_WIPED_LRW(wiped_lrw_encrypt, lrw_encrypt, wipe_more)
SUBJECT_WIPED_LRW(wiped_lrw_decrypt, lrw_decrypt, wipe_more)

#endif
