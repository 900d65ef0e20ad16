/* SPDX-License-Identifier: Apache-2.0
 * The table of libraries of the program that measures them beside ours. */
#include "peers.h"
#include "bench.h"

const struct bench_library bench_libraries[] = {
    {"libgcrypt", peer_gcrypt_version, peer_gcrypt_open, peer_gcrypt_message},
    {"nettle", peer_nettle_version, peer_nettle_open, peer_nettle_message},
    {NULL, NULL, NULL, NULL},
};
