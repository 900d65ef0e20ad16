/* SPDX-License-Identifier: Apache-2.0
 * Messages whose inputs are made here, of a seed: docs/reference/protocol.md has the generator. */
#include "shim.h"

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

int made_fits(const struct made_request *r)
{
    return r->key_len <= MADE_MAX_LEN && r->iv_len <= MADE_MAX_LEN && r->aad_len <= MADE_MAX_LEN &&
           r->tag_len <= MADE_MAX_TAG_LEN && r->decrypting <= 1 && (r->aad_len == 0 || subject.mode->aad != NULL) &&
           (r->tag_len == 0 || subject.mode->tag != NULL);
}

void made_data(const struct made_request *r, uint8_t *data, uint64_t data_len)
{
    generate(data, data_len, r->seed, DATA_WORDS);
}

void made_iv(const struct made_request *r, uint8_t *iv)
{
    generate(iv, r->iv_len, r->seed, IV_WORDS);
}

int made_begin(struct held *h, const struct made_request *r)
{
    static uint8_t contexts[2][16384], key[MADE_MAX_LEN];
    generate(key, r->key_len, r->seed, KEY_WORDS);
    driver_begin(h, contexts[0] + (0 - (uintptr_t)contexts[0]) % 4096,
                 contexts[1] + (0 - (uintptr_t)contexts[1]) % 4096, (int)r->decrypting);
    h->m.leaf = &subject.bare;
    return driver_setkey(h, key, r->key_len, 0);
}

int made_message(struct held *h, const struct made_request *r, const uint8_t *iv, uint8_t *data, uint64_t data_len,
                 uint8_t *tag)
{
    static uint8_t aad[MADE_MAX_LEN];
    generate(aad, r->aad_len, r->seed, AAD_WORDS);
    memset(&h->state, 0, offsetof(struct subject_state, extra));
    h->state.decrypting = r->decrypting;
    h->state.lengths = (struct subject_lengths){r->aad_len, data_len, r->tag_len};
    int status = driver_setiv(h, iv, r->iv_len);
    if (status == SUBJECT_OK && r->aad_len > 0) {
        status = driver_aad(h, aad, r->aad_len);
    }
    if (status == SUBJECT_OK) {
        status = driver_update(h, subject.mode->has_output ? data : NULL, data, (size_t)data_len, 1);
    }
    status = status != SUBJECT_OK ? status : driver_final(h);
    return status != SUBJECT_OK || r->tag_len == 0 || r->decrypting ? status : driver_tag(h, tag, r->tag_len);
}
