/* SPDX-License-Identifier: Apache-2.0
 * The adapter of the library for tests. */
#include <fake.h>
#include <stdlib.h>

#include "adapter.h"

struct session {
    void *handle;
    int decrypting;
};

static int usable;

static const char *version(void)
{
    usable = fake_init() == 0;
    return usable ? "1.0" : NULL;
}

static size_t block_len(const char *mode, const char *cipher)
{
    return usable && strcmp(mode, "ecb") == 0 && strcmp(cipher, "aes") == 0 ? 16 : 0;
}

static void *open_session(const char *mode, const char *cipher, int decrypting)
{
    struct session *s = calloc(1, sizeof *s);
    (void)mode;
    (void)cipher;
    if (s != NULL) {
        s->handle = fake_open();
        s->decrypting = decrypting;
    }
    return s;
}

static void close_session(void *session)
{
    struct session *s = session;
    fake_close(s->handle);
    free(s);
}

static int setkey(void *session, const uint8_t *key, size_t key_len, uint32_t policy)
{
    (void)policy;
    return fake_setkey(((struct session *)session)->handle, key, key_len) == 0 ? SUBJECT_OK : SUBJECT_BAD_KEY_LEN;
}

static int setiv(void *session, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths)
{
    (void)session;
    (void)iv;
    (void)lengths;
    return iv_len == 0 ? SUBJECT_OK : SUBJECT_BAD_IV_LEN;
}

static int update(void *session, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    struct session *s = session;
    (void)last;
    fake_crypt(s->handle, dst, src, len / 16, s->decrypting);
    return SUBJECT_OK;
}

static int final(void *session)
{
    (void)session;
    return SUBJECT_OK;
}

static int tag(void *session, uint8_t *out, size_t tag_len)
{
    (void)session;
    (void)out;
    (void)tag_len;
    return SUBJECT_BAD_TAG_LEN;
}

static size_t iv_out(void *session, uint8_t *iv)
{
    (void)session;
    (void)iv;
    return 0;
}

static int reinit(void *session)
{
    (void)session;
    return SUBJECT_OK;
}

const struct subject_session PROVIDER_SESSION = {ADAPTER_FUNCTIONS};
