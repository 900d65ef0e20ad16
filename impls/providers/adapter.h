/* SPDX-License-Identifier: Apache-2.0
 * What all adapters have alike: tables with a name in front, and the session that the shim reads. An adapter is one unit
 * with one symbol, PROVIDER_SESSION; the build defines that name, PROVIDER_NAME, and what provider.toml says with
 * PROVIDER_CONTEXTS and PROVIDER_WIPES. A library's context is to be an allocation of its own, of exactly its length. */
#ifndef CROSSLANE_ADAPTER_H
#define CROSSLANE_ADAPTER_H

#include <stdlib.h>

#include "subject.h"

#ifdef __cplusplus
extern "C" const struct subject_session PROVIDER_SESSION;
#else
extern const struct subject_session PROVIDER_SESSION;
#endif

/* The entry of a table of structures that begin with their name, NULL where none has it. */
static inline const void *adapter_entry(const void *table, size_t num_entries, size_t entry_len, const char *name)
{
    for (size_t i = 0; i < num_entries; i++) {
        const void *entry = (const uint8_t *)table + i * entry_len;
        if (strcmp(*(const char *const *)entry, name) == 0) {
            return entry;
        }
    }
    return NULL;
}

#define ADAPTER_ENTRY(table, name) \
    adapter_entry((table), sizeof(table) / sizeof((table)[0]), sizeof((table)[0]), (name))

/* What is kept of an authenticated message whose library takes all of it, or all associated data, in one call. */
struct adapter_message {
    struct subject_lengths lengths; /* announced */
    uint8_t *aad;                   /* of exactly aad_len bytes, so that a read beyond them is seen; NULL for none */
    size_t aad_len;
    int began;                          /* the one call, or that for the associated data, was made */
    uint8_t tag[SUBJECT_MAX_BLOCK_LEN]; /* expected or computed */
    int wrong_tag;                      /* found wrong by that call, to be answered when the tag is asked for */
};

static inline void adapter_begin(struct adapter_message *m, const struct subject_lengths *lengths)
{
    free(m->aad);
    m->aad = NULL;
    m->aad_len = 0;
    m->lengths = *lengths;
    m->began = m->wrong_tag = 0;
}

static inline int adapter_keep_aad(struct adapter_message *m, const uint8_t *data, size_t len)
{
    if (len == 0) {
        return SUBJECT_OK;
    }
    uint8_t *grown = (uint8_t *)realloc(m->aad, m->aad_len + len);
    if (grown == NULL) {
        return SUBJECT_UNSUPPORTED;
    }
    memcpy(grown + m->aad_len, data, len);
    m->aad = grown;
    m->aad_len += len;
    return SUBJECT_OK;
}

static inline int adapter_expect(struct adapter_message *m, const uint8_t *tag, size_t len)
{
    if (len > sizeof m->tag) {
        return SUBJECT_BAD_TAG_LEN;
    }
    memcpy(m->tag, tag, len);
    return SUBJECT_OK;
}

/* Whether the lengths of what came are those that were announced, and the one call is still to be made. */
static inline int adapter_is_whole(const struct adapter_message *m, size_t data_len)
{
    return data_len == m->lengths.data_len && m->aad_len == m->lengths.aad_len && !m->began &&
           m->lengths.tag_len <= sizeof m->tag;
}

static inline int adapter_tag(const struct adapter_message *m, int decrypting, uint8_t *bytes, size_t len)
{
    if (!decrypting) {
        memcpy(bytes, m->tag, len);
    }
    return m->wrong_tag ? SUBJECT_BAD_TAG : SUBJECT_OK;
}

/* Every adapter defines these functions under these names; what only some have is written beside them. */
#define ADAPTER_FUNCTIONS                                                                                 \
    .contract = SUBJECT_CONTRACT, .driver = PROVIDER_NAME, .version = version, .block_len = block_len,    \
    .open = open_session, .setkey = setkey, .setiv = setiv, .update = update, .final = final, .tag = tag, \
    .iv_out = iv_out, .reinit = reinit, .close = close_session, .contexts = PROVIDER_CONTEXTS, .wipes = PROVIDER_WIPES

#endif
