/* SPDX-License-Identifier: Apache-2.0
 * The two ends of the protocol's stream, kept away from the subject. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "shim.h"

static int stream_in = STDIN_FILENO, stream_out = STDOUT_FILENO;
static int printed[2] = {-1, -1}; /* a pipe, which loses words where it is full */

/* The subject may print: what it writes to its standard output is taken from a pipe and put where its errors go, and
 * its standard input is nothing that can be read. Constructors are code of the subject too, so this comes before all
 * of them. */
static void claim(void)
{
    int in = dup(STDIN_FILENO), out = dup(STDOUT_FILENO);
    int words = pipe2(printed, O_NONBLOCK | O_CLOEXEC) == 0 ? printed[1] : STDERR_FILENO;
    if (in >= 0 && out >= 0 && dup2(STDERR_FILENO, STDIN_FILENO) >= 0 && dup2(words, STDOUT_FILENO) >= 0) {
        stream_in = in;
        stream_out = out;
    }
}

/* Calls nothing that a signal handler may not. */
int stream_printed(void)
{
    uint8_t words[512];
    int any = 0;
    for (ssize_t n; printed[0] >= 0 && (n = read(printed[0], words, sizeof words)) > 0;) {
        any = 1;
        (void)!write(STDERR_FILENO, words, (size_t)n);
    }
    return any;
}

__attribute__((destructor)) static void leave(void)
{
    (void)stream_printed();
}

__attribute__((section(".preinit_array"), used)) static void (*const before_all_constructors)(void) = claim;

int stream_write(const void *data, size_t len)
{
    const uint8_t *p = data;
    while (len > 0) {
        ssize_t n = write(stream_out, p, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return -1;
        }
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int stream_read(void *data, size_t len)
{
    uint8_t *p = data;
    while (len > 0) {
        ssize_t n = read(stream_in, p, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return -1;
        }
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

void stream_send_header(unsigned kind, uint64_t payload_len)
{
    uint8_t header[STREAM_HEADER_LEN] = {'X', 'L', 'N', 'E', STREAM_VERSION, 0, (uint8_t)kind, 0};
    store_le64(header + 8, payload_len);
    if (stream_write(header, sizeof header) != 0) {
        _exit(3);
    }
}

void stream_send(unsigned kind, const void *payload, size_t len)
{
    stream_send_header(kind, len);
    if (stream_write(payload, len) != 0) {
        _exit(3);
    }
}

_Noreturn void shim_fail(const char *sentence)
{
    (void)stream_printed();
    stream_send(MSG_ERROR, sentence, strlen(sentence));
    _exit(3);
}
