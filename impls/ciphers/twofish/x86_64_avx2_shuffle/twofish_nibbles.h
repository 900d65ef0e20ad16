/* SPDX-License-Identifier: Apache-2.0
 *
 * Twofish's q-permutations and MDS matrix as look-ups of nibbles, in tables of 16 bytes, computed by the compiler.
 *
 * q (section 4.3.5 of the submission) takes a byte as nibbles a (high) and b (low). Twice it mixes them, a' = a ^ b and
 * b' = a ^ ROR4(b, 1) ^ 8a, and sends a' and b' through 4-bit S-boxes of their own; then the nibbles change places. The
 * mixing is linear: b' = BY_HIGH(a) ^ BY_LOW(b). So a layer of S-boxes and the mixing behind it, with a key byte between
 * where there is one, is two look-ups and an XOR: the entry for a' or b' holds its share of the next a' in the low nibble
 * and of the next b' in the high one.
 */
#ifndef TWOFISH_NIBBLES_H
#define TWOFISH_NIBBLES_H

#include "twofish_tables.h"

#define BY_HIGH(n) (((n) ^ ((n) << 3)) & 15u)
#define BY_LOW(n) ((((n) >> 1) | ((n) << 3)) & 15u)

/* Shares of what the mixing makes of a nibble that is the high or the low one. */
#define MIXED_HIGH(n) (uint8_t)((n) | (BY_HIGH(n) << 4))
#define MIXED_LOW(n) (uint8_t)((n) | (BY_LOW(n) << 4))

/* In the middle of q: t0 gives the new a, t1 the new b. */
#define INNER_A_0(n) MIXED_HIGH(LOOK_UP(Q0_T0, n)),
#define INNER_A_1(n) MIXED_HIGH(LOOK_UP(Q1_T0, n)),
#define INNER_B_0(n) MIXED_LOW(LOOK_UP(Q0_T1, n)),
#define INNER_B_1(n) MIXED_LOW(LOOK_UP(Q1_T1, n)),
/* From the end of q into the next one: t2 gives the low nibble of the byte, t3 the high one. */
#define OUTER_A_0(n) MIXED_LOW(LOOK_UP(Q0_T2, n)),
#define OUTER_A_1(n) MIXED_LOW(LOOK_UP(Q1_T2, n)),
#define OUTER_B_0(n) MIXED_HIGH(LOOK_UP(Q0_T3, n)),
#define OUTER_B_1(n) MIXED_HIGH(LOOK_UP(Q1_T3, n)),

static const uint8_t inner_a[2][16] = {{EACH_OF_16(INNER_A_0, 0u)}, {EACH_OF_16(INNER_A_1, 0u)}};
static const uint8_t inner_b[2][16] = {{EACH_OF_16(INNER_B_0, 0u)}, {EACH_OF_16(INNER_B_1, 0u)}};
static const uint8_t outer_a[2][16] = {{EACH_OF_16(OUTER_A_0, 0u)}, {EACH_OF_16(OUTER_A_1, 0u)}};
static const uint8_t outer_b[2][16] = {{EACH_OF_16(OUTER_B_0, 0u)}, {EACH_OF_16(OUTER_B_1, 0u)}};

/* The first mixing, of a byte as it comes: shares of b'. */
#define FIRST_HIGH(n) (uint8_t)BY_HIGH(n),
#define FIRST_LOW(n) (uint8_t)BY_LOW(n),

static const uint8_t first_high[16] = {EACH_OF_16(FIRST_HIGH, 0u)};
static const uint8_t first_low[16] = {EACH_OF_16(FIRST_LOW, 0u)};

/* The last layer of the last q, multiplied by an element of the MDS matrix. */
#define LAST_A_0_01(n) (uint8_t)TIMES_01(LOOK_UP(Q0_T2, n)),
#define LAST_A_0_5B(n) (uint8_t)TIMES_5B(LOOK_UP(Q0_T2, n)),
#define LAST_A_0_EF(n) (uint8_t)TIMES_EF(LOOK_UP(Q0_T2, n)),
#define LAST_A_1_01(n) (uint8_t)TIMES_01(LOOK_UP(Q1_T2, n)),
#define LAST_A_1_5B(n) (uint8_t)TIMES_5B(LOOK_UP(Q1_T2, n)),
#define LAST_A_1_EF(n) (uint8_t)TIMES_EF(LOOK_UP(Q1_T2, n)),
#define LAST_B_0_01(n) (uint8_t)TIMES_01(LOOK_UP(Q0_T3, n) << 4),
#define LAST_B_0_5B(n) (uint8_t)TIMES_5B(LOOK_UP(Q0_T3, n) << 4),
#define LAST_B_0_EF(n) (uint8_t)TIMES_EF(LOOK_UP(Q0_T3, n) << 4),
#define LAST_B_1_01(n) (uint8_t)TIMES_01(LOOK_UP(Q1_T3, n) << 4),
#define LAST_B_1_5B(n) (uint8_t)TIMES_5B(LOOK_UP(Q1_T3, n) << 4),
#define LAST_B_1_EF(n) (uint8_t)TIMES_EF(LOOK_UP(Q1_T3, n) << 4),

enum { BY_01, BY_5B, BY_EF };

static const uint8_t last_a[2][3][16] = {
    {{EACH_OF_16(LAST_A_0_01, 0u)}, {EACH_OF_16(LAST_A_0_5B, 0u)}, {EACH_OF_16(LAST_A_0_EF, 0u)}},
    {{EACH_OF_16(LAST_A_1_01, 0u)}, {EACH_OF_16(LAST_A_1_5B, 0u)}, {EACH_OF_16(LAST_A_1_EF, 0u)}}};
static const uint8_t last_b[2][3][16] = {
    {{EACH_OF_16(LAST_B_0_01, 0u)}, {EACH_OF_16(LAST_B_0_5B, 0u)}, {EACH_OF_16(LAST_B_0_EF, 0u)}},
    {{EACH_OF_16(LAST_B_1_01, 0u)}, {EACH_OF_16(LAST_B_1_5B, 0u)}, {EACH_OF_16(LAST_B_1_EF, 0u)}}};

#endif
