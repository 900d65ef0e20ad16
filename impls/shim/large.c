/* SPDX-License-Identifier: Apache-2.0
 * One message of any length, made and answered here: docs/reference/protocol.md has the generator and the digest. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "shim.h"

#define PIECE_LEN (UINT64_C(1) << 20)
#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* Where each input's words begin in the generator. */
#define DATA_WORDS UINT64_C(0)
#define KEY_WORDS (UINT64_C(1) << 60)
#define IV_WORDS (UINT64_C(2) << 60)
#define AAD_WORDS (UINT64_C(3) << 60)

static uint64_t word(uint64_t seed, uint64_t n)
{
    uint64_t v = seed + n * GOLDEN;
    v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
    return v ^ v >> 31;
}

static void generate(uint8_t *to, uint64_t len, uint64_t seed, uint64_t first)
{
    uint8_t last[8];
    uint64_t n = first;
    for (; len >= 8; len -= 8) {
        store_le64(to, word(seed, n++));
        to += 8;
    }
    store_le64(last, word(seed, n));
    memcpy(to, last, (size_t)len);
}

static uint64_t digest(const uint8_t *p, size_t len)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ len;
    uint8_t last[8] = {0};
    for (; len > 0; len -= len < 8 ? len : 8) {
        uint64_t v;
        if (len >= 8) {
            v = load_le64(p);
        } else {
            memcpy(last, p, len);
            v = load_le64(last);
        }
        h = ((h ^ v) << 29 | (h ^ v) >> 35) * GOLDEN;
        p += 8;
    }
    return h ^ h >> 32;
}

/* Runs the message's operations in turn until one is refused. */
static int run(struct held *h, uint8_t *data, const struct large_request *r, uint8_t *tag)
{
    static uint8_t key[256], iv[256], aad[256];
    uint64_t data_len = r->data_len;
    generate(key, r->key_len, r->seed, KEY_WORDS);
    generate(iv, r->iv_len, r->seed, IV_WORDS);
    generate(aad, r->aad_len, r->seed, AAD_WORDS);
    int status = driver_setkey(h, key, r->key_len, 0);
    memset(&h->state, 0, offsetof(struct subject_state, extra));
    h->state.decrypting = r->decrypting;
    h->state.lengths = (struct subject_lengths){r->aad_len, data_len, r->tag_len};
    status = status != SUBJECT_OK ? status : driver_setiv(h, iv, r->iv_len);
    if (status == SUBJECT_OK && r->aad_len > 0) {
        status = driver_aad(h, aad, r->aad_len);
    }
    if (status == SUBJECT_OK) {
        status = driver_update(h, subject.mode->has_output ? data : NULL, data, (size_t)data_len, 1);
    }
    status = status != SUBJECT_OK ? status : driver_final(h);
    return status != SUBJECT_OK || r->tag_len == 0 ? status : driver_tag(h, tag, r->tag_len);
}

const char *large_run(const struct large_request *r, struct large_result *result)
{
    static struct held held;
    static uint8_t contexts[2][16384], iv[SUBJECT_MAX_BLOCK_LEN];
    uint64_t room = (r->data_len + page_len() - 1) / page_len() * page_len();
    if (r->data_len < 8 || r->data_len > SIZE_MAX / 2 || r->key_len > 256 || r->iv_len > 256 || r->aad_len > 256 ||
        r->tag_len > 64 || r->decrypting > 1 || (r->aad_len > 0 && subject.mode->aad == NULL) ||
        (r->tag_len > 0 && (subject.mode->tag == NULL || r->decrypting))) {
        return "LARGE asks for fewer than 8 bytes, for more than 256 bytes of key, iv or aad or 64 of tag, or for what the mode or this word "
               "size does not have";
    }
    uint8_t *memory =
        mmap(NULL, room + page_len(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + room, page_len(), PROT_NONE) != 0) {
        return "cannot map the message of LARGE: raise the memory limit of the lane";
    }
    uint8_t *data = memory + room - r->data_len;
    generate(data, r->data_len, r->seed, DATA_WORDS);
    driver_begin(&held, contexts[0] + (0 - (uintptr_t)contexts[0]) % 4096,
                 contexts[1] + (0 - (uintptr_t)contexts[1]) % 4096, (int)r->decrypting);
    held.m.leaf = &subject.bare;
    held.m.iv = iv;
    watchdog_allow(3 + r->data_len / PIECE_LEN);
    subject_running = 1;
    result->status = run(&held, data, r, result->tag);
    result->iv_len = result->status == SUBJECT_OK && driver_iv_out(&held) ? subject.block_len : 0;
    driver_end(&held);
    subject_running = 0;
    watchdog_allow(3);
    memcpy(result->iv, iv, sizeof result->iv);
    result->num_digests = subject.mode->has_output ? (r->data_len + PIECE_LEN - 1) / PIECE_LEN : 0;
    for (uint64_t i = 0; i < result->num_digests; i++) {
        uint64_t left = r->data_len - i * PIECE_LEN;
        uint64_t v = digest(data + i * PIECE_LEN, (size_t)(left < PIECE_LEN ? left : PIECE_LEN));
        /* They fit where the data of the pieces before were: a digest is shorter than what it is of. */
        store_le64(data + 8 * i, v);
    }
    result->memory = memory;
    result->memory_len = room + page_len();
    result->digests = data;
    return NULL;
}
