/* SPDX-License-Identifier: Apache-2.0
 * What all adapters have alike: tables with a name in front, and the session that the shim reads. An adapter is one unit
 * with one symbol, PROVIDER_SESSION; the build defines that name, PROVIDER_NAME, and what provider.toml says with
 * PROVIDER_CONTEXTS and PROVIDER_WIPES. A library's context is to be an allocation of its own, of exactly its length. */
#ifndef CROSSLANE_ADAPTER_H
#define CROSSLANE_ADAPTER_H

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

/* Every adapter defines these functions under these names; what only some have is written beside them. */
#define ADAPTER_FUNCTIONS                                                                                 \
    .contract = SUBJECT_CONTRACT, .driver = PROVIDER_NAME, .version = version, .block_len = block_len,    \
    .open = open_session, .setkey = setkey, .setiv = setiv, .update = update, .final = final, .tag = tag, \
    .iv_out = iv_out, .reinit = reinit, .close = close_session, .contexts = PROVIDER_CONTEXTS, .wipes = PROVIDER_WIPES

#endif
