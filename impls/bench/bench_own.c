/* SPDX-License-Identifier: Apache-2.0
 * Our implementations as users get them: the mode's fused function where the leaf has one, the portable mode code over
 * the block functions where it has none. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "bench.h"
#include "shim.h"
#include "shim_tables.h"

struct own {
    const struct subject_mode *mode;
    const struct bench_job *job;
    struct subject_message m;
    struct subject_state state;
    uint8_t iv[SUBJECT_MAX_BLOCK_LEN];
};

static int message(void *self, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *tag)
{
    struct own *own = self;
    const struct bench_job *job = own->job;
    size_t piece = job->update_len == 0 ? len : job->update_len;
    memset(&own->state, 0, offsetof(struct subject_state, extra));
    own->state.decrypting = (uint32_t)job->decrypting;
    own->state.lengths = (struct subject_lengths){0, len, (uint32_t)job->tag_len};
    int status = own->mode->setiv(&own->m, job->iv, job->iv_len);
    for (size_t done = 0; status == SUBJECT_OK && done < len;) {
        size_t n = len - done < piece ? len - done : piece;
        status = own->mode->update(&own->m, dst + done, src + done, n, done + n == len);
        done += n;
    }
    if (status == SUBJECT_OK) {
        status = own->mode->final(&own->m);
    }
    if (status == SUBJECT_OK && job->tag_len != 0) {
        status = own->mode->tag == NULL ? SUBJECT_BAD_ORDER : own->mode->tag(&own->m, tag, job->tag_len);
    }
    return status;
}

static void *context(const struct subject_leaf *leaf)
{
    size_t align = leaf->ctx_align < 64 ? 64 : leaf->ctx_align;
    void *p = aligned_alloc(align, (leaf->ctx_len + align - 1) / align * align);
    if (p == NULL) {
        bench_fail("there is no memory for a context; free some");
    }
    return p;
}

static const struct subject_mode *mode_named(const char *name)
{
    for (size_t i = 0; shim_modes[i].name != NULL; i++) {
        if (strcmp(shim_modes[i].name, name) == 0) {
            return shim_modes[i].mode;
        }
    }
    return NULL;
}

static enum bench_answer open_leaf(struct bench_subject *s, const struct subject_leaf *leaf,
                                   const struct bench_job *job)
{
    const struct subject_mode *mode = mode_named(job->mode);
    struct own *own = calloc(1, sizeof *own);
    if (own == NULL || mode == NULL) {
        return BENCH_UNKNOWN;
    }
    own->mode = mode;
    own->job = job;
    own->m = (struct subject_message){leaf, context(leaf), context(leaf), own->iv, &own->state};
    if (mode->setkey(&own->m, job->key, job->key_len, 0) != SUBJECT_OK) {
        return BENCH_UNSUPPORTED;
    }
    s->self = own;
    s->message = message;
    return BENCH_READY;
}

/* A mode that does nothing: what a message of it takes is this file's part of every message. */
static int no_setiv(struct subject_message *m, const uint8_t *iv, size_t iv_len)
{
    (void)m, (void)iv, (void)iv_len;
    return SUBJECT_OK;
}

static int no_update(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    (void)m, (void)dst, (void)src, (void)len, (void)last;
    return SUBJECT_OK;
}

static int no_final(struct subject_message *m)
{
    (void)m;
    return SUBJECT_OK;
}

static int no_tag(struct subject_message *m, uint8_t *tag, size_t tag_len)
{
    (void)m, (void)tag, (void)tag_len;
    return SUBJECT_OK;
}

void bench_open_nothing(struct bench_subject *s, const struct bench_job *job)
{
    static const struct subject_mode nothing = {
        .setiv = no_setiv, .update = no_update, .final = no_final, .tag = no_tag};
    static struct own own;
    own.mode = &nothing;
    own.job = job;
    s->self = &own;
    s->message = message;
    s->answer = BENCH_READY;
}

/* The same implementation without its fused functions, so that the portable mode code composes the mode. */
static const struct subject_leaf *composed(const struct subject_leaf *leaf)
{
    struct subject_leaf *bare = calloc(1, sizeof *bare);
    if (bare == NULL) {
        bench_fail("there is no memory for a table of functions; free some");
    }
    memcpy(bare, leaf, offsetof(struct subject_leaf, ecb));
    return bare;
}

void bench_open_own(struct bench_subject *s, const struct bench_job *job)
{
    const char *suffix = strchr(s->name, ':');
    size_t len = suffix == NULL ? strlen(s->name) : (size_t)(suffix - s->name);
    s->answer = BENCH_UNKNOWN;
    if (suffix != NULL && strcmp(suffix, ":composed") != 0) {
        return;
    }
    for (const struct shim_implementation *i = shim_implementations; i->symbol != NULL; i++) {
        if (strlen(i->symbol) == len && memcmp(i->symbol, s->name, len) == 0) {
            const struct subject_leaf *leaf = i->getter(features_detect() & ~job->hide);
            if (leaf == NULL) {
                s->answer = BENCH_DECLINED;
            } else {
                s->answer = open_leaf(s, suffix == NULL ? leaf : composed(leaf), job);
            }
        }
    }
}
