/* SPDX-License-Identifier: Apache-2.0
 * What a shim program was built with. The build generates the definitions for each program. */
#ifndef CROSSLANE_SHIM_TABLES_H
#define CROSSLANE_SHIM_TABLES_H

#include "subject.h"

struct shim_implementation {
    const char *driver; /* "sm4-generic" */
    const char *cipher; /* "sm4" */
    const char *symbol; /* "sm4_generic", as in the names of path records */
    subject_getter_fn *getter;
    const char *paths; /* declared code paths, separated by commas */
    unsigned win64;    /* whether its assembly functions keep the Windows x64 convention */
    unsigned wipes;    /* whether it claims to leave no secret behind */
};

/* Ends with an entry whose members are all NULL. */
extern const struct shim_implementation shim_implementations[];
/* A mode under the name that OPEN gives it, which for a planted fault is not the mode's own. */
struct shim_mode {
    const char *name;
    const struct subject_mode *mode;
};

/* Ends with an entry whose members are NULL. */
extern const struct shim_mode shim_modes[];
/* Adapters of libraries; ends with NULL. */
extern const struct subject_session *const shim_sessions[];

#endif
