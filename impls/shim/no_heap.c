/* SPDX-License-Identifier: Apache-2.0
 * In place of heap.c, in programs without a library: leaves allocate nothing. */
#include "shim.h"

int heap_available(void)
{
    return 0;
}

void heap_use(int on, int claims_wiping)
{
    (void)on;
    (void)claims_wiping;
}

void heap_begin_case(unsigned ctx_edge)
{
    (void)ctx_edge;
}

void heap_know_key(const uint8_t *key, size_t key_len)
{
    (void)key;
    (void)key_len;
}

void heap_end_case(void)
{
}

int heap_departed(struct departure *d)
{
    (void)d;
    return 0;
}

int heap_locate(uintptr_t address, int64_t *offset)
{
    (void)address;
    (void)offset;
    return 0;
}
