/* SPDX-License-Identifier: Apache-2.0
 * The refusal that every mode with output begins an update with. */
#ifndef CROSSLANE_MODE_OVERLAP_H
#define CROSSLANE_MODE_OVERLAP_H

#include <stddef.h>
#include <stdint.h>

/* Whether the buffers overlap other than exactly. By addresses: comparing pointers into different objects is undefined. */
static inline int mode_overlaps(const uint8_t *dst, const uint8_t *src, size_t len)
{
    uintptr_t to = (uintptr_t)dst, from = (uintptr_t)src;
    return to != from && (to < from ? from - to : to - from) < len;
}

#endif
