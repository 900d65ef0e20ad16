/* SPDX-License-Identifier: Apache-2.0
 * Runs one input on both sides and compares. What it says of a departure is for whoever records it. */
#define _GNU_SOURCE
#include "pair.h"

#include "shim.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static struct {
    const struct side *oracle, *subject; /* `subject` NULL: behind an emulator (remote.c) */
    const struct target_row *rows[MAX_ROWS];
    uint32_t numbers[MAX_ROWS];
    unsigned num_rows, family, watch, traps;
} pair;

static _Alignas(64) uint8_t batch_memory[MAX_BATCH_LEN + 64];
static _Alignas(64) uint8_t oracle_results[MAX_RESULTS_LEN], subject_results[MAX_RESULTS_LEN];
static uint8_t own_counters[MAX_COUNTERS];
static struct decoded decoded = {.batch = batch_memory};
static unsigned current;
static struct pair_departure found;
static uint64_t num_run, num_messages;

static void on_trap(int sig, siginfo_t *info, void *context)
{
    (void)info;
    if (!pair.subject->hit(context)) {
        signal(sig, SIG_DFL);
        raise(sig);
    }
}

/* What the engine does with a fault is its affair: this only says how to go on, and hands it over. */
#define NUM_FAULTS 4u
static const int faults[NUM_FAULTS] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
static struct sigaction before[NUM_FAULTS];
static int noted;

static void on_fault(int sig, siginfo_t *info, void *context)
{
    static const char note[] =
        "\ncrosslane: the implementation faulted in this process, which ends the target; give -fork=1 -ignore_crashes=1 "
        "to go on, and `crosslane targets keep FILE` to put the input that is written below among the findings\n";
    (void)!write(STDERR_FILENO, note, sizeof note - 1);
    for (unsigned i = 0; i < NUM_FAULTS; i++) {
        if (faults[i] == sig) {
            (void)sigaction(sig, &before[i], NULL);
            if ((before[i].sa_flags & SA_SIGINFO) != 0 && before[i].sa_sigaction != NULL) {
                before[i].sa_sigaction(sig, info, context);
            }
        }
    }
}

/* At the first input: the engine has set its own handlers by then. */
static void note_faults(void)
{
    struct sigaction action;
    noted = 1;
    for (unsigned i = 0; i < NUM_FAULTS; i++) {
        memset(&action, 0, sizeof action);
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        (void)sigaction(faults[i], &action, &before[i]);
    }
}

EXPORTED int pair_open(const struct side *oracle, const struct side *tested, unsigned family, unsigned watch)
{
    pair.oracle = oracle;
    pair.subject = tested;
    pair.family = family;
    pair.watch = watch;
    pair.num_rows = 0;
    return family < NUM_FAMILIES ? 0 : -1;
}

static void begin_counting(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    (void)sigaction(SIGTRAP, &action, NULL);
    pair.subject->count_paths(own_counters);
    pair.traps = 1;
}

EXPORTED int pair_add(uint32_t number)
{
    const struct target_row *row = &target_rows[number];
    if (pair.num_rows == MAX_ROWS) {
        return -1;
    }
    if (pair.oracle->open(row, 1, 0) != 0 || (pair.subject != NULL && pair.subject->open(row, 0, pair.watch) != 0)) {
        return 1;
    }
    if (pair.subject != NULL && !pair.traps) {
        begin_counting();
    }
    pair.rows[pair.num_rows] = row;
    pair.numbers[pair.num_rows++] = number;
    return 0;
}

EXPORTED uint8_t *pair_counters(void)
{
    return own_counters;
}

EXPORTED uint32_t pair_num_paths(void)
{
    return pair.subject != NULL ? pair.subject->num_paths() : 0;
}

EXPORTED const char *pair_path_name(uint32_t index)
{
    return pair.subject->path_name(index);
}

EXPORTED const struct pair_departure *pair_found(void)
{
    return &found;
}

EXPORTED const uint8_t *pair_batch(uint64_t *len)
{
    *len = decoded.batch_len;
    return decoded.batch;
}

EXPORTED uint32_t pair_row(void)
{
    return pair.numbers[current];
}

EXPORTED void pair_counts(uint64_t *executions, uint64_t *messages)
{
    *executions = num_run;
    *messages = num_messages;
}

static const uint8_t *op_at(uint32_t index)
{
    return decoded.batch + 128 + (size_t)index * 48;
}

/* The first operation whose status or output differs. */
static void locate(const uint8_t *one, const uint8_t *other)
{
    size_t out_at = 128 + (((size_t)decoded.num_ops + 63) & ~(size_t)63);
    for (uint32_t i = 0; i < decoded.num_ops; i++) {
        if (one[128 + i] != other[128 + i]) {
            found.op = i;
            found.kind = op_at(i)[0];
            found.what = PAIR_STATUS;
            return;
        }
    }
    uint64_t at = out_at;
    while (at < out_at + decoded.out_len && one[at] == other[at]) {
        at++;
    }
    found.what = PAIR_OUTPUT;
    for (uint32_t i = 0; i < decoded.num_ops; i++) {
        uint64_t from = load_le64(op_at(i) + 24);
        if ((op_at(i)[0] == OP_UPDATE || op_at(i)[0] == OP_TAG) && out_at + from <= at) {
            found.op = i;
            found.kind = op_at(i)[0];
            found.offset = at - out_at - from;
        }
    }
}

static int compare(const uint8_t *oracle, const uint8_t *got, int departed)
{
    if (departed == REMOTE_GONE) {
        found.what = PAIR_GONE;
        return PAIR_GONE;
    }
    if (departed) {
        found.what = PAIR_WATCHER;
        found.verdict = got[64];
        found.symptom = got[65];
        found.op = load_le32(got + 68);
        found.kind = found.op < decoded.num_ops ? op_at(found.op)[0] : 0;
        return PAIR_WATCHER;
    }
    /* the records of the case, past the header with its marks */
    size_t len = decode_results_len(&decoded) - 64;
    if (memcmp(oracle + 64, got + 64, len) == 0) {
        return PAIR_AGREES;
    }
    locate(oracle, got);
    return (int)found.what;
}

static void decode(const uint8_t *data, size_t len)
{
    current = decode_row(data, len, pair.num_rows);
    decode_input(&decoded, data, len, pair.rows[current], pair.family);
    (void)pair.oracle->open(pair.rows[current], 1, 0);
    if (decoded.decrypting) {
        (void)pair.oracle->run(decoded.batch, decoded.batch_len, oracle_results, sizeof oracle_results);
        decode_seal(&decoded, oracle_results);
    }
}

/* Leaves what the input decodes to in pair_batch, and runs nothing on the subject. */
EXPORTED void pair_decode(const uint8_t *data, size_t len)
{
    decoded.batch = batch_memory;
    decode(data, len);
}

/* PAIR_...: whether both sides agree on what an input decodes to. */
EXPORTED int pair_one(const uint8_t *data, size_t len)
{
    int departed;
    if (!noted) {
        note_faults();
    }
    memset(&found, 0, sizeof found);
    num_run++;
    if (pair.subject == NULL) {
        decoded.batch = remote_batch();
        decode(data, len);
        remote_start(pair.numbers[current], decoded.batch_len);
        (void)pair.oracle->run(decoded.batch, decoded.batch_len, oracle_results, sizeof oracle_results);
        departed = remote_finish();
        return compare(oracle_results, remote_results(), departed);
    }
    decode(data, len);
    (void)pair.oracle->run(decoded.batch, decoded.batch_len, oracle_results, sizeof oracle_results);
    (void)pair.subject->open(pair.rows[current], 0, pair.watch);
    departed = pair.subject->run(decoded.batch, decoded.batch_len, subject_results, sizeof subject_results);
    return compare(oracle_results, subject_results, departed);
}
