/* SPDX-License-Identifier: Apache-2.0
 * One message of any length, made and answered here: docs/reference/protocol.md has the digest. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "shim.h"

#define PIECE_LEN (UINT64_C(1) << 20)
#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

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

static int run(struct held *h, const struct made_request *r, uint8_t *data, uint64_t data_len, uint8_t *tag)
{
    static uint8_t iv[MADE_MAX_LEN];
    int status = made_begin(h, r);
    made_iv(r, iv);
    return status != SUBJECT_OK ? status : made_message(h, r, iv, data, data_len, tag);
}

const char *large_run(uint64_t data_len, const struct made_request *r, struct large_result *result)
{
    static struct held held;
    static uint8_t iv[SUBJECT_MAX_BLOCK_LEN];
    uint64_t room = (data_len + page_len() - 1) / page_len() * page_len();
    if (data_len < 8 || data_len > SIZE_MAX / 2 || !made_fits(r) || (r->tag_len > 0 && r->decrypting)) {
        return "LARGE asks for fewer than 8 bytes, for more than 256 bytes of key, iv or aad or 64 of tag, or for what the mode or this word "
               "size does not have";
    }
    uint8_t *memory =
        mmap(NULL, room + page_len(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + room, page_len(), PROT_NONE) != 0) {
        return "cannot map the message of LARGE: raise the memory limit of the lane";
    }
    uint8_t *data = memory + room - data_len;
    made_data(r, data, data_len);
    held.m.iv = iv;
    watchdog_allow(WATCHDOG_S + data_len / PIECE_LEN);
    subject_running = 1;
    result->status = run(&held, r, data, data_len, result->tag);
    result->iv_len = result->status == SUBJECT_OK && driver_iv_out(&held) ? subject.block_len : 0;
    driver_end(&held);
    subject_running = 0;
    watchdog_allow(WATCHDOG_S);
    memcpy(result->iv, iv, sizeof result->iv);
    result->num_digests = subject.mode->has_output ? (data_len + PIECE_LEN - 1) / PIECE_LEN : 0;
    for (uint64_t i = 0; i < result->num_digests; i++) {
        uint64_t left = data_len - i * PIECE_LEN;
        uint64_t v = digest(data + i * PIECE_LEN, (size_t)(left < PIECE_LEN ? left : PIECE_LEN));
        /* They fit where the data of the pieces before were: a digest is shorter than what it is of. */
        store_le64(data + 8 * i, v);
    }
    result->memory = memory;
    result->memory_len = room + page_len();
    result->digests = data;
    return NULL;
}
