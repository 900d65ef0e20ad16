/* SPDX-License-Identifier: Apache-2.0
 * The library: the generic AES of this project behind an interface of its own. */
#include "fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "subject.h"

const struct subject_leaf *aes_generic(uint64_t features);

struct handle {
    _Alignas(64) unsigned char ctx[8192];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ready, num_calls;
#ifdef FAKE_LEAKS
void *lost;
#endif

#ifdef FAKE_ABORTS
__attribute__((constructor)) static void at_load(void)
{
    fprintf(stderr, "fake: no entropy\n");
    abort();
}
#endif

static void chat(void)
{
#ifdef FAKE_PRINTS
    const char words[] = "XLNE fake: welcome\n";
    (void)!write(STDOUT_FILENO, words, sizeof words - 1);
    printf("%s", words);
    fflush(stdout);
#endif
#ifdef FAKE_PRINTS_LATE
    printf("fake: a call\n");
#endif
}

#ifdef FAKE_PRINTS
__attribute__((constructor)) static void greet(void)
{
    chat();
}
#endif

int fake_init(void)
{
#ifdef FAKE_FAILS
    return -1;
#else
    ready = 1;
    return 0;
#endif
}

void *fake_open(void)
{
    struct handle *handle = ready ? aligned_alloc(64, sizeof *handle) : NULL;
#ifdef FAKE_LEAKS
    lost = malloc(FAKE_LEAKS);
    memset(lost, 1, FAKE_LEAKS);
#endif
    return handle;
}

int fake_setkey(void *handle, const unsigned char *key, size_t key_len)
{
    return aes_generic(0)->setkey(((struct handle *)handle)->ctx, key, key_len, 0);
}

#ifndef FAKE_LACKS
void fake_crypt(void *handle, unsigned char *dst, const unsigned char *src, size_t num_blocks, int decrypting)
{
    const struct subject_leaf *leaf = aes_generic(0);
    pthread_mutex_lock(&lock);
    chat();
    num_calls++;
#ifdef FAKE_CRASHES
    if (num_calls == 100) {
        *(volatile int *)0 = 1; /* the lock stays taken */
    }
#endif
    (decrypting ? leaf->decrypt_blocks : leaf->encrypt_blocks)(((struct handle *)handle)->ctx, dst, src, num_blocks);
    pthread_mutex_unlock(&lock);
}
#endif

void fake_close(void *handle)
{
    free(handle);
}
