/* SPDX-License-Identifier: Apache-2.0
 * The table of libraries of the program that measures ours alone. */
#include "bench.h"

const struct bench_library bench_libraries[] = {{NULL, NULL, NULL, NULL}};
