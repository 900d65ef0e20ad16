/* SPDX-License-Identifier: Apache-2.0
 * Loads, stores and block helpers that do not care for alignment or the host's byte order. */
#ifndef CROSSLANE_SUBJECT_BYTES_H
#define CROSSLANE_SUBJECT_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t load_be32(const uint8_t *p)
{
    return ((uint32_t)p[0] << 24) | ((uint32_t)p[1] << 16) | ((uint32_t)p[2] << 8) | (uint32_t)p[3];
}

static inline uint32_t load_le32(const uint8_t *p)
{
    return ((uint32_t)p[3] << 24) | ((uint32_t)p[2] << 16) | ((uint32_t)p[1] << 8) | (uint32_t)p[0];
}

static inline uint64_t load_be64(const uint8_t *p)
{
    return ((uint64_t)load_be32(p) << 32) | load_be32(p + 4);
}

static inline uint64_t load_le64(const uint8_t *p)
{
    return ((uint64_t)load_le32(p + 4) << 32) | load_le32(p);
}

static inline void store_be32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

static inline void store_le32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
    p[3] = (uint8_t)(v >> 24);
}

static inline void store_be64(uint8_t *p, uint64_t v)
{
    store_be32(p, (uint32_t)(v >> 32));
    store_be32(p + 4, (uint32_t)v);
}

static inline void store_le64(uint8_t *p, uint64_t v)
{
    store_le32(p, (uint32_t)v);
    store_le32(p + 4, (uint32_t)(v >> 32));
}

static inline uint32_t rotl32(uint32_t v, unsigned n)
{
    return (v << (n & 31u)) | (v >> ((32u - n) & 31u));
}

static inline uint32_t rotr32(uint32_t v, unsigned n)
{
    return (v >> (n & 31u)) | (v << ((32u - n) & 31u));
}

/* dst = a xor b over len bytes; dst may be a or b. */
static inline void xor_bytes(uint8_t *dst, const uint8_t *a, const uint8_t *b, size_t len)
{
    while (len >= 8) {
        uint64_t x, y;
        memcpy(&x, a, 8);
        memcpy(&y, b, 8);
        x ^= y;
        memcpy(dst, &x, 8);
        dst += 8;
        a += 8;
        b += 8;
        len -= 8;
    }
    while (len > 0) {
        *dst++ = *a++ ^ *b++;
        len--;
    }
}

/* Adds one to a big-endian counter of len bytes, modulo 2^(8 * len). */
static inline void increment_be(uint8_t *counter, size_t len)
{
    while (len > 0) {
        len--;
        counter[len] = (uint8_t)(counter[len] + 1u);
        if (counter[len] != 0) {
            return;
        }
    }
}

#endif
