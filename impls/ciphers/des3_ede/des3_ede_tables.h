/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of FIPS 46-3, printed as the standard prints them, and what the preprocessor derives from them. */
#ifndef CROSSLANE_DES3_EDE_TABLES_H
#define CROSSLANE_DES3_EDE_TABLES_H

#include <stdint.h>

/* clang-format off */

/* Permuted choice 1: which bits of KEY make C (first half) and D (second half); bits count from 1 at the left. */
static const uint8_t pc1[56] = {
    57, 49, 41, 33, 25, 17,  9,
     1, 58, 50, 42, 34, 26, 18,
    10,  2, 59, 51, 43, 35, 27,
    19, 11,  3, 60, 52, 44, 36,

    63, 55, 47, 39, 31, 23, 15,
     7, 62, 54, 46, 38, 30, 22,
    14,  6, 61, 53, 45, 37, 29,
    21, 13,  5, 28, 20, 12,  4,
};

/* Permuted choice 2: which bits of CD make K. */
static const uint8_t pc2[48] = {
    14, 17, 11, 24,  1,  5,
     3, 28, 15,  6, 21, 10,
    23, 19, 12,  4, 26,  8,
    16,  7, 27, 20, 13,  2,
    41, 52, 31, 37, 47, 55,
    30, 40, 51, 45, 33, 48,
    44, 49, 39, 56, 34, 53,
    46, 42, 50, 36, 29, 32,
};

/* Number of left shifts before each of the 16 iterations. */
static const uint8_t left_shifts[16] = {1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1};

/* P: bit `to` of the output is bit `from` of the input. The result is turned left by one bit, as the halves of the
 * block are (see des3_ede_block.h): bit `to` moves to the place of bit to - 1, bit 1 to that of bit 32. */
#define P_BIT(x, to, from) ((((x) >> (32 - (from))) & 1u) << ((33 - (to)) & 31))
#define P(x) \
    (P_BIT(x,  1, 16) | P_BIT(x,  2,  7) | P_BIT(x,  3, 20) | P_BIT(x,  4, 21) | \
     P_BIT(x,  5, 29) | P_BIT(x,  6, 12) | P_BIT(x,  7, 28) | P_BIT(x,  8, 17) | \
     P_BIT(x,  9,  1) | P_BIT(x, 10, 15) | P_BIT(x, 11, 23) | P_BIT(x, 12, 26) | \
     P_BIT(x, 13,  5) | P_BIT(x, 14, 18) | P_BIT(x, 15, 31) | P_BIT(x, 16, 10) | \
     P_BIT(x, 17,  2) | P_BIT(x, 18,  8) | P_BIT(x, 19, 24) | P_BIT(x, 20, 14) | \
     P_BIT(x, 21, 32) | P_BIT(x, 22, 27) | P_BIT(x, 23,  3) | P_BIT(x, 24,  9) | \
     P_BIT(x, 25, 19) | P_BIT(x, 26, 13) | P_BIT(x, 27, 30) | P_BIT(x, 28,  6) | \
     P_BIT(x, 29, 22) | P_BIT(x, 30, 11) | P_BIT(x, 31,  4) | P_BIT(x, 32, 25))

/* What the value v of S-box n contributes to P(S1(B1)S2(B2)...S8(B8)): v stands in bits 4n-3 to 4n of P's input. */
#define SP(n, v) DES3_EDE_ENTRY(P((uint32_t)(v) << (32 - 4 * (n))))

/* An implementation that wants its entries in another form says so before it includes this. */
#ifndef DES3_EDE_ENTRY
#define DES3_EDE_ENTRY(v) (v)
typedef uint32_t des3_ede_entry;
#endif

/* Two rows a, b of S-box n in the order of the six input bits b1..b6. "The first and last bits of B represent in
 * base 2 a number in the range 0 to 3", the row, and the middle four the column: so for b1 = 0 rows 0 and 1 take
 * turns, column by column, and for b1 = 1 rows 2 and 3. */
#define ROWS(n, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, \
                b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15) \
    SP(n, a0), SP(n, b0), SP(n, a1), SP(n, b1), SP(n, a2), SP(n, b2), SP(n, a3), SP(n, b3), \
    SP(n, a4), SP(n, b4), SP(n, a5), SP(n, b5), SP(n, a6), SP(n, b6), SP(n, a7), SP(n, b7), \
    SP(n, a8), SP(n, b8), SP(n, a9), SP(n, b9), SP(n, a10), SP(n, b10), SP(n, a11), SP(n, b11), \
    SP(n, a12), SP(n, b12), SP(n, a13), SP(n, b13), SP(n, a14), SP(n, b14), SP(n, a15), SP(n, b15)

/* sp[n - 1][B] = P applied to S-box n's value for the six bits B. */
static const des3_ede_entry sp[8][64] = {
    { /* S1 */
        ROWS(1, 14,  4, 13,  1,  2, 15, 11,  8,  3, 10,  6, 12,  5,  9,  0,  7,
                 0, 15,  7,  4, 14,  2, 13,  1, 10,  6, 12, 11,  9,  5,  3,  8),
        ROWS(1,  4,  1, 14,  8, 13,  6,  2, 11, 15, 12,  9,  7,  3, 10,  5,  0,
                15, 12,  8,  2,  4,  9,  1,  7,  5, 11,  3, 14, 10,  0,  6, 13),
    },
    { /* S2 */
        ROWS(2, 15,  1,  8, 14,  6, 11,  3,  4,  9,  7,  2, 13, 12,  0,  5, 10,
                 3, 13,  4,  7, 15,  2,  8, 14, 12,  0,  1, 10,  6,  9, 11,  5),
        ROWS(2,  0, 14,  7, 11, 10,  4, 13,  1,  5,  8, 12,  6,  9,  3,  2, 15,
                13,  8, 10,  1,  3, 15,  4,  2, 11,  6,  7, 12,  0,  5, 14,  9),
    },
    { /* S3 */
        ROWS(3, 10,  0,  9, 14,  6,  3, 15,  5,  1, 13, 12,  7, 11,  4,  2,  8,
                13,  7,  0,  9,  3,  4,  6, 10,  2,  8,  5, 14, 12, 11, 15,  1),
        ROWS(3, 13,  6,  4,  9,  8, 15,  3,  0, 11,  1,  2, 12,  5, 10, 14,  7,
                 1, 10, 13,  0,  6,  9,  8,  7,  4, 15, 14,  3, 11,  5,  2, 12),
    },
    { /* S4 */
        ROWS(4,  7, 13, 14,  3,  0,  6,  9, 10,  1,  2,  8,  5, 11, 12,  4, 15,
                13,  8, 11,  5,  6, 15,  0,  3,  4,  7,  2, 12,  1, 10, 14,  9),
        ROWS(4, 10,  6,  9,  0, 12, 11,  7, 13, 15,  1,  3, 14,  5,  2,  8,  4,
                 3, 15,  0,  6, 10,  1, 13,  8,  9,  4,  5, 11, 12,  7,  2, 14),
    },
    { /* S5 */
        ROWS(5,  2, 12,  4,  1,  7, 10, 11,  6,  8,  5,  3, 15, 13,  0, 14,  9,
                14, 11,  2, 12,  4,  7, 13,  1,  5,  0, 15, 10,  3,  9,  8,  6),
        ROWS(5,  4,  2,  1, 11, 10, 13,  7,  8, 15,  9, 12,  5,  6,  3,  0, 14,
                11,  8, 12,  7,  1, 14,  2, 13,  6, 15,  0,  9, 10,  4,  5,  3),
    },
    { /* S6 */
        ROWS(6, 12,  1, 10, 15,  9,  2,  6,  8,  0, 13,  3,  4, 14,  7,  5, 11,
                10, 15,  4,  2,  7, 12,  9,  5,  6,  1, 13, 14,  0, 11,  3,  8),
        ROWS(6,  9, 14, 15,  5,  2,  8, 12,  3,  7,  0,  4, 10,  1, 13, 11,  6,
                 4,  3,  2, 12,  9,  5, 15, 10, 11, 14,  1,  7,  6,  0,  8, 13),
    },
    { /* S7 */
        ROWS(7,  4, 11,  2, 14, 15,  0,  8, 13,  3, 12,  9,  7,  5, 10,  6,  1,
                13,  0, 11,  7,  4,  9,  1, 10, 14,  3,  5, 12,  2, 15,  8,  6),
        ROWS(7,  1,  4, 11, 13, 12,  3,  7, 14, 10, 15,  6,  8,  0,  5,  9,  2,
                 6, 11, 13,  8,  1,  4, 10,  7,  9,  5,  0, 15, 14,  2,  3, 12),
    },
    { /* S8 */
        ROWS(8, 13,  2,  8,  4,  6, 15, 11,  1, 10,  9,  3, 14,  5,  0, 12,  7,
                 1, 15, 13,  8, 10,  3,  7,  4, 12,  5,  6, 11,  0, 14,  9,  2),
        ROWS(8,  7, 11,  4,  1,  9, 12, 14,  2,  0,  6, 10, 13, 15,  3,  5,  8,
                 2,  1, 14,  7,  4, 10,  8, 13, 15, 12,  9,  0,  3,  5,  6, 11),
    },
};

/* clang-format on */

#undef P_BIT
#undef P
#undef SP
#undef ROWS

#endif
