/* SPDX-License-Identifier: Apache-2.0
 *
 * Twofish's fixed tables, computed by the compiler from their definitions in the submission (B. Schneier, J. Kelsey,
 * D. Whiting, D. Wagner, C. Hall, N. Ferguson: "Twofish: A 128-Bit Block Cipher", 15 June 1998).
 */
#ifndef TWOFISH_TABLES_H
#define TWOFISH_TABLES_H

#include <stdint.h>

/* Section 4.3.5, table 1: the 4-bit S-boxes of q0 and q1, the entry for input 0 leftmost. */
#define Q0_T0 UINT64_C(0x817d6f320b59eca4)
#define Q0_T1 UINT64_C(0xecb81235f4a6709d)
#define Q0_T2 UINT64_C(0xba5e6d90c8f32471)
#define Q0_T3 UINT64_C(0xd7f4126e9b3085ca)
#define Q1_T0 UINT64_C(0x28bdf76e31940ac5)
#define Q1_T1 UINT64_C(0x1e2b4c376da5f908)
#define Q1_T2 UINT64_C(0x4c75169a0ed82b3f)
#define Q1_T3 UINT64_C(0xb951c3de647f208a)

/* Section 4.3.5: y = q(x). a and b are nibbles; a' = a ^ b, b' = a ^ ROR4(b, 1) ^ 8a mod 16, twice, with the S-boxes
 * t0, t1 after the first time and t2, t3 after the second. */
#define LOOK_UP(t, n) (((t) >> (60u - 4u * (n))) & 15u)
#define MIX_A(a, b) ((a) ^ (b))
#define MIX_B(a, b) ((a) ^ (((b) >> 1) | (((b) & 1u) << 3)) ^ (((a) & 1u) << 3))
#define Q_HALF_1(a, b, t0, t1, t2, t3) Q_HALF_2(LOOK_UP(t0, MIX_A(a, b)), LOOK_UP(t1, MIX_B(a, b)), t2, t3)
#define Q_HALF_2(a, b, t2, t3) ((LOOK_UP(t3, MIX_B(a, b)) << 4) | LOOK_UP(t2, MIX_A(a, b)))
#define Q0_ENTRY(x) (uint8_t)Q_HALF_1((x) >> 4, (x) & 15u, Q0_T0, Q0_T1, Q0_T2, Q0_T3),
#define Q1_ENTRY(x) (uint8_t)Q_HALF_1((x) >> 4, (x) & 15u, Q1_T0, Q1_T1, Q1_T2, Q1_T3),

/* Applies X to the bytes 0 to 255. */
#define EACH_OF_4(X, n) X(n) X((n) + 1u) X((n) + 2u) X((n) + 3u)
#define EACH_OF_16(X, n) EACH_OF_4(X, n) EACH_OF_4(X, (n) + 4u) EACH_OF_4(X, (n) + 8u) EACH_OF_4(X, (n) + 12u)
#define EACH_OF_64(X, n) EACH_OF_16(X, n) EACH_OF_16(X, (n) + 16u) EACH_OF_16(X, (n) + 32u) EACH_OF_16(X, (n) + 48u)
#define EACH_BYTE(X) EACH_OF_64(X, 0u) EACH_OF_64(X, 64u) EACH_OF_64(X, 128u) EACH_OF_64(X, 192u)

/* Section 4.2: the MDS matrix works in GF(2^8) modulo v(x) = x^8 + x^6 + x^5 + x^3 + 1. Its elements are 01, 5B and
 * EF; MDS_5B_i and MDS_EF_i are the latter two times x^i. */
#define MDS_XTIME(b) (((b) << 1) ^ (((b) >> 7) * 0x169))
enum {
    MDS_5B_0 = 0x5b,
    MDS_5B_1 = MDS_XTIME(MDS_5B_0),
    MDS_5B_2 = MDS_XTIME(MDS_5B_1),
    MDS_5B_3 = MDS_XTIME(MDS_5B_2),
    MDS_5B_4 = MDS_XTIME(MDS_5B_3),
    MDS_5B_5 = MDS_XTIME(MDS_5B_4),
    MDS_5B_6 = MDS_XTIME(MDS_5B_5),
    MDS_5B_7 = MDS_XTIME(MDS_5B_6),
    MDS_EF_0 = 0xef,
    MDS_EF_1 = MDS_XTIME(MDS_EF_0),
    MDS_EF_2 = MDS_XTIME(MDS_EF_1),
    MDS_EF_3 = MDS_XTIME(MDS_EF_2),
    MDS_EF_4 = MDS_XTIME(MDS_EF_3),
    MDS_EF_5 = MDS_XTIME(MDS_EF_4),
    MDS_EF_6 = MDS_XTIME(MDS_EF_5),
    MDS_EF_7 = MDS_XTIME(MDS_EF_6)
};

#define BIT_TIMES(x, i, c) ((((x) >> (i)) & 1u) * (uint32_t)(c))
#define TIMES_01(x) (x)
#define TIMES_5B(x)                                                                                                  \
    (BIT_TIMES(x, 0, MDS_5B_0) ^ BIT_TIMES(x, 1, MDS_5B_1) ^ BIT_TIMES(x, 2, MDS_5B_2) ^ BIT_TIMES(x, 3, MDS_5B_3) ^ \
     BIT_TIMES(x, 4, MDS_5B_4) ^ BIT_TIMES(x, 5, MDS_5B_5) ^ BIT_TIMES(x, 6, MDS_5B_6) ^ BIT_TIMES(x, 7, MDS_5B_7))
#define TIMES_EF(x)                                                                                                  \
    (BIT_TIMES(x, 0, MDS_EF_0) ^ BIT_TIMES(x, 1, MDS_EF_1) ^ BIT_TIMES(x, 2, MDS_EF_2) ^ BIT_TIMES(x, 3, MDS_EF_3) ^ \
     BIT_TIMES(x, 4, MDS_EF_4) ^ BIT_TIMES(x, 5, MDS_EF_5) ^ BIT_TIMES(x, 6, MDS_EF_6) ^ BIT_TIMES(x, 7, MDS_EF_7))

/* A word's first byte is the least significant. Column j of the matrix times x: */
#define WORD(b0, b1, b2, b3) ((uint32_t)(b0) | ((uint32_t)(b1) << 8) | ((uint32_t)(b2) << 16) | ((uint32_t)(b3) << 24))
#define MDS_COLUMN_0(x) WORD(TIMES_01(x), TIMES_5B(x), TIMES_EF(x), TIMES_EF(x)),
#define MDS_COLUMN_1(x) WORD(TIMES_EF(x), TIMES_EF(x), TIMES_5B(x), TIMES_01(x)),
#define MDS_COLUMN_2(x) WORD(TIMES_5B(x), TIMES_EF(x), TIMES_01(x), TIMES_EF(x)),
#define MDS_COLUMN_3(x) WORD(TIMES_5B(x), TIMES_01(x), TIMES_EF(x), TIMES_5B(x)),

static const uint8_t q[2][256] = {{EACH_BYTE(Q0_ENTRY)}, {EACH_BYTE(Q1_ENTRY)}};
static const uint32_t mds[4][256] = {
    {EACH_BYTE(MDS_COLUMN_0)}, {EACH_BYTE(MDS_COLUMN_1)}, {EACH_BYTE(MDS_COLUMN_2)}, {EACH_BYTE(MDS_COLUMN_3)}};

/* Section 4.3: the columns of the RS matrix, in GF(2^8) modulo w(x) = x^8 + x^6 + x^3 + x^2 + 1. */
#define RS_POLYNOMIAL 0x14du
static const uint32_t rs_column[8] = {WORD(0x01, 0xa4, 0x02, 0xa4), WORD(0xa4, 0x56, 0xa1, 0x55),
                                      WORD(0x55, 0x82, 0xfc, 0x87), WORD(0x87, 0xf3, 0xc1, 0x5a),
                                      WORD(0x5a, 0x1e, 0x47, 0x58), WORD(0x58, 0xc6, 0xae, 0xdb),
                                      WORD(0xdb, 0x68, 0x3d, 0x9e), WORD(0x9e, 0xe5, 0x19, 0x03)};

#endif
