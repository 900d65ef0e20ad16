/* SPDX-License-Identifier: Apache-2.0
 * One side of a target: the shim's sessions around implementations, without its protocol. */
#include "target.h"

#include "frames.h"
#include "shim.h"
#include "shim_tables.h"

#include <stdio.h>
#include <stdlib.h>

uint64_t num_calls;
static const struct shim_implementation *opened;
static const struct subject_leaf *opened_leaf;
static struct subject of_leaf;
static unsigned opened_watch;
static int ready;

_Noreturn void shim_fail(const char *sentence)
{
    fprintf(stderr, "crosslane: the target's own machinery failed: %s\n", sentence);
    abort();
}

static const struct shim_implementation *find_implementation(const char *symbol)
{
    const struct shim_implementation *i = shim_implementations;
    while (i->symbol != NULL && strcmp(i->symbol, symbol) != 0) {
        i++;
    }
    return i->symbol != NULL ? i : NULL;
}

static const struct subject_mode *find_mode(const char *name)
{
    const struct shim_mode *m = shim_modes;
    while (m->name != NULL && strcmp(m->name, name) != 0) {
        m++;
    }
    return m->mode;
}

static int open_row(const struct target_row *row, int generic, unsigned watch)
{
    const char *symbol = generic ? row->generic : row->symbol;
    if (!ready) {
        arenas_init();
        ready = 1;
    }
    const struct subject_mode *mode = find_mode(row->mode);
    if (mode == NULL) {
        shim_fail("a row of the target names a mode that is not there");
    }
    if (opened == NULL || strcmp(opened->symbol, symbol) != 0 || opened_watch != watch) {
        opened = find_implementation(symbol);
        if (opened == NULL) {
            shim_fail("a row of the target names an implementation that is not there");
        }
        opened_leaf = opened->getter(features_detect());
        opened_watch = watch;
        if (opened_leaf != NULL) {
            memset(&subject, 0, sizeof subject);
            subject.watch = watch & (opened->wipes ? ~0u : ~(unsigned)WATCH_WIPE);
            subject.win64 = (int)opened->win64;
            subject.mode = mode;
            driver_use_leaf(opened_leaf);
            of_leaf = subject;
        }
    }
    if (opened_leaf == NULL) {
        return 1;
    }
    subject = of_leaf;
    subject.mode = mode;
    subject.num_ctx = mode->num_ctx;
    return 0;
}

static int run(const uint8_t *data, size_t len, uint8_t *results, size_t results_len)
{
    const char *wrong = batch_open(data, len);
    if (wrong == NULL && batch_results_len() > results_len) {
        wrong = "a case of the target has more results than there is room for";
    }
    if (wrong != NULL) {
        shim_fail(wrong);
    }
    memset(results, 0, batch_results_len());
    batch_bind_results(results, results_len);
    paths_begin_batch();
    const struct departure *departed = session_run_case(0);
    if (departed != NULL) {
        batch_record(0, departed);
    }
    return departed != NULL;
}

static int hit(void *context)
{
    uintptr_t place = frame_trap_place(context);
    size_t len = paths_hit(place);
    if (len > 0) {
        frame_resume_at(context, place + len);
    }
    return len > 0;
}

EXPORTED const struct side SIDE_NAME = {open_row, run, paths_total, paths_title, paths_count_into, hit};
