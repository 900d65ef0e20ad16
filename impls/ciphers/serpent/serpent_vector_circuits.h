/* SPDX-License-Identifier: Apache-2.0
 *
 * Serpent's S-boxes (submission, appendix A.5) and their inverses as circuits over four vectors without a NOT:
 * bit j of the COMPLEMENTS says that x[j] comes out complemented. serpent_bitslice.h says what vec is. Made by
 * find_circuits.py.
 */
#ifndef SERPENT_VECTOR_CIRCUITS_H
#define SERPENT_VECTOR_CIRCUITS_H

#include "subject.h"

/* 16 operations, depth 5 */
#define VECTOR_SBOX0_COMPLEMENTS 3u
static inline void vector_sbox0(vec x[4])
{
    const vec t0 = vec_xor(x[1], x[2]);
    const vec t1 = vec_or(x[0], x[3]);
    const vec t2 = vec_xor(t0, t1);
    const vec t3 = vec_xor(x[1], x[3]);
    const vec t4 = vec_or(x[1], x[2]);
    const vec t5 = vec_and_not(x[3], x[2]);
    const vec t6 = vec_xor(x[0], t3);
    const vec t7 = vec_and(t4, t6);
    const vec t8 = vec_xor(t5, t7);
    const vec t9 = vec_xor(x[0], x[2]);
    const vec t10 = vec_and(t2, t9);
    const vec t11 = vec_xor(x[3], t10);
    const vec t12 = vec_and_not(t7, x[1]);
    const vec t13 = vec_xor(t11, t12);
    const vec t14 = vec_xor(t0, t7);
    const vec t15 = vec_xor(t10, t14);
    x[0] = t13;
    x[1] = t15;
    x[2] = t8;
    x[3] = t2;
}

/* 16 operations, depth 5 */
#define VECTOR_SBOX0_INVERSE_COMPLEMENTS 13u
static inline void vector_sbox0_inverse(vec x[4])
{
    const vec t0 = vec_and_not(x[1], x[0]);
    const vec t1 = vec_xor(x[2], t0);
    const vec t2 = vec_xor(x[0], x[3]);
    const vec t3 = vec_xor(t1, t2);
    const vec t4 = vec_and_not(x[2], x[3]);
    const vec t5 = vec_and_not(x[3], x[2]);
    const vec t6 = vec_or(t2, t4);
    const vec t7 = vec_or(x[1], t5);
    const vec t8 = vec_xor(t6, t7);
    const vec t9 = vec_xor(x[1], t2);
    const vec t10 = vec_or(t1, t9);
    const vec t11 = vec_xor(t8, t10);
    const vec t12 = vec_xor(x[0], t11);
    const vec t13 = vec_and_not(t9, x[3]);
    const vec t14 = vec_xor(t3, t13);
    const vec t15 = vec_xor(t11, t14);
    x[0] = t15;
    x[1] = t8;
    x[2] = t3;
    x[3] = t12;
}

/* 15 operations, depth 8 */
#define VECTOR_SBOX1_COMPLEMENTS 15u
static inline void vector_sbox1(vec x[4])
{
    const vec t0 = vec_and_not(x[1], x[0]);
    const vec t1 = vec_xor(x[3], t0);
    const vec t2 = vec_xor(x[2], t1);
    const vec t3 = vec_and_not(x[0], x[3]);
    const vec t4 = vec_and(x[1], x[3]);
    const vec t5 = vec_xor(x[0], x[1]);
    const vec t6 = vec_and_not(t2, t3);
    const vec t7 = vec_or(t4, t6);
    const vec t8 = vec_xor(t5, t7);
    const vec t9 = vec_xor(x[2], t0);
    const vec t10 = vec_xor(t3, t4);
    const vec t11 = vec_xor(t9, t10);
    const vec t12 = vec_xor(t8, t11);
    const vec t13 = vec_and(t8, t11);
    const vec t14 = vec_xor(t9, t13);
    x[0] = t14;
    x[1] = t8;
    x[2] = t2;
    x[3] = t12;
}

/* 16 operations, depth 5 */
#define VECTOR_SBOX1_INVERSE_COMPLEMENTS 5u
static inline void vector_sbox1_inverse(vec x[4])
{
    const vec t0 = vec_and_not(x[3], x[1]);
    const vec t1 = vec_xor(x[2], t0);
    const vec t2 = vec_xor(x[0], t1);
    const vec t3 = vec_and(x[3], t1);
    const vec t4 = vec_xor(x[1], x[3]);
    const vec t5 = vec_and_not(x[2], x[0]);
    const vec t6 = vec_xor(t2, t3);
    const vec t7 = vec_or(t4, t5);
    const vec t8 = vec_xor(t6, t7);
    const vec t9 = vec_xor(x[1], x[2]);
    const vec t10 = vec_and_not(t2, t9);
    const vec t11 = vec_or(x[0], t7);
    const vec t12 = vec_xor(x[3], t11);
    const vec t13 = vec_xor(t10, t12);
    const vec t14 = vec_xor(x[2], t7);
    const vec t15 = vec_xor(t10, t14);
    x[0] = t15;
    x[1] = t13;
    x[2] = t8;
    x[3] = t2;
}

/* 13 operations, depth 5 */
#define VECTOR_SBOX2_COMPLEMENTS 8u
static inline void vector_sbox2(vec x[4])
{
    const vec t0 = vec_and(x[0], x[2]);
    const vec t1 = vec_xor(x[1], x[2]);
    const vec t2 = vec_xor(x[3], t0);
    const vec t3 = vec_xor(t1, t2);
    const vec t4 = vec_and(x[1], t2);
    const vec t5 = vec_xor(x[0], t1);
    const vec t6 = vec_xor(t4, t5);
    const vec t7 = vec_and_not(x[3], x[0]);
    const vec t8 = vec_xor(x[2], t7);
    const vec t9 = vec_and_not(t5, t8);
    const vec t10 = vec_xor(t2, t9);
    const vec t11 = vec_xor(t4, t8);
    const vec t12 = vec_xor(t10, t11);
    x[0] = t3;
    x[1] = t12;
    x[2] = t10;
    x[3] = t6;
}

/* 15 operations, depth 6 */
#define VECTOR_SBOX2_INVERSE_COMPLEMENTS 12u
static inline void vector_sbox2_inverse(vec x[4])
{
    const vec t0 = vec_xor(x[2], x[3]);
    const vec t1 = vec_and_not(x[1], t0);
    const vec t2 = vec_xor(x[2], t1);
    const vec t3 = vec_xor(x[0], t2);
    const vec t4 = vec_or(x[0], x[2]);
    const vec t5 = vec_and(x[0], x[2]);
    const vec t6 = vec_and(x[1], t4);
    const vec t7 = vec_and_not(x[3], t5);
    const vec t8 = vec_xor(t6, t7);
    const vec t9 = vec_and_not(t8, t3);
    const vec t10 = vec_xor(x[1], t0);
    const vec t11 = vec_xor(t9, t10);
    const vec t12 = vec_or(x[0], x[1]);
    const vec t13 = vec_and_not(t12, t7);
    const vec t14 = vec_xor(t10, t13);
    x[0] = t3;
    x[1] = t11;
    x[2] = t14;
    x[3] = t8;
}

/* 16 operations, depth 5 */
#define VECTOR_SBOX3_COMPLEMENTS 0u
static inline void vector_sbox3(vec x[4])
{
    const vec t0 = vec_and(x[0], x[3]);
    const vec t1 = vec_or(x[0], x[3]);
    const vec t2 = vec_xor(x[2], x[3]);
    const vec t3 = vec_and_not(t1, t2);
    const vec t4 = vec_and_not(x[1], t0);
    const vec t5 = vec_xor(t3, t4);
    const vec t6 = vec_and(x[0], x[1]);
    const vec t7 = vec_xor(t0, t5);
    const vec t8 = vec_or(t2, t6);
    const vec t9 = vec_xor(t7, t8);
    const vec t10 = vec_and(x[1], x[3]);
    const vec t11 = vec_xor(x[0], t10);
    const vec t12 = vec_xor(t8, t11);
    const vec t13 = vec_and_not(t5, t12);
    const vec t14 = vec_xor(t1, t6);
    const vec t15 = vec_xor(t13, t14);
    x[0] = t15;
    x[1] = t5;
    x[2] = t12;
    x[3] = t9;
}

/* 15 operations, depth 6 */
#define VECTOR_SBOX3_INVERSE_COMPLEMENTS 0u
static inline void vector_sbox3_inverse(vec x[4])
{
    const vec t0 = vec_and_not(x[1], x[2]);
    const vec t1 = vec_xor(x[1], x[2]);
    const vec t2 = vec_xor(x[0], t0);
    const vec t3 = vec_or(x[3], t2);
    const vec t4 = vec_xor(t1, t3);
    const vec t5 = vec_or(x[3], t1);
    const vec t6 = vec_and_not(t5, t2);
    const vec t7 = vec_xor(x[2], x[3]);
    const vec t8 = vec_xor(t6, t7);
    const vec t9 = vec_or(x[0], x[1]);
    const vec t10 = vec_xor(x[3], t9);
    const vec t11 = vec_and_not(t4, t10);
    const vec t12 = vec_xor(t2, t11);
    const vec t13 = vec_and_not(t10, t4);
    const vec t14 = vec_xor(t6, t13);
    x[0] = t4;
    x[1] = t14;
    x[2] = t8;
    x[3] = t12;
}

/* 14 operations, depth 5 */
#define VECTOR_SBOX4_COMPLEMENTS 1u
static inline void vector_sbox4(vec x[4])
{
    const vec t0 = vec_and_not(x[0], x[3]);
    const vec t1 = vec_xor(x[0], x[3]);
    const vec t2 = vec_or(x[1], t1);
    const vec t3 = vec_xor(x[2], t0);
    const vec t4 = vec_xor(t2, t3);
    const vec t5 = vec_or(x[1], t4);
    const vec t6 = vec_xor(t1, t5);
    const vec t7 = vec_xor(x[1], t1);
    const vec t8 = vec_xor(x[0], t3);
    const vec t9 = vec_or(t4, t8);
    const vec t10 = vec_xor(t7, t9);
    const vec t11 = vec_or(x[3], t7);
    const vec t12 = vec_and_not(t11, t8);
    const vec t13 = vec_xor(x[1], t12);
    x[0] = t4;
    x[1] = t13;
    x[2] = t10;
    x[3] = t6;
}

/* 14 operations, depth 8 */
#define VECTOR_SBOX4_INVERSE_COMPLEMENTS 5u
static inline void vector_sbox4_inverse(vec x[4])
{
    const vec t0 = vec_and_not(x[0], x[2]);
    const vec t1 = vec_and_not(x[0], x[1]);
    const vec t2 = vec_xor(x[2], t1);
    const vec t3 = vec_and_not(t2, x[3]);
    const vec t4 = vec_xor(x[1], t3);
    const vec t5 = vec_xor(x[0], t4);
    const vec t6 = vec_or(x[3], t0);
    const vec t7 = vec_xor(t2, t6);
    const vec t8 = vec_and_not(x[0], t7);
    const vec t9 = vec_xor(x[3], t8);
    const vec t10 = vec_xor(t5, t9);
    const vec t11 = vec_xor(t5, t7);
    const vec t12 = vec_and(t9, t11);
    const vec t13 = vec_xor(t4, t12);
    x[0] = t10;
    x[1] = t7;
    x[2] = t13;
    x[3] = t5;
}

/* 13 operations, depth 8 */
#define VECTOR_SBOX5_COMPLEMENTS 15u
static inline void vector_sbox5(vec x[4])
{
    const vec t0 = vec_xor(x[0], x[1]);
    const vec t1 = vec_xor(x[1], x[3]);
    const vec t2 = vec_or(t0, t1);
    const vec t3 = vec_xor(x[2], t2);
    const vec t4 = vec_xor(x[0], t3);
    const vec t5 = vec_or(x[3], t4);
    const vec t6 = vec_xor(t0, t5);
    const vec t7 = vec_and_not(t1, t4);
    const vec t8 = vec_xor(x[3], t7);
    const vec t9 = vec_and_not(t8, t6);
    const vec t10 = vec_xor(t3, t9);
    const vec t11 = vec_and(t0, t5);
    const vec t12 = vec_xor(t8, t11);
    x[0] = t4;
    x[1] = t6;
    x[2] = t12;
    x[3] = t10;
}

/* 14 operations, depth 8 */
#define VECTOR_SBOX5_INVERSE_COMPLEMENTS 8u
static inline void vector_sbox5_inverse(vec x[4])
{
    const vec t0 = vec_and(x[0], x[3]);
    const vec t1 = vec_xor(x[2], t0);
    const vec t2 = vec_and(x[1], t1);
    const vec t3 = vec_xor(x[3], t2);
    const vec t4 = vec_xor(x[0], t3);
    const vec t5 = vec_and_not(x[0], x[2]);
    const vec t6 = vec_and_not(x[1], t5);
    const vec t7 = vec_xor(t1, t6);
    const vec t8 = vec_and(x[0], t7);
    const vec t9 = vec_xor(x[1], t8);
    const vec t10 = vec_xor(t4, t9);
    const vec t11 = vec_xor(t4, t7);
    const vec t12 = vec_and_not(t11, t9);
    const vec t13 = vec_xor(t3, t12);
    x[0] = t4;
    x[1] = t10;
    x[2] = t13;
    x[3] = t7;
}

/* 16 operations, depth 6 */
#define VECTOR_SBOX6_COMPLEMENTS 7u
static inline void vector_sbox6(vec x[4])
{
    const vec t0 = vec_xor(x[2], x[3]);
    const vec t1 = vec_xor(x[1], t0);
    const vec t2 = vec_and_not(x[3], x[0]);
    const vec t3 = vec_xor(t1, t2);
    const vec t4 = vec_or(x[1], x[2]);
    const vec t5 = vec_and_not(x[3], x[1]);
    const vec t6 = vec_xor(x[0], t1);
    const vec t7 = vec_and(t4, t6);
    const vec t8 = vec_xor(t5, t7);
    const vec t9 = vec_and_not(x[2], t5);
    const vec t10 = vec_xor(x[0], t9);
    const vec t11 = vec_and_not(t10, t7);
    const vec t12 = vec_xor(t1, t11);
    const vec t13 = vec_and_not(t1, x[0]);
    const vec t14 = vec_and_not(x[1], t13);
    const vec t15 = vec_xor(t10, t14);
    x[0] = t12;
    x[1] = t3;
    x[2] = t15;
    x[3] = t8;
}

/* 15 operations, depth 9 */
#define VECTOR_SBOX6_INVERSE_COMPLEMENTS 15u
static inline void vector_sbox6_inverse(vec x[4])
{
    const vec t0 = vec_and_not(x[2], x[0]);
    const vec t1 = vec_xor(x[3], t0);
    const vec t2 = vec_xor(x[1], t1);
    const vec t3 = vec_xor(x[2], t2);
    const vec t4 = vec_and_not(x[3], x[0]);
    const vec t5 = vec_and_not(x[1], x[2]);
    const vec t6 = vec_xor(x[0], t3);
    const vec t7 = vec_and_not(t6, t5);
    const vec t8 = vec_or(t4, t7);
    const vec t9 = vec_xor(x[1], t4);
    const vec t10 = vec_and(t6, t9);
    const vec t11 = vec_and_not(x[2], x[3]);
    const vec t12 = vec_or(t10, t11);
    const vec t13 = vec_or(t8, t12);
    const vec t14 = vec_xor(t1, t13);
    x[0] = t8;
    x[1] = t2;
    x[2] = t14;
    x[3] = t12;
}

/* 15 operations, depth 7 */
#define VECTOR_SBOX7_COMPLEMENTS 1u
static inline void vector_sbox7(vec x[4])
{
    const vec t0 = vec_xor(x[1], x[2]);
    const vec t1 = vec_and_not(x[2], x[1]);
    const vec t2 = vec_xor(x[3], t1);
    const vec t3 = vec_and_not(x[0], t2);
    const vec t4 = vec_xor(t0, t3);
    const vec t5 = vec_or(x[2], x[3]);
    const vec t6 = vec_xor(x[0], t5);
    const vec t7 = vec_and_not(t6, t4);
    const vec t8 = vec_xor(t2, t7);
    const vec t9 = vec_and_not(t0, t3);
    const vec t10 = vec_xor(t6, t9);
    const vec t11 = vec_xor(t8, t10);
    const vec t12 = vec_xor(x[2], t10);
    const vec t13 = vec_and_not(t6, t2);
    const vec t14 = vec_xor(t12, t13);
    x[0] = t8;
    x[1] = t14;
    x[2] = t11;
    x[3] = t4;
}

/* 16 operations, depth 8 */
#define VECTOR_SBOX7_INVERSE_COMPLEMENTS 3u
static inline void vector_sbox7_inverse(vec x[4])
{
    const vec t0 = vec_and(x[0], x[1]);
    const vec t1 = vec_or(x[0], x[1]);
    const vec t2 = vec_and(x[3], t1);
    const vec t3 = vec_or(x[2], t0);
    const vec t4 = vec_xor(t2, t3);
    const vec t5 = vec_xor(x[3], t4);
    const vec t6 = vec_xor(x[1], t2);
    const vec t7 = vec_and_not(t5, t6);
    const vec t8 = vec_xor(x[0], t7);
    const vec t9 = vec_and_not(t8, x[3]);
    const vec t10 = vec_xor(x[2], t6);
    const vec t11 = vec_xor(t9, t10);
    const vec t12 = vec_and_not(x[3], t4);
    const vec t13 = vec_or(t6, t12);
    const vec t14 = vec_and(x[0], x[2]);
    const vec t15 = vec_xor(t13, t14);
    x[0] = t11;
    x[1] = t8;
    x[2] = t15;
    x[3] = t4;
}

#endif
