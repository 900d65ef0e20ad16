/* SPDX-License-Identifier: Apache-2.0
 * What the shim says of itself, as JSON. */
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>

#include "shim.h"
#include "shim_tables.h"

struct listing {
    char *text;
    size_t len, used;
};

/* A name that JSON would have to escape is no library's. */
static int list_object(struct dl_phdr_info *info, size_t info_len, void *data)
{
    struct listing *list = data;
    const char *name = info->dlpi_name;
    (void)info_len;
    if (name == NULL || name[0] != '/' || strpbrk(name, "\"\\\n\t") != NULL || list->used >= list->len) {
        return 0;
    }
    list->used += (size_t)snprintf(list->text + list->used, list->len - list->used, "%s\"%s\"",
                                   list->text[list->used - 1] == '[' ? "" : ",", name);
    return 0;
}

void say_hello(void)
{
    static char text[16384];
    char features[512];
    size_t used;
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    features[0] = 0;
    (void)features_print(features, sizeof features);
    used = (size_t)snprintf(
        text, sizeof text,
        "{\"protocol\":%u,\"arch\":\"%s\",\"byte_order\":\"%s\",\"word_bits\":%u,\"page_len\":%zu,"
        "\"transports\":[\"mapped\",\"inline\"],\"max_message_len\":%llu,\"num_slots\":%u,"
        "\"features\":[%s],\"watchers\":[\"layout\",\"canary\",\"context\",\"threads\"%s],\"implementations\":[",
        STREAM_VERSION, features_arch(), first == 1 ? "little" : "big", (unsigned)(8 * sizeof(void *)), page_len(),
        (unsigned long long)MAX_MESSAGE_LEN, NUM_SLOTS, features,
        thunks_available() ? ",\"registers\",\"paths\",\"wipe\"" : "");
    for (const struct shim_implementation *i = shim_implementations; i->symbol != NULL && used < sizeof text; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\"%s\"", i == shim_implementations ? "" : ",",
                                 i->symbol);
    }
    used += used < sizeof text ? (size_t)snprintf(text + used, sizeof text - used, "],\"libraries\":[") : 0;
    for (size_t i = 0; shim_sessions[i] != NULL && used < sizeof text; i++) {
        const char *version = shim_sessions[i]->version();
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\"%s %s\"", i == 0 ? "" : ",",
                                 shim_sessions[i]->driver, version != NULL ? version : "");
    }
    used += used < sizeof text ? (size_t)snprintf(text + used, sizeof text - used, "],\"loaded\":[") : 0;
    if (used < sizeof text) {
        struct listing list = {text, sizeof text, used};
        (void)dl_iterate_phdr(list_object, &list);
        used = list.used;
    }
    used += used < sizeof text ? (size_t)snprintf(text + used, sizeof text - used, "],\"modes\":[") : 0;
    for (size_t i = 0; shim_modes[i].name != NULL && used < sizeof text; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\"%s\"", i == 0 ? "" : ",", shim_modes[i].name);
    }
    used += used < sizeof text ? (size_t)snprintf(text + used, sizeof text - used, "]}") : 0;
    if (used >= sizeof text) {
        shim_fail("the hello is longer than 16384 bytes");
    }
    stream_send(MSG_HELLO, text, used);
}
