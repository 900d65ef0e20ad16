/* SPDX-License-Identifier: Apache-2.0
 *
 * The look-up tables of AES (FIPS 197), computed by the compiler from the S-box and the inverse S-box.
 */
#ifndef AES_TABLES_H
#define AES_TABLES_H

#include "aes_sbox.h"

/* Section 4.2.1: multiplication by x modulo x^8 + x^4 + x^3 + x + 1, and by the constants of MixColumns (5.1.3) and
 * InvMixColumns (5.3.3). */
#define XTIME(b) ((((b) << 1) ^ (((b) >> 7) * 0x11bu)) & 0xffu)
#define TIMES_2(b) XTIME((b))
#define TIMES_4(b) XTIME(XTIME((b)))
#define TIMES_8(b) XTIME(XTIME(XTIME((b))))
#define TIMES_3(b) (TIMES_2(b) ^ (b))
#define TIMES_9(b) (TIMES_8(b) ^ (b))
#define TIMES_11(b) (TIMES_8(b) ^ TIMES_2(b) ^ (b))
#define TIMES_13(b) (TIMES_8(b) ^ TIMES_4(b) ^ (b))
#define TIMES_14(b) (TIMES_8(b) ^ TIMES_4(b) ^ TIMES_2(b))

/* A column as a word: its first byte is the most significant. */
#define COLUMN(b0, b1, b2, b3) \
    (((uint32_t)(b0) << 24) | ((uint32_t)(b1) << 16) | ((uint32_t)(b2) << 8) | (uint32_t)(b3))

/* What the byte s of row 0 to 3 adds to its column in MixColumns, equation 5.6. */
#define MIX_0(s) COLUMN(TIMES_2(s##u), s##u, s##u, TIMES_3(s##u)),
#define MIX_1(s) COLUMN(TIMES_3(s##u), TIMES_2(s##u), s##u, s##u),
#define MIX_2(s) COLUMN(s##u, TIMES_3(s##u), TIMES_2(s##u), s##u),
#define MIX_3(s) COLUMN(s##u, s##u, TIMES_3(s##u), TIMES_2(s##u)),

/* The same for InvMixColumns, equation 5.10. */
#define UNMIX_0(s) COLUMN(TIMES_14(s##u), TIMES_9(s##u), TIMES_13(s##u), TIMES_11(s##u)),
#define UNMIX_1(s) COLUMN(TIMES_11(s##u), TIMES_14(s##u), TIMES_9(s##u), TIMES_13(s##u)),
#define UNMIX_2(s) COLUMN(TIMES_13(s##u), TIMES_11(s##u), TIMES_14(s##u), TIMES_9(s##u)),
#define UNMIX_3(s) COLUMN(TIMES_9(s##u), TIMES_13(s##u), TIMES_11(s##u), TIMES_14(s##u)),

/* Row r: MixColumns after SubBytes, and InvMixColumns after InvSubBytes, of one byte of row r. */
static const uint32_t sub_mix[4][256] = {{SBOX(MIX_0)}, {SBOX(MIX_1)}, {SBOX(MIX_2)}, {SBOX(MIX_3)}};
static const uint32_t unsub_unmix[4][256] = {
    {INVERSE_SBOX(UNMIX_0)}, {INVERSE_SBOX(UNMIX_1)}, {INVERSE_SBOX(UNMIX_2)}, {INVERSE_SBOX(UNMIX_3)}};

#endif
