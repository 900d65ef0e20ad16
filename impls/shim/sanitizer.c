/* SPDX-License-Identifier: Apache-2.0
 * How a sanitizer's library behaves beside the shim; part of sanitized lanes only. A report ends in SIGABRT, which
 * signals.c turns into a verdict. */
#include "shim.h"

/* The shim keeps all signals, so that guard pages and path traps work as elsewhere. Nothing may be written, no limit
 * be set and no other process be traced (launcher.c), which rules out core dumps' limit and leak detection. */
#define COMMON_OPTIONS                                                                                                \
    "abort_on_error=1:handle_segv=0:handle_sigbus=0:handle_sigill=0:handle_sigfpe=0:handle_abort=0:handle_sigtrap=0:" \
    "use_sigaltstack=0:disable_coredump=0:print_legend=0:print_summary=1"

const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

/* The shadow's 16 TiB rule out a limit on address space: resident memory is limited instead. */
const char *__asan_default_options(void)
{
    return COMMON_OPTIONS ":detect_leaks=0:detect_stack_use_after_return=1:hard_rss_limit_mb=512:"
                          "max_allocation_size_mb=256:quarantine_size_mb=16";
}

const char *__ubsan_default_options(void)
{
    return COMMON_OPTIONS ":report_error_type=1";
}
