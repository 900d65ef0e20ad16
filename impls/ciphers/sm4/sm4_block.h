/* SPDX-License-Identifier: Apache-2.0
 *
 * SM4 (GB/T 32907-2016; in English draft-ribose-cfrg-sm4) one block at a time in portable C: any byte order, any word
 * size.
 *
 * A round is X4 = X0 ^ L(S(X1 ^ X2 ^ X3 ^ rk)), S the S-box on each byte and L linear (section 6.2). L(S(.)) is the
 * sum of four look-ups, one a byte, in tables that the compiler computes from the S-box.
 */
#ifndef SM4_BLOCK_H
#define SM4_BLOCK_H

#include "subject.h"

#define ROUNDS 32

/* Section 6.2 a), table 1, half a row a line. */
/* clang-format off */
#define SBOX(X)                                                     \
    X(0xd6) X(0x90) X(0xe9) X(0xfe) X(0xcc) X(0xe1) X(0x3d) X(0xb7) \
    X(0x16) X(0xb6) X(0x14) X(0xc2) X(0x28) X(0xfb) X(0x2c) X(0x05) \
    X(0x2b) X(0x67) X(0x9a) X(0x76) X(0x2a) X(0xbe) X(0x04) X(0xc3) \
    X(0xaa) X(0x44) X(0x13) X(0x26) X(0x49) X(0x86) X(0x06) X(0x99) \
    X(0x9c) X(0x42) X(0x50) X(0xf4) X(0x91) X(0xef) X(0x98) X(0x7a) \
    X(0x33) X(0x54) X(0x0b) X(0x43) X(0xed) X(0xcf) X(0xac) X(0x62) \
    X(0xe4) X(0xb3) X(0x1c) X(0xa9) X(0xc9) X(0x08) X(0xe8) X(0x95) \
    X(0x80) X(0xdf) X(0x94) X(0xfa) X(0x75) X(0x8f) X(0x3f) X(0xa6) \
    X(0x47) X(0x07) X(0xa7) X(0xfc) X(0xf3) X(0x73) X(0x17) X(0xba) \
    X(0x83) X(0x59) X(0x3c) X(0x19) X(0xe6) X(0x85) X(0x4f) X(0xa8) \
    X(0x68) X(0x6b) X(0x81) X(0xb2) X(0x71) X(0x64) X(0xda) X(0x8b) \
    X(0xf8) X(0xeb) X(0x0f) X(0x4b) X(0x70) X(0x56) X(0x9d) X(0x35) \
    X(0x1e) X(0x24) X(0x0e) X(0x5e) X(0x63) X(0x58) X(0xd1) X(0xa2) \
    X(0x25) X(0x22) X(0x7c) X(0x3b) X(0x01) X(0x21) X(0x78) X(0x87) \
    X(0xd4) X(0x00) X(0x46) X(0x57) X(0x9f) X(0xd3) X(0x27) X(0x52) \
    X(0x4c) X(0x36) X(0x02) X(0xe7) X(0xa0) X(0xc4) X(0xc8) X(0x9e) \
    X(0xea) X(0xbf) X(0x8a) X(0xd2) X(0x40) X(0xc7) X(0x38) X(0xb5) \
    X(0xa3) X(0xf7) X(0xf2) X(0xce) X(0xf9) X(0x61) X(0x15) X(0xa1) \
    X(0xe0) X(0xae) X(0x5d) X(0xa4) X(0x9b) X(0x34) X(0x1a) X(0x55) \
    X(0xad) X(0x93) X(0x32) X(0x30) X(0xf5) X(0x8c) X(0xb1) X(0xe3) \
    X(0x1d) X(0xf6) X(0xe2) X(0x2e) X(0x82) X(0x66) X(0xca) X(0x60) \
    X(0xc0) X(0x29) X(0x23) X(0xab) X(0x0d) X(0x53) X(0x4e) X(0x6f) \
    X(0xd5) X(0xdb) X(0x37) X(0x45) X(0xde) X(0xfd) X(0x8e) X(0x2f) \
    X(0x03) X(0xff) X(0x6a) X(0x72) X(0x6d) X(0x6c) X(0x5b) X(0x51) \
    X(0x8d) X(0x1b) X(0xaf) X(0x92) X(0xbb) X(0xdd) X(0xbc) X(0x7f) \
    X(0x11) X(0xd9) X(0x5c) X(0x41) X(0x1f) X(0x10) X(0x5a) X(0xd8) \
    X(0x0a) X(0xc1) X(0x31) X(0x88) X(0xa5) X(0xcd) X(0x7b) X(0xbd) \
    X(0x2d) X(0x74) X(0xd0) X(0x12) X(0xb8) X(0xe5) X(0xb4) X(0xb0) \
    X(0x89) X(0x69) X(0x97) X(0x4a) X(0x0c) X(0x96) X(0x77) X(0x7e) \
    X(0x65) X(0xb9) X(0xf1) X(0x09) X(0xc5) X(0x6e) X(0xc6) X(0x84) \
    X(0x18) X(0xf0) X(0x7d) X(0xec) X(0x3a) X(0xdc) X(0x4d) X(0x20) \
    X(0x79) X(0xee) X(0x5f) X(0x3e) X(0xd7) X(0xcb) X(0x39) X(0x48)
/* clang-format on */

#define ROTL_CONST(v, n) (((v) << (n)) | ((v) >> (32 - (n))))
/* L, section 6.2 b). */
#define LINEAR(v) ((v) ^ ROTL_CONST(v, 2) ^ ROTL_CONST(v, 10) ^ ROTL_CONST(v, 18) ^ ROTL_CONST(v, 24))

#define BYTE_ENTRY(s) s,
#define ENTRY_24(s) LINEAR((uint32_t)s << 24),
#define ENTRY_16(s) LINEAR((uint32_t)s << 16),
#define ENTRY_8(s) LINEAR((uint32_t)s << 8),
#define ENTRY_0(s) LINEAR((uint32_t)s),

static const uint8_t sbox[256] = {SBOX(BYTE_ENTRY)};
static const uint32_t table_24[256] = {SBOX(ENTRY_24)};
static const uint32_t table_16[256] = {SBOX(ENTRY_16)};
static const uint32_t table_8[256] = {SBOX(ENTRY_8)};
static const uint32_t table_0[256] = {SBOX(ENTRY_0)};

/* Section 7.3: byte j of CK[i] is (4i + j) * 7 mod 256, j = 0 the most significant. */
#define CK_BYTE(i, j) ((((4u * (i) + (j)) * 7u) & 0xffu) << (24u - 8u * (j)))
#define CK(i) (CK_BYTE(i, 0u) | CK_BYTE(i, 1u) | CK_BYTE(i, 2u) | CK_BYTE(i, 3u))
#define CK8(i) CK(i), CK(i + 1u), CK(i + 2u), CK(i + 3u), CK(i + 4u), CK(i + 5u), CK(i + 6u), CK(i + 7u)

static const uint32_t fk[4] = {0xa3b1bac6u, 0x56aa3350u, 0x677d9197u, 0xb27022dcu};
static const uint32_t ck[ROUNDS] = {CK8(0u), CK8(8u), CK8(16u), CK8(24u)};

/* T', section 7.3: as T, with L'(B) = B ^ (B <<< 13) ^ (B <<< 23). */
static inline uint32_t transform_key_word(uint32_t v)
{
    uint32_t b = ((uint32_t)sbox[v >> 24] << 24) | ((uint32_t)sbox[(v >> 16) & 0xffu] << 16) |
                 ((uint32_t)sbox[(v >> 8) & 0xffu] << 8) | (uint32_t)sbox[v & 0xffu];
    return b ^ rotl32(b, 13) ^ rotl32(b, 23);
}

struct sm4_keys {
    uint32_t encrypt[ROUNDS];
    uint32_t decrypt[ROUNDS];
};

static inline void expand_key(struct sm4_keys *keys, const uint8_t key[16])
{
    uint32_t k[4];

    for (unsigned i = 0; i < 4; i++) {
        k[i] = load_be32(key + 4 * i) ^ fk[i];
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t rk = k[i % 4] ^ transform_key_word(k[(i + 1) % 4] ^ k[(i + 2) % 4] ^ k[(i + 3) % 4] ^ ck[i]);
        k[i % 4] = rk;
        keys->encrypt[i] = rk;
        keys->decrypt[ROUNDS - 1 - i] = rk;
    }
}

/* T = L(S(.)), section 6.2. */
static inline uint32_t transform_word(uint32_t v)
{
    return table_24[v >> 24] ^ table_16[(v >> 16) & 0xffu] ^ table_8[(v >> 8) & 0xffu] ^ table_0[v & 0xffu];
}

/* Four rounds bring each word back to its place, so nothing has to move. */
static inline void four_rounds(uint32_t x[4], const uint32_t *rk)
{
    x[0] ^= transform_word(x[1] ^ x[2] ^ x[3] ^ rk[0]);
    x[1] ^= transform_word(x[2] ^ x[3] ^ x[0] ^ rk[1]);
    x[2] ^= transform_word(x[3] ^ x[0] ^ x[1] ^ rk[2]);
    x[3] ^= transform_word(x[0] ^ x[1] ^ x[2] ^ rk[3]);
}

static inline void load_words(uint32_t x[4], const uint8_t *src)
{
    x[0] = load_be32(src);
    x[1] = load_be32(src + 4);
    x[2] = load_be32(src + 8);
    x[3] = load_be32(src + 12);
}

/* The reverse transformation R, section 6.1: the words come out last first. */
static inline void store_words(uint8_t *dst, const uint32_t x[4])
{
    store_be32(dst, x[3]);
    store_be32(dst + 4, x[2]);
    store_be32(dst + 8, x[1]);
    store_be32(dst + 12, x[0]);
}

static inline void crypt_block(const uint32_t *rk, uint8_t *dst, const uint8_t *src)
{
    uint32_t x[4];
    unsigned i;

    load_words(x, src);
    for (i = 0; i < ROUNDS; i += 4) {
        four_rounds(x, rk + i);
    }
    store_words(dst, x);
}

#endif
