/* SPDX-License-Identifier: Apache-2.0
 * The libraries that the peers program links. */
#ifndef CROSSLANE_BENCH_PEERS_H
#define CROSSLANE_BENCH_PEERS_H

#include "bench.h"

const char *peer_gcrypt_version(void);
void *peer_gcrypt_open(const struct bench_job *job);
bench_message_fn peer_gcrypt_message;

const char *peer_nettle_version(void);
void *peer_nettle_open(const struct bench_job *job);
bench_message_fn peer_nettle_message;

#endif
