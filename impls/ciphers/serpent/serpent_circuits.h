/* SPDX-License-Identifier: Apache-2.0
 *
 * Serpent's S-boxes (submission, appendix A.5) and their inverses as circuits over four words: bit i of each
 * word belongs to one S-box, and x[0] holds the least significant bits. Made by find_circuits.py.
 */
#ifndef SERPENT_CIRCUITS_H
#define SERPENT_CIRCUITS_H

#include <stdint.h>

/* 18 operations, depth 6 */
static inline void sbox0(uint32_t x[4])
{
    const uint32_t t0 = x[1] ^ x[2];
    const uint32_t t1 = x[0] | x[3];
    const uint32_t t2 = t0 ^ t1;
    const uint32_t t3 = x[1] ^ x[3];
    const uint32_t t4 = x[1] | x[2];
    const uint32_t t5 = ~x[3];
    const uint32_t t6 = x[2] | t5;
    const uint32_t t7 = x[0] ^ t3;
    const uint32_t t8 = t4 & t7;
    const uint32_t t9 = t6 ^ t8;
    const uint32_t t10 = t5 & t4;
    const uint32_t t11 = t6 ^ t10;
    const uint32_t t12 = t8 | t11;
    const uint32_t t13 = x[0] ^ t12;
    const uint32_t t14 = t0 ^ t12;
    const uint32_t t15 = x[1] | t7;
    const uint32_t t16 = t14 ^ t15;
    const uint32_t t17 = ~t9;
    x[0] = t13;
    x[1] = t16;
    x[2] = t17;
    x[3] = t2;
}

/* 20 operations, depth 6 */
static inline void sbox0_inverse(uint32_t x[4])
{
    const uint32_t t0 = ~x[1];
    const uint32_t t1 = x[0] | t0;
    const uint32_t t2 = x[2] ^ t1;
    const uint32_t t3 = x[0] ^ x[3];
    const uint32_t t4 = t2 ^ t3;
    const uint32_t t5 = ~x[3];
    const uint32_t t6 = x[2] & t5;
    const uint32_t t7 = ~x[2];
    const uint32_t t8 = t7 & x[3];
    const uint32_t t9 = t3 | t6;
    const uint32_t t10 = x[1] | t8;
    const uint32_t t11 = t9 ^ t10;
    const uint32_t t12 = x[1] ^ t3;
    const uint32_t t13 = ~t12;
    const uint32_t t14 = t2 & t13;
    const uint32_t t15 = t11 ^ t14;
    const uint32_t t16 = x[0] ^ t15;
    const uint32_t t17 = x[3] | t13;
    const uint32_t t18 = t4 ^ t17;
    const uint32_t t19 = t15 ^ t18;
    x[0] = t19;
    x[1] = t11;
    x[2] = t4;
    x[3] = t16;
}

/* 17 operations, depth 9 */
static inline void sbox1(uint32_t x[4])
{
    const uint32_t t0 = ~x[1];
    const uint32_t t1 = x[0] | t0;
    const uint32_t t2 = x[3] ^ t1;
    const uint32_t t3 = x[2] ^ t2;
    const uint32_t t4 = ~x[3];
    const uint32_t t5 = x[0] & t4;
    const uint32_t t6 = t0 | t4;
    const uint32_t t7 = x[0] ^ x[1];
    const uint32_t t8 = t3 | t5;
    const uint32_t t9 = t6 & t8;
    const uint32_t t10 = t7 ^ t9;
    const uint32_t t11 = t5 ^ t6;
    const uint32_t t12 = t1 ^ t11;
    const uint32_t t13 = x[2] ^ t12;
    const uint32_t t14 = t10 ^ t13;
    const uint32_t t15 = t10 & t13;
    const uint32_t t16 = t11 ^ t15;
    x[0] = t16;
    x[1] = t10;
    x[2] = t3;
    x[3] = t14;
}

/* 20 operations, depth 7 */
static inline void sbox1_inverse(uint32_t x[4])
{
    const uint32_t t0 = ~x[1];
    const uint32_t t1 = t0 & x[3];
    const uint32_t t2 = x[2] ^ t1;
    const uint32_t t3 = x[0] ^ t2;
    const uint32_t t4 = x[3] & t2;
    const uint32_t t5 = x[1] ^ x[3];
    const uint32_t t6 = ~x[0];
    const uint32_t t7 = t6 & x[2];
    const uint32_t t8 = t3 ^ t4;
    const uint32_t t9 = ~t5;
    const uint32_t t10 = ~t7;
    const uint32_t t11 = t9 & t10;
    const uint32_t t12 = t8 ^ t11;
    const uint32_t t13 = x[1] ^ x[2];
    const uint32_t t14 = t3 | t13;
    const uint32_t t15 = t11 ^ t14;
    const uint32_t t16 = x[1] ^ t15;
    const uint32_t t17 = t6 & t9;
    const uint32_t t18 = x[2] ^ t17;
    const uint32_t t19 = t15 ^ t18;
    x[0] = t16;
    x[1] = t19;
    x[2] = t12;
    x[3] = t3;
}

/* 14 operations, depth 7 */
static inline void sbox2(uint32_t x[4])
{
    const uint32_t t0 = x[0] & x[2];
    const uint32_t t1 = x[3] ^ t0;
    const uint32_t t2 = x[2] ^ t1;
    const uint32_t t3 = x[1] ^ t2;
    const uint32_t t4 = x[1] | t1;
    const uint32_t t5 = x[0] ^ t4;
    const uint32_t t6 = t2 ^ t5;
    const uint32_t t7 = x[0] | x[3];
    const uint32_t t8 = x[1] ^ t7;
    const uint32_t t9 = t6 | t8;
    const uint32_t t10 = t1 ^ t9;
    const uint32_t t11 = t6 & t8;
    const uint32_t t12 = t1 ^ t11;
    const uint32_t t13 = ~t6;
    x[0] = t3;
    x[1] = t10;
    x[2] = t12;
    x[3] = t13;
}

/* 20 operations, depth 6 */
static inline void sbox2_inverse(uint32_t x[4])
{
    const uint32_t t0 = x[2] ^ x[3];
    const uint32_t t1 = ~x[1];
    const uint32_t t2 = t1 | t0;
    const uint32_t t3 = x[2] ^ t2;
    const uint32_t t4 = x[0] ^ t3;
    const uint32_t t5 = x[0] | x[2];
    const uint32_t t6 = x[0] & x[2];
    const uint32_t t7 = x[1] & t5;
    const uint32_t t8 = ~t6;
    const uint32_t t9 = x[3] & t8;
    const uint32_t t10 = t7 ^ t9;
    const uint32_t t11 = t4 & t10;
    const uint32_t t12 = x[1] ^ t0;
    const uint32_t t13 = t11 ^ t12;
    const uint32_t t14 = ~x[0];
    const uint32_t t15 = t14 & t1;
    const uint32_t t16 = t9 | t15;
    const uint32_t t17 = t12 ^ t16;
    const uint32_t t18 = ~t4;
    const uint32_t t19 = ~t10;
    x[0] = t18;
    x[1] = t13;
    x[2] = t17;
    x[3] = t19;
}

/* 18 operations, depth 7 */
static inline void sbox3(uint32_t x[4])
{
    const uint32_t t0 = x[0] & x[3];
    const uint32_t t1 = x[0] | x[3];
    const uint32_t t2 = x[2] ^ x[3];
    const uint32_t t3 = ~t1;
    const uint32_t t4 = t3 | t2;
    const uint32_t t5 = ~x[1];
    const uint32_t t6 = t5 | t0;
    const uint32_t t7 = t4 ^ t6;
    const uint32_t t8 = x[0] & x[1];
    const uint32_t t9 = t2 | t8;
    const uint32_t t10 = t0 ^ t9;
    const uint32_t t11 = t7 ^ t10;
    const uint32_t t12 = t5 & x[3];
    const uint32_t t13 = t10 ^ t12;
    const uint32_t t14 = t1 ^ t13;
    const uint32_t t15 = t8 ^ t13;
    const uint32_t t16 = t7 | t14;
    const uint32_t t17 = t15 ^ t16;
    x[0] = t17;
    x[1] = t7;
    x[2] = t14;
    x[3] = t11;
}

/* 17 operations, depth 8 */
static inline void sbox3_inverse(uint32_t x[4])
{
    const uint32_t t0 = ~x[2];
    const uint32_t t1 = x[1] & t0;
    const uint32_t t2 = x[1] ^ x[2];
    const uint32_t t3 = x[0] ^ t1;
    const uint32_t t4 = x[3] | t3;
    const uint32_t t5 = t2 ^ t4;
    const uint32_t t6 = x[0] | x[1];
    const uint32_t t7 = x[3] ^ t6;
    const uint32_t t8 = ~t7;
    const uint32_t t9 = t5 & t8;
    const uint32_t t10 = t3 ^ t9;
    const uint32_t t11 = t2 & t4;
    const uint32_t t12 = t7 ^ t11;
    const uint32_t t13 = t10 ^ t12;
    const uint32_t t14 = x[1] ^ t11;
    const uint32_t t15 = x[3] & t3;
    const uint32_t t16 = t14 ^ t15;
    x[0] = t5;
    x[1] = t13;
    x[2] = t16;
    x[3] = t10;
}

/* 16 operations, depth 7 */
static inline void sbox4(uint32_t x[4])
{
    const uint32_t t0 = ~x[3];
    const uint32_t t1 = x[0] & t0;
    const uint32_t t2 = x[0] ^ x[3];
    const uint32_t t3 = x[1] | t2;
    const uint32_t t4 = x[2] ^ t1;
    const uint32_t t5 = t3 ^ t4;
    const uint32_t t6 = x[1] | t5;
    const uint32_t t7 = t2 ^ t6;
    const uint32_t t8 = x[1] ^ t2;
    const uint32_t t9 = x[0] ^ t4;
    const uint32_t t10 = t5 | t9;
    const uint32_t t11 = t8 ^ t10;
    const uint32_t t12 = t8 | t10;
    const uint32_t t13 = x[1] ^ t9;
    const uint32_t t14 = t12 ^ t13;
    const uint32_t t15 = ~t5;
    x[0] = t15;
    x[1] = t14;
    x[2] = t11;
    x[3] = t7;
}

/* 19 operations, depth 7 */
static inline void sbox4_inverse(uint32_t x[4])
{
    const uint32_t t0 = ~x[2];
    const uint32_t t1 = x[0] & t0;
    const uint32_t t2 = ~x[1];
    const uint32_t t3 = x[0] & t2;
    const uint32_t t4 = x[2] ^ t3;
    const uint32_t t5 = x[3] | t1;
    const uint32_t t6 = t4 ^ t5;
    const uint32_t t7 = x[3] | t4;
    const uint32_t t8 = x[1] ^ t7;
    const uint32_t t9 = x[0] & t6;
    const uint32_t t10 = t8 ^ t9;
    const uint32_t t11 = x[0] ^ x[3];
    const uint32_t t12 = t8 ^ t11;
    const uint32_t t13 = ~x[0];
    const uint32_t t14 = t13 & x[1];
    const uint32_t t15 = t11 | t14;
    const uint32_t t16 = t0 | t3;
    const uint32_t t17 = t15 ^ t16;
    const uint32_t t18 = ~t10;
    x[0] = t18;
    x[1] = t6;
    x[2] = t17;
    x[3] = t12;
}

/* 16 operations, depth 8 */
static inline void sbox5(uint32_t x[4])
{
    const uint32_t t0 = x[0] ^ x[1];
    const uint32_t t1 = x[1] ^ x[3];
    const uint32_t t2 = t0 | t1;
    const uint32_t t3 = x[2] ^ t2;
    const uint32_t t4 = x[0] ^ t3;
    const uint32_t t5 = x[3] | t4;
    const uint32_t t6 = t0 ^ t5;
    const uint32_t t7 = ~t1;
    const uint32_t t8 = t7 | t4;
    const uint32_t t9 = x[3] ^ t8;
    const uint32_t t10 = t6 | t9;
    const uint32_t t11 = t3 ^ t10;
    const uint32_t t12 = t0 & t5;
    const uint32_t t13 = t9 ^ t12;
    const uint32_t t14 = ~t4;
    const uint32_t t15 = ~t6;
    x[0] = t14;
    x[1] = t15;
    x[2] = t13;
    x[3] = t11;
}

/* 17 operations, depth 8 */
static inline void sbox5_inverse(uint32_t x[4])
{
    const uint32_t t0 = x[0] & x[3];
    const uint32_t t1 = x[2] ^ t0;
    const uint32_t t2 = x[1] & t1;
    const uint32_t t3 = x[3] ^ t2;
    const uint32_t t4 = x[0] ^ t3;
    const uint32_t t5 = ~x[0];
    const uint32_t t6 = t5 | x[2];
    const uint32_t t7 = x[1] & t6;
    const uint32_t t8 = t1 ^ t7;
    const uint32_t t9 = x[0] & t8;
    const uint32_t t10 = x[1] ^ t9;
    const uint32_t t11 = t4 ^ t10;
    const uint32_t t12 = x[1] ^ x[3];
    const uint32_t t13 = t4 | t10;
    const uint32_t t14 = t1 ^ t12;
    const uint32_t t15 = t13 ^ t14;
    const uint32_t t16 = ~t8;
    x[0] = t4;
    x[1] = t11;
    x[2] = t15;
    x[3] = t16;
}

/* 19 operations, depth 6 */
static inline void sbox6(uint32_t x[4])
{
    const uint32_t t0 = x[2] ^ x[3];
    const uint32_t t1 = x[1] ^ t0;
    const uint32_t t2 = ~x[3];
    const uint32_t t3 = x[0] | t2;
    const uint32_t t4 = t1 ^ t3;
    const uint32_t t5 = x[1] | x[2];
    const uint32_t t6 = ~x[1];
    const uint32_t t7 = t6 & x[3];
    const uint32_t t8 = x[0] ^ t1;
    const uint32_t t9 = t5 & t8;
    const uint32_t t10 = t7 ^ t9;
    const uint32_t t11 = ~x[2];
    const uint32_t t12 = t11 | t7;
    const uint32_t t13 = x[0] ^ t12;
    const uint32_t t14 = t9 | t13;
    const uint32_t t15 = t1 ^ t14;
    const uint32_t t16 = x[0] | t0;
    const uint32_t t17 = x[1] & t16;
    const uint32_t t18 = t13 ^ t17;
    x[0] = t15;
    x[1] = t4;
    x[2] = t18;
    x[3] = t10;
}

/* 18 operations, depth 11 */
static inline void sbox6_inverse(uint32_t x[4])
{
    const uint32_t t0 = ~x[2];
    const uint32_t t1 = x[0] | t0;
    const uint32_t t2 = x[3] ^ t1;
    const uint32_t t3 = x[1] ^ t2;
    const uint32_t t4 = x[2] ^ t3;
    const uint32_t t5 = ~x[3];
    const uint32_t t6 = x[0] | t5;
    const uint32_t t7 = x[1] & t0;
    const uint32_t t8 = x[0] ^ t4;
    const uint32_t t9 = t7 | t8;
    const uint32_t t10 = t6 & t9;
    const uint32_t t11 = x[1] ^ t6;
    const uint32_t t12 = t8 | t11;
    const uint32_t t13 = t0 | x[3];
    const uint32_t t14 = t12 & t13;
    const uint32_t t15 = t10 & t14;
    const uint32_t t16 = t2 ^ t15;
    const uint32_t t17 = ~t16;
    x[0] = t10;
    x[1] = t3;
    x[2] = t17;
    x[3] = t14;
}

/* 18 operations, depth 9 */
static inline void sbox7(uint32_t x[4])
{
    const uint32_t t0 = x[1] ^ x[2];
    const uint32_t t1 = ~x[2];
    const uint32_t t2 = x[1] | t1;
    const uint32_t t3 = x[3] ^ t2;
    const uint32_t t4 = x[0] & t3;
    const uint32_t t5 = t0 ^ t4;
    const uint32_t t6 = x[2] | x[3];
    const uint32_t t7 = x[0] ^ t6;
    const uint32_t t8 = ~t5;
    const uint32_t t9 = t8 & t7;
    const uint32_t t10 = t3 ^ t9;
    const uint32_t t11 = ~t0;
    const uint32_t t12 = t11 | t4;
    const uint32_t t13 = t7 ^ t12;
    const uint32_t t14 = t10 ^ t13;
    const uint32_t t15 = t4 ^ t13;
    const uint32_t t16 = t1 | t3;
    const uint32_t t17 = t15 ^ t16;
    x[0] = t10;
    x[1] = t17;
    x[2] = t14;
    x[3] = t5;
}

/* 17 operations, depth 10 */
static inline void sbox7_inverse(uint32_t x[4])
{
    const uint32_t t0 = x[0] & x[1];
    const uint32_t t1 = x[0] | x[1];
    const uint32_t t2 = x[3] & t1;
    const uint32_t t3 = x[2] | t0;
    const uint32_t t4 = t2 ^ t3;
    const uint32_t t5 = x[3] ^ t4;
    const uint32_t t6 = x[1] ^ t2;
    const uint32_t t7 = ~t5;
    const uint32_t t8 = t7 | t6;
    const uint32_t t9 = x[0] ^ t8;
    const uint32_t t10 = x[3] | t9;
    const uint32_t t11 = x[2] ^ t6;
    const uint32_t t12 = t10 ^ t11;
    const uint32_t t13 = x[0] | t4;
    const uint32_t t14 = t2 ^ t13;
    const uint32_t t15 = t8 ^ t14;
    const uint32_t t16 = t12 ^ t15;
    x[0] = t12;
    x[1] = t9;
    x[2] = t16;
    x[3] = t4;
}

#endif
