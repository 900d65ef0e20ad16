/* SPDX-License-Identifier: Apache-2.0
 *
 * The S-boxes of DES (FIPS 46-3) as circuits, with E, the sum with K, and P around them: to ^= f(from, K)
 * for halves of the block. Plane i, from 0, holds bit i + 1 of the half in each block. Made by
 * find_circuits.py.
 */
#ifndef DES3_EDE_CIRCUITS_H
#define DES3_EDE_CIRCUITS_H

/* 49 operations, 14 values at a time. */
static inline __attribute__((always_inline)) void sbox1(vec *to, const vec *from, const key_word *k)
{
    const vec x6 = vec_xor(from[4], vec_key_not(k, KEY_PLACE(6)));
    const vec x3 = vec_xor(from[1], vec_key(k, KEY_PLACE(3)));
    const vec t0 = vec_xor(x6, x3);
    const vec t1 = vec_and(x6, x3);
    const vec x5 = vec_xor(from[3], vec_key(k, KEY_PLACE(5)));
    const vec t2 = vec_xor(x6, x5);
    const vec t3 = vec_or(t2, t0);
    const vec x4 = vec_xor(from[2], vec_key(k, KEY_PLACE(4)));
    const vec t4 = vec_xor(x4, t0);
    const vec t5 = vec_xor(t4, t1);
    const vec t6 = vec_and_not(x4, t2);
    const vec t7 = vec_xor(x5, t5);
    const vec t8 = vec_and_not(t4, t7);
    const vec t9 = vec_xor(x3, t8);
    const vec t10 = vec_and(x4, t9);
    const vec t11 = vec_and(t9, t3);
    const vec t12 = vec_xor(t2, t10);
    const vec t13 = vec_or(x5, t12);
    const vec t14 = vec_xor(t11, t13);
    const vec t15 = vec_and_not(t2, t7);
    const vec x1 = vec_xor(from[31], vec_key(k, KEY_PLACE(1)));
    const vec t16 = vec_or(t14, x1);
    const vec t17 = vec_xor(x1, t7);
    const vec t18 = vec_and_not(x1, t10);
    const vec t19 = vec_and_not(x1, t11);
    const vec t20 = vec_xor(t17, t15);
    const vec t21 = vec_and(x6, t18);
    const vec t22 = vec_or(t21, t3);
    const vec t23 = vec_and(t17, t22);
    const vec t24 = vec_and_not(t5, t21);
    const vec t25 = vec_xor(t20, t19);
    const vec x2 = vec_xor(from[0], vec_key(k, KEY_PLACE(2)));
    const vec t26 = vec_and_not(t25, x2);
    const vec t27 = vec_xor(t26, t22);
    const vec t28 = vec_xor(t24, t27);
    const vec t29 = vec_xor(t20, t28);
    to[30] = vec_xor(to[30], t29);
    const vec t30 = vec_and_not(t19, x3);
    const vec t31 = vec_and(t19, t12);
    const vec t32 = vec_xor(t6, t31);
    const vec t33 = vec_xor(t5, t32);
    const vec t34 = vec_xor(t18, t32);
    const vec t35 = vec_and_not(t33, t27);
    const vec t36 = vec_and(x2, t33);
    const vec t37 = vec_xor(t8, t36);
    const vec t38 = vec_xor(t6, t37);
    const vec t39 = vec_xor(t16, t38);
    to[16] = vec_xor(to[16], t39);
    const vec t40 = vec_or(x3, t31);
    const vec t41 = vec_and(t35, t40);
    const vec t42 = vec_or(x2, t41);
    const vec t43 = vec_xor(t42, t30);
    const vec t44 = vec_xor(t12, t43);
    to[8] = vec_xor(to[8], t44);
    const vec t45 = vec_and_not(t23, t43);
    const vec t46 = vec_xor(t34, t45);
    const vec t47 = vec_xor(x2, t46);
    const vec t48 = vec_xor(x3, t47);
    to[22] = vec_xor(to[22], t48);
}

/* 46 operations, 16 values at a time. */
static inline __attribute__((always_inline)) void sbox2(vec *to, const vec *from, const key_word *k)
{
    const vec x5 = vec_xor(from[7], vec_key(k, KEY_PLACE(11)));
    const vec x2 = vec_xor(from[4], vec_key(k, KEY_PLACE(8)));
    const vec t0 = vec_xor(x5, x2);
    const vec x1 = vec_xor(from[3], vec_key_not(k, KEY_PLACE(7)));
    const vec t1 = vec_and_not(t0, x1);
    const vec t2 = vec_xor(x5, t1);
    const vec x3 = vec_xor(from[5], vec_key(k, KEY_PLACE(9)));
    const vec t3 = vec_and(x5, x3);
    const vec x6 = vec_xor(from[8], vec_key(k, KEY_PLACE(12)));
    const vec t4 = vec_and_not(x6, t3);
    const vec t5 = vec_xor(x2, t4);
    const vec t6 = vec_xor(x3, t5);
    const vec t7 = vec_and_not(x6, t0);
    const vec t8 = vec_or(x1, t7);
    const vec t9 = vec_and_not(t6, x5);
    const vec t10 = vec_or(t8, t9);
    const vec x4 = vec_xor(from[6], vec_key(k, KEY_PLACE(10)));
    const vec t11 = vec_and_not(x4, t7);
    const vec t12 = vec_xor(x4, t6);
    const vec t13 = vec_and_not(x4, t2);
    const vec t14 = vec_xor(t13, t12);
    const vec t15 = vec_xor(t10, t13);
    const vec t16 = vec_xor(t9, t14);
    const vec t17 = vec_and(t0, t16);
    const vec t18 = vec_xor(t6, t17);
    const vec t19 = vec_or(x6, t18);
    const vec t20 = vec_xor(t5, t19);
    const vec t21 = vec_xor(t20, t15);
    to[17] = vec_xor(to[17], t21);
    const vec t22 = vec_and_not(x2, t21);
    const vec t23 = vec_and_not(x1, t22);
    const vec t24 = vec_xor(x1, t11);
    const vec t25 = vec_and(t0, t21);
    const vec t26 = vec_xor(t2, t25);
    const vec t27 = vec_or(t10, t25);
    const vec t28 = vec_xor(t3, t27);
    const vec t29 = vec_and_not(t27, t12);
    const vec t30 = vec_and_not(t5, t29);
    const vec t31 = vec_xor(t30, t24);
    const vec t32 = vec_xor(x5, t31);
    to[27] = vec_xor(to[27], t32);
    const vec t33 = vec_and_not(x6, t28);
    const vec t34 = vec_and_not(t0, t33);
    const vec t35 = vec_xor(t23, t34);
    const vec t36 = vec_xor(t14, t35);
    to[12] = vec_xor(to[12], t36);
    const vec t37 = vec_xor(t35, t26);
    const vec t38 = vec_xor(t21, t37);
    const vec t39 = vec_and(t36, t37);
    const vec t40 = vec_and(t11, t38);
    const vec t41 = vec_xor(t31, t39);
    const vec t42 = vec_xor(t0, t40);
    const vec t43 = vec_and(t4, t41);
    const vec t44 = vec_xor(t28, t43);
    const vec t45 = vec_xor(t44, t42);
    to[1] = vec_xor(to[1], t45);
}

/* 46 operations, 13 values at a time. */
static inline __attribute__((always_inline)) void sbox3(vec *to, const vec *from, const key_word *k)
{
    const vec x5 = vec_xor(from[11], vec_key_not(k, KEY_PLACE(17)));
    const vec x3 = vec_xor(from[9], vec_key(k, KEY_PLACE(15)));
    const vec t0 = vec_xor(x5, x3);
    const vec x4 = vec_xor(from[10], vec_key(k, KEY_PLACE(16)));
    const vec t1 = vec_or(x4, t0);
    const vec t2 = vec_and_not(t1, x3);
    const vec x2 = vec_xor(from[8], vec_key(k, KEY_PLACE(14)));
    const vec t3 = vec_xor(x2, t1);
    const vec t4 = vec_and_not(t3, x4);
    const vec t5 = vec_and_not(x3, x2);
    const vec t6 = vec_xor(t0, t2);
    const vec t7 = vec_and(t5, t6);
    const vec t8 = vec_xor(x4, t5);
    const vec t9 = vec_xor(t0, t8);
    const vec t10 = vec_and_not(t9, x3);
    const vec x6 = vec_xor(from[12], vec_key(k, KEY_PLACE(18)));
    const vec t11 = vec_or(x6, t7);
    const vec t12 = vec_xor(x6, t10);
    const vec t13 = vec_xor(t12, t3);
    const vec t14 = vec_xor(x3, t13);
    const vec t15 = vec_and_not(x2, t13);
    const vec t16 = vec_and_not(t8, t15);
    const vec t17 = vec_xor(t16, t4);
    const vec t18 = vec_or(x4, t12);
    const vec t19 = vec_xor(t13, t6);
    const vec t20 = vec_and_not(x6, t19);
    const vec t21 = vec_xor(t16, t19);
    const vec t22 = vec_xor(x4, t6);
    const vec t23 = vec_and_not(x4, t20);
    const vec t24 = vec_or(t21, t22);
    const vec x1 = vec_xor(from[7], vec_key(k, KEY_PLACE(13)));
    const vec t25 = vec_and_not(t24, x1);
    const vec t26 = vec_xor(t11, t25);
    const vec t27 = vec_xor(t20, t26);
    const vec t28 = vec_and(x1, t18);
    const vec t29 = vec_xor(t10, t27);
    const vec t30 = vec_and_not(t2, t29);
    const vec t31 = vec_or(x1, t30);
    const vec t32 = vec_xor(t14, t31);
    const vec t33 = vec_xor(t23, t32);
    to[15] = vec_xor(to[15], t33);
    const vec t34 = vec_or(t27, t31);
    const vec t35 = vec_xor(t26, t9);
    to[23] = vec_xor(to[23], t35);
    const vec t36 = vec_xor(t26, t34);
    const vec t37 = vec_and_not(t33, t9);
    const vec t38 = vec_xor(t27, t37);
    const vec t39 = vec_and_not(t38, t11);
    const vec t40 = vec_xor(t21, t39);
    const vec t41 = vec_or(t40, t36);
    const vec t42 = vec_xor(t17, t41);
    to[29] = vec_xor(to[29], t42);
    const vec t43 = vec_or(t17, t38);
    const vec t44 = vec_and(t28, t43);
    const vec t45 = vec_xor(t13, t44);
    to[5] = vec_xor(to[5], t45);
}

/* 27 operations, 8 values at a time. */
static inline __attribute__((always_inline)) void sbox4(vec *to, const vec *from, const key_word *k)
{
    const vec x5 = vec_xor(from[15], vec_key(k, KEY_PLACE(23)));
    const vec x3 = vec_xor(from[13], vec_key_not(k, KEY_PLACE(21)));
    const vec t0 = vec_xor(x5, x3);
    const vec x2 = vec_xor(from[12], vec_key(k, KEY_PLACE(20)));
    const vec t1 = vec_or(x2, t0);
    const vec x4 = vec_xor(from[14], vec_key(k, KEY_PLACE(22)));
    const vec t2 = vec_xor(x4, t1);
    const vec t3 = vec_xor(x5, t2);
    const vec t4 = vec_and_not(t1, t3);
    const vec t5 = vec_or(t0, t3);
    const vec t6 = vec_xor(x2, t5);
    const vec t7 = vec_xor(x4, t6);
    const vec x1 = vec_xor(from[11], vec_key(k, KEY_PLACE(19)));
    const vec t8 = vec_xor(x1, t7);
    const vec t9 = vec_xor(t8, t4);
    const vec t10 = vec_and(t5, t9);
    const vec t11 = vec_xor(x2, t10);
    const vec t12 = vec_and_not(t2, t11);
    const vec t13 = vec_xor(x1, t12);
    const vec t14 = vec_and(t7, t13);
    const vec x6 = vec_xor(from[16], vec_key(k, KEY_PLACE(24)));
    const vec t15 = vec_xor(x6, t8);
    const vec t16 = vec_xor(t13, t15);
    const vec t17 = vec_xor(t0, t16);
    const vec t18 = vec_or(t11, t16);
    const vec t19 = vec_xor(t11, t17);
    const vec t20 = vec_and_not(t19, x6);
    const vec t21 = vec_xor(t14, t20);
    const vec t22 = vec_xor(t9, t21);
    to[25] = vec_xor(to[25], t22);
    const vec t23 = vec_xor(t19, t22);
    to[19] = vec_xor(to[19], t23);
    const vec t24 = vec_xor(t18, t23);
    const vec t25 = vec_xor(t8, t24);
    to[0] = vec_xor(to[0], t25);
    const vec t26 = vec_xor(t17, t25);
    to[9] = vec_xor(to[9], t26);
}

/* 51 operations, 16 values at a time. */
static inline __attribute__((always_inline)) void sbox5(vec *to, const vec *from, const key_word *k)
{
    const vec x5 = vec_xor(from[19], vec_key_not(k, KEY_PLACE(29)));
    const vec x3 = vec_xor(from[17], vec_key(k, KEY_PLACE(27)));
    const vec t0 = vec_xor(x5, x3);
    const vec t1 = vec_or(x5, x3);
    const vec x2 = vec_xor(from[16], vec_key_not(k, KEY_PLACE(26)));
    const vec t2 = vec_xor(x5, x2);
    const vec t3 = vec_and(x2, t1);
    const vec x6 = vec_xor(from[20], vec_key_not(k, KEY_PLACE(30)));
    const vec t4 = vec_and(x6, t3);
    const vec t5 = vec_and_not(t0, t4);
    const vec t6 = vec_xor(x6, t5);
    const vec t7 = vec_or(x3, t5);
    const vec t8 = vec_and_not(x3, t6);
    const vec t9 = vec_or(x2, t8);
    const vec x4 = vec_xor(from[18], vec_key(k, KEY_PLACE(28)));
    const vec t10 = vec_or(x4, t8);
    const vec t11 = vec_or(x6, t9);
    const vec t12 = vec_and_not(t11, x5);
    const vec t13 = vec_xor(t1, t11);
    const vec t14 = vec_and_not(x4, t13);
    const vec t15 = vec_xor(t7, t14);
    const vec t16 = vec_and_not(t6, t15);
    const vec t17 = vec_xor(x4, t2);
    const vec t18 = vec_and_not(t15, t2);
    const vec t19 = vec_or(t18, t10);
    const vec t20 = vec_and_not(t19, x2);
    const vec t21 = vec_xor(x6, t20);
    const vec t22 = vec_xor(t21, t12);
    const vec t23 = vec_xor(t0, t10);
    const vec t24 = vec_xor(t21, t23);
    const vec t25 = vec_or(x4, t24);
    const vec t26 = vec_and_not(t11, t25);
    const vec t27 = vec_and_not(t25, t3);
    const vec t28 = vec_xor(t19, t26);
    const vec t29 = vec_xor(t1, t28);
    const vec t30 = vec_and_not(t28, t9);
    const vec t31 = vec_or(t4, t30);
    const vec t32 = vec_xor(t17, t31);
    const vec x1 = vec_xor(from[15], vec_key(k, KEY_PLACE(25)));
    const vec t33 = vec_or(x1, t16);
    const vec t34 = vec_xor(t32, t33);
    to[2] = vec_xor(to[2], t34);
    const vec t35 = vec_xor(t25, t34);
    const vec t36 = vec_and_not(x1, t34);
    const vec t37 = vec_xor(t19, t36);
    const vec t38 = vec_and(t22, t37);
    const vec t39 = vec_xor(t0, t38);
    const vec t40 = vec_or(t13, t39);
    const vec t41 = vec_xor(t32, t39);
    const vec t42 = vec_and_not(t40, t27);
    const vec t43 = vec_and_not(x1, t15);
    const vec t44 = vec_xor(t41, t43);
    to[7] = vec_xor(to[7], t44);
    const vec t45 = vec_and_not(x1, t29);
    const vec t46 = vec_xor(t24, t45);
    to[13] = vec_xor(to[13], t46);
    const vec t47 = vec_and_not(t45, t35);
    const vec t48 = vec_and_not(x1, t47);
    const vec t49 = vec_xor(t48, t42);
    const vec t50 = vec_xor(t30, t49);
    to[24] = vec_xor(to[24], t50);
}

/* 48 operations, 15 values at a time. */
static inline __attribute__((always_inline)) void sbox6(vec *to, const vec *from, const key_word *k)
{
    const vec x6 = vec_xor(from[24], vec_key(k, KEY_PLACE(36)));
    const vec x3 = vec_xor(from[21], vec_key(k, KEY_PLACE(33)));
    const vec t0 = vec_xor(x6, x3);
    const vec x5 = vec_xor(from[23], vec_key(k, KEY_PLACE(35)));
    const vec t1 = vec_and(x5, x3);
    const vec x2 = vec_xor(from[20], vec_key_not(k, KEY_PLACE(32)));
    const vec t2 = vec_xor(x2, t1);
    const vec t3 = vec_and_not(t2, x3);
    const vec t4 = vec_xor(t0, t3);
    const vec x4 = vec_xor(from[22], vec_key(k, KEY_PLACE(34)));
    const vec t5 = vec_and(x5, x4);
    const vec t6 = vec_xor(t5, t4);
    const vec t7 = vec_and_not(x6, t6);
    const vec t8 = vec_xor(t2, t6);
    const vec t9 = vec_or(t0, t8);
    const vec t10 = vec_and(x4, t7);
    const vec t11 = vec_and_not(x5, t10);
    const vec t12 = vec_and(t11, t0);
    const vec t13 = vec_xor(t0, t11);
    const vec t14 = vec_or(t11, t9);
    const vec t15 = vec_and(x3, t14);
    const vec t16 = vec_xor(x2, t13);
    const vec t17 = vec_or(t5, t2);
    const vec t18 = vec_and_not(t9, t5);
    const vec t19 = vec_xor(t18, t16);
    const vec t20 = vec_and_not(t19, t12);
    const vec t21 = vec_xor(t4, t9);
    const vec t22 = vec_xor(t4, t15);
    const vec t23 = vec_xor(t19, t22);
    const vec t24 = vec_or(t8, t23);
    const vec t25 = vec_xor(t17, t23);
    const vec t26 = vec_xor(t10, t24);
    const vec t27 = vec_or(x2, t10);
    const vec t28 = vec_and_not(t27, t21);
    const vec t29 = vec_or(x4, t21);
    const vec x1 = vec_xor(from[19], vec_key(k, KEY_PLACE(31)));
    const vec t30 = vec_and_not(t25, x1);
    const vec t31 = vec_xor(t20, t30);
    const vec t32 = vec_xor(t15, t31);
    const vec t33 = vec_and_not(x1, t28);
    const vec t34 = vec_xor(x4, x1);
    const vec t35 = vec_xor(t1, t34);
    const vec t36 = vec_xor(t34, t32);
    to[10] = vec_xor(to[10], t36);
    const vec t37 = vec_and_not(t26, t35);
    const vec t38 = vec_or(x2, t36);
    const vec t39 = vec_xor(t22, t37);
    to[3] = vec_xor(to[3], t39);
    const vec t40 = vec_xor(x4, t38);
    const vec t41 = vec_xor(t7, t37);
    const vec t42 = vec_and_not(x1, t41);
    const vec t43 = vec_and(t2, t40);
    const vec t44 = vec_xor(t19, t42);
    const vec t45 = vec_xor(t44, t29);
    to[18] = vec_xor(to[18], t45);
    const vec t46 = vec_xor(t33, t43);
    const vec t47 = vec_xor(t13, t46);
    to[28] = vec_xor(to[28], t47);
}

/* 46 operations, 15 values at a time. */
static inline __attribute__((always_inline)) void sbox7(vec *to, const vec *from, const key_word *k)
{
    const vec x3 = vec_xor(from[25], vec_key(k, KEY_PLACE(39)));
    const vec x1 = vec_xor(from[23], vec_key(k, KEY_PLACE(37)));
    const vec t0 = vec_xor(x3, x1);
    const vec x6 = vec_xor(from[28], vec_key_not(k, KEY_PLACE(42)));
    const vec t1 = vec_xor(x6, x3);
    const vec t2 = vec_and(x6, t0);
    const vec t3 = vec_xor(x6, x1);
    const vec x2 = vec_xor(from[24], vec_key(k, KEY_PLACE(38)));
    const vec t4 = vec_and_not(x2, t2);
    const vec t5 = vec_xor(x1, t4);
    const vec t6 = vec_xor(x2, x1);
    const vec t7 = vec_or(x1, t5);
    const vec t8 = vec_and_not(t7, t1);
    const vec t9 = vec_and_not(t3, t8);
    const vec t10 = vec_xor(t6, t9);
    const vec t11 = vec_xor(t0, t10);
    const vec t12 = vec_xor(t2, t10);
    const vec x4 = vec_xor(from[26], vec_key(k, KEY_PLACE(40)));
    const vec t13 = vec_and_not(x4, t6);
    const vec t14 = vec_or(t8, t13);
    const vec t15 = vec_and_not(t7, x4);
    const vec t16 = vec_or(x6, t12);
    const vec t17 = vec_xor(t1, t16);
    const vec t18 = vec_or(t3, t17);
    const vec t19 = vec_and(x4, t18);
    const vec t20 = vec_xor(t19, t13);
    const vec x5 = vec_xor(from[27], vec_key_not(k, KEY_PLACE(41)));
    const vec t21 = vec_xor(x5, t19);
    const vec t22 = vec_or(t21, t20);
    const vec t23 = vec_and_not(t21, t3);
    const vec t24 = vec_or(x5, t23);
    const vec t25 = vec_xor(t24, t14);
    const vec t26 = vec_and_not(x4, t17);
    const vec t27 = vec_or(t21, t26);
    const vec t28 = vec_and_not(t21, t5);
    const vec t29 = vec_and_not(x2, t28);
    const vec t30 = vec_or(t17, t29);
    const vec t31 = vec_xor(t27, t30);
    const vec t32 = vec_xor(t9, t31);
    to[6] = vec_xor(to[6], t32);
    const vec t33 = vec_and_not(x2, t25);
    const vec t34 = vec_xor(t5, t25);
    to[11] = vec_xor(to[11], t34);
    const vec t35 = vec_xor(t18, t33);
    const vec t36 = vec_and(x6, t35);
    const vec t37 = vec_xor(x4, t36);
    const vec t38 = vec_and(t22, t37);
    const vec t39 = vec_xor(t38, t12);
    to[21] = vec_xor(to[21], t39);
    const vec t40 = vec_xor(t34, t38);
    const vec t41 = vec_xor(t11, t33);
    const vec t42 = vec_and_not(t40, t41);
    const vec t43 = vec_or(x5, t42);
    const vec t44 = vec_xor(t11, t43);
    const vec t45 = vec_xor(t44, t15);
    to[31] = vec_xor(to[31], t45);
}

/* 44 operations, 12 values at a time. */
static inline __attribute__((always_inline)) void sbox8(vec *to, const vec *from, const key_word *k)
{
    const vec x5 = vec_xor(from[31], vec_key(k, KEY_PLACE(47)));
    const vec x2 = vec_xor(from[28], vec_key_not(k, KEY_PLACE(44)));
    const vec t0 = vec_xor(x5, x2);
    const vec x3 = vec_xor(from[29], vec_key(k, KEY_PLACE(45)));
    const vec t1 = vec_xor(x5, x3);
    const vec t2 = vec_and(x2, t1);
    const vec x1 = vec_xor(from[27], vec_key_not(k, KEY_PLACE(43)));
    const vec t3 = vec_xor(x1, t1);
    const vec t4 = vec_and_not(x5, t3);
    const vec t5 = vec_or(t3, t2);
    const vec t6 = vec_xor(t0, t4);
    const vec x4 = vec_xor(from[30], vec_key(k, KEY_PLACE(46)));
    const vec t7 = vec_and_not(x4, t0);
    const vec t8 = vec_xor(t7, t4);
    const vec t9 = vec_and_not(x1, t8);
    const vec t10 = vec_and_not(t9, x5);
    const vec t11 = vec_xor(x4, t10);
    const vec t12 = vec_or(x4, t11);
    const vec t13 = vec_xor(t2, t12);
    const vec t14 = vec_and_not(t6, t2);
    const vec t15 = vec_xor(t13, t14);
    const vec t16 = vec_xor(t5, t11);
    const vec t17 = vec_xor(t16, t6);
    const vec t18 = vec_xor(t16, t13);
    const vec t19 = vec_xor(t18, t8);
    const vec t20 = vec_xor(t9, t19);
    const vec t21 = vec_or(t7, t20);
    const vec t22 = vec_xor(t19, t15);
    const vec t23 = vec_xor(x3, t15);
    const vec t24 = vec_and_not(x3, t21);
    const vec t25 = vec_xor(t13, t21);
    const vec t26 = vec_xor(t17, t21);
    const vec t27 = vec_and_not(t26, t4);
    const vec t28 = vec_xor(t1, t27);
    const vec t29 = vec_and_not(t23, t11);
    const vec t30 = vec_xor(t17, t24);
    const vec t31 = vec_or(t29, t30);
    const vec t32 = vec_xor(t5, t31);
    const vec x6 = vec_xor(from[0], vec_key(k, KEY_PLACE(48)));
    const vec t33 = vec_or(x6, t32);
    const vec t34 = vec_xor(t33, t22);
    to[4] = vec_xor(to[4], t34);
    const vec t35 = vec_and_not(t33, t24);
    const vec t36 = vec_xor(t35, t25);
    const vec t37 = vec_and_not(x6, t28);
    const vec t38 = vec_xor(t23, t37);
    to[14] = vec_xor(to[14], t38);
    const vec t39 = vec_and_not(t36, t28);
    const vec t40 = vec_or(x6, t39);
    const vec t41 = vec_xor(t17, t40);
    to[26] = vec_xor(to[26], t41);
    const vec t42 = vec_and(x6, t36);
    const vec t43 = vec_xor(t22, t42);
    to[20] = vec_xor(to[20], t43);
}

#endif
