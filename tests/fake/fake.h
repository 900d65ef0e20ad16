/* SPDX-License-Identifier: Apache-2.0
 * A small library for tests: AES, block by block, with the bad habits that libraries have (FAKE_...). */
#ifndef FAKE_H
#define FAKE_H

#include <stddef.h>

int fake_init(void);
void *fake_open(void);
int fake_setkey(void *handle, const unsigned char *key, size_t key_len);
void fake_crypt(void *handle, unsigned char *dst, const unsigned char *src, size_t num_blocks, int decrypting);
void fake_close(void *handle);

#endif
