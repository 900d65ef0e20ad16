/* SPDX-License-Identifier: Apache-2.0
 * The protocol loop of docs/reference/protocol.md. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim.h"
#include "shim_tables.h"

#define DONE_LEN (32u + 8u * NUM_CLASSES)
#define OPEN_LEN 168u
#define OPENED_LEN 24u

#define DIGESTS_LEN 104u
#define COMPARED_LEN 40u
#define THREADED_LEN (24u + DEPARTURE_LEN)

enum { RUN_STRICT = 1, RUN_INLINE = 2, RUN_ANEW = 4 };
enum { REASON_DONE = 0, REASON_DEPARTURE = 1 };
enum { DONE_PRINTED = 1 };

uint64_t num_calls;

static uint64_t batch_capacity, result_capacity;
static uint8_t *mapped_batch, *mapped_results;
static int running_inline, opened;
static volatile unsigned under_way; /* kind of the request that is being answered */

static void send_done(uint64_t next_case, unsigned reason)
{
    uint8_t done[DONE_LEN] = {0};
    uint64_t tail = running_inline ? batch.results_len : 0;
    store_le64(done, next_case);
    store_le32(done + 8, reason);
    store_le32(done + 12, stream_printed() ? DONE_PRINTED : 0);
    store_le64(done + 16, cpu_time_ns());
    store_le64(done + 24, num_calls);
    for (unsigned i = 0; i < NUM_CLASSES; i++) {
        store_le64(done + 32 + 8 * i, paths_taken()[i]);
    }
    stream_send_header(MSG_DONE, DONE_LEN + tail);
    if (stream_write(done, sizeof done) != 0 || (tail > 0 && stream_write(batch.results, tail) != 0)) {
        _exit(3);
    }
}

_Noreturn void shim_end_after_departure(const struct departure *d)
{
    if (under_way == MSG_RUN) {
        batch_record(batch_current_case(), d);
        send_done(batch_current_case() + 1, REASON_DEPARTURE);
    } else {
        uint64_t index = 0, op = 0;
        uint8_t ended[8 + DEPARTURE_LEN];
        struct departure there = *d;
        if (under_way == MSG_THREADS) {
            there.registers = threads_place(&index, &op);
        }
        store_le64(ended, index);
        departure_encode(ended + 8, &there, op);
        stream_send(MSG_ENDED, ended, sizeof ended);
    }
    _exit(0);
}

/* A claim is held to; of what claims nothing there is nothing to say. */
static void watch_claim(const struct shim_implementation *i)
{
    subject.win64 = (int)i->win64;
    if (!i->wipes) {
        subject.watch &= ~(unsigned)WATCH_WIPE;
    } else if (!thunks_available()) {
        subject.blind |= WATCH_WIPE;
    }
}

static const struct subject_leaf *find_leaf(const char *symbol, uint64_t hide, int *known)
{
    *known = 0;
    for (const struct shim_implementation *i = shim_implementations; i->symbol != NULL; i++) {
        if (strcmp(i->symbol, symbol) == 0) {
            *known = 1;
            getter_running = 1;
            const struct subject_leaf *leaf = i->getter(features_detect() & ~hide);
            getter_running = 0;
            watch_claim(i);
            return leaf;
        }
    }
    return NULL;
}

static const struct subject_session *find_session(const char *driver)
{
    for (size_t i = 0; shim_sessions[i] != NULL; i++) {
        if (strcmp(shim_sessions[i]->driver, driver) == 0) {
            return shim_sessions[i];
        }
    }
    return NULL;
}

static const struct subject_mode *find_mode(const char *name)
{
    for (size_t i = 0; shim_modes[i].name != NULL; i++) {
        if (strcmp(shim_modes[i].name, name) == 0) {
            return shim_modes[i].mode;
        }
    }
    return NULL;
}

static uint8_t *map_fd(int fd, uint64_t len, int protection)
{
    uint8_t *p = mmap(NULL, len, protection, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        shim_fail("cannot map the memory that OPEN names");
    }
    return p;
}

static void check_leaf(const struct subject_leaf *leaf)
{
    if (leaf->contract != SUBJECT_CONTRACT || (leaf->block_len != 8 && leaf->block_len != 16) || leaf->ways == 0 ||
        leaf->ctx_len == 0 || leaf->ctx_len > 8192 || leaf->ctx_align == 0 || leaf->ctx_align > 4096 ||
        (leaf->ctx_align & (leaf->ctx_align - 1)) != 0 || leaf->setkey == NULL || leaf->encrypt_blocks == NULL ||
        leaf->decrypt_blocks == NULL) {
        shim_fail("the implementation's table breaks the contract: see struct subject_leaf in subject.h "
                  "(contract 1, block_len 8 or 16, ways at least 1, ctx_len 1 to 8192, ctx_align a power of two up to "
                  "4096, setkey and both block functions present)");
    }
}

static void send_opened(uint32_t status)
{
    uint8_t answer[OPENED_LEN + MAX_PATHS * PATH_NAME_LEN] = {0};
    store_le32(answer, status);
    if (status == 0) {
        store_le32(answer + 4, subject.block_len);
        store_le32(answer + 8, subject.ways);
        store_le32(answer + 12, paths_count());
        store_le64(answer + 16, subject.blind);
    }
    for (unsigned i = 0; status == 0 && i < paths_count(); i++) {
        if (strlen(paths_name(i)) >= PATH_NAME_LEN) {
            shim_fail("a path's name is longer than 31 characters");
        }
        memcpy(answer + OPENED_LEN + i * PATH_NAME_LEN, paths_name(i), strlen(paths_name(i)));
    }
    stream_send(MSG_OPENED, answer, OPENED_LEN + (status == 0 ? paths_count() : 0) * PATH_NAME_LEN);
}

static void do_open(uint64_t len)
{
    uint8_t p[OPEN_LEN];
    char mode[33] = {0}, symbol[65] = {0}, cipher[33] = {0};
    int known;
    if (len != OPEN_LEN || opened || stream_read(p, sizeof p) != 0) {
        shim_fail(opened ? "OPEN came twice" : "OPEN has not 168 bytes");
    }
    memcpy(mode, p, 32);
    memcpy(symbol, p + 32, 64);
    memcpy(cipher, p + 96, 32);
    subject.watch = (unsigned)load_le64(p + 136);
    batch_capacity = load_le64(p + 144);
    result_capacity = load_le64(p + 152);
    int batch_fd = (int)load_le32(p + 160), result_fd = (int)load_le32(p + 164);
    subject.mode = find_mode(mode);
    const struct subject_session *session = find_session(symbol);
    const struct subject_leaf *leaf = find_leaf(symbol, load_le64(p + 128), &known);
    if ((!known && session == NULL) || subject.mode == NULL) {
        shim_fail(subject.mode == NULL ? "OPEN names a mode that this shim does not have"
                                       : "OPEN names an implementation that this shim does not have");
    }
    if (session != NULL ? !driver_use_session(session, cipher) : leaf == NULL) {
        send_opened(1);
        return;
    }
    if (leaf != NULL) {
        check_leaf(leaf);
        driver_use_leaf(leaf);
    }
    if ((subject.watch & WATCH_PATHS) != 0) {
        paths_init(symbol);
    }
    if (batch_fd >= 0) {
        mapped_batch = map_fd(batch_fd, batch_capacity, PROT_READ);
        mapped_results = map_fd(result_fd, result_capacity, PROT_READ | PROT_WRITE);
    }
    opened = 1;
    send_opened(0);
}

static void receive_inline(uint64_t len)
{
    uint8_t *base = NULL, *results = NULL;
    if (len > 0 && len <= batch_capacity) {
        base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        results = mmap(NULL, result_capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (base == NULL || base == MAP_FAILED || results == MAP_FAILED) {
        shim_fail("an inline batch is empty or longer than OPEN announced");
    }
    if (stream_read(base, len) != 0 || mprotect(base, len, PROT_READ) != 0) {
        shim_fail("the inline batch ended early");
    }
    mapped_batch = base;
    mapped_results = results;
}

/* The batch that a request of `count` cases from `first` on is about, which stands behind it or in shared memory. */
static void take_batch(uint64_t first, uint64_t count, uint64_t flags, uint64_t len_behind)
{
    running_inline = (flags & RUN_INLINE) != 0;
    if (running_inline) {
        receive_inline(len_behind);
    } else if (len_behind != 0 || mapped_batch == NULL) {
        shim_fail("a request is longer than the protocol has it, or no memory was named in OPEN");
    }
    const char *wrong = batch_open(mapped_batch, running_inline ? len_behind : batch_capacity);
    if (wrong != NULL || batch_results_len() > result_capacity || first > batch.num_cases ||
        count > batch.num_cases - first) {
        shim_fail(wrong != NULL ? wrong
                                : "the batch does not fit its result region, or a request names cases outside it");
    }
    batch.strict = (flags & RUN_STRICT) != 0;
}

static void drop_batch(uint64_t len_behind)
{
    if (running_inline) {
        (void)munmap(mapped_batch, len_behind);
        (void)munmap(mapped_results, result_capacity);
        mapped_batch = mapped_results = NULL;
    }
}

static void do_run(uint64_t len)
{
    uint8_t p[24];
    if (!opened || len < sizeof p || stream_read(p, sizeof p) != 0) {
        shim_fail(opened ? "RUN has fewer than 24 bytes" : "RUN came before OPEN");
    }
    uint64_t first = load_le64(p), count = load_le64(p + 8), flags = load_le64(p + 16);
    if ((flags & ~(uint64_t)(RUN_STRICT | RUN_INLINE | RUN_ANEW)) != 0) {
        shim_fail("RUN has an unknown flag");
    }
    if ((flags & RUN_ANEW) != 0) {
        paths_forget();
    }
    take_batch(first, count, flags, len - sizeof p);
    batch_bind_results(mapped_results, result_capacity);
    batch_clear(first, count);
    paths_begin_batch();
    for (uint64_t i = first; i < first + count; i++) {
        const struct departure *d = session_run_case(i);
        if (d != NULL) {
            shim_end_after_departure(d);
        }
    }
    (void)fflush(stdout); /* what a library has printed may lie in a buffer */
    send_done(first + count, REASON_DONE);
    drop_batch(len - sizeof p);
}

/* What came to light of a library's memory in a request that is no RUN. */
static void end_where_heap_departed(void)
{
    struct departure d;
    if (heap_departed(&d)) {
        shim_end_after_departure(&d);
    }
}

static void do_threads(uint64_t len)
{
    uint8_t p[32], answer[THREADED_LEN];
    struct threads_result result;
    if (!opened || len < sizeof p || stream_read(p, sizeof p) != 0) {
        shim_fail(opened ? "THREADS has fewer than 32 bytes" : "THREADS came before OPEN");
    }
    uint64_t first = load_le64(p), count = load_le64(p + 8), rounds = load_le64(p + 16), flags = load_le64(p + 24);
    if ((flags & ~(uint64_t)RUN_INLINE) != 0 || count == 0) {
        shim_fail("THREADS has an unknown flag or no case");
    }
    take_batch(first, count, flags, len - sizeof p);
    paths_disarm();
    thunks_assembly_on(0);
    threads_run(first, count, rounds, &result);
    end_where_heap_departed();
    store_le64(answer, result.num_calls);
    store_le64(answer + 8, result.num_beside);
    store_le64(answer + 16, result.case_index);
    departure_encode(answer + 24, &result.departure, result.op);
    stream_send(MSG_THREADED, answer, sizeof answer);
    drop_batch(len - sizeof p);
}

static void do_bare(uint64_t len)
{
    uint8_t p[32], answer[16];
    uint64_t cpu_ns;
    if (!opened || subject.session != NULL || len != sizeof p || stream_read(p, sizeof p) != 0 ||
        load_le64(p + 8) > 65536 || load_le64(p + 16) == 0) {
        shim_fail("BARE came before OPEN or for a library, has not 32 bytes, asks for more than 65536 bytes or no "
                  "message a key");
    }
    store_le64(answer + 8, bare_run(load_le64(p), load_le64(p + 8), load_le64(p + 16), &cpu_ns));
    store_le64(answer, cpu_ns);
    stream_send(MSG_TIMED, answer, sizeof answer);
}

static struct made_request made_request(const uint8_t *p)
{
    return (struct made_request){load_le64(p),      load_le32(p + 8),  load_le32(p + 12),
                                 load_le32(p + 16), load_le32(p + 20), load_le32(p + 24)};
}

static void do_large(uint64_t len)
{
    uint8_t p[40], answer[DIGESTS_LEN] = {0};
    struct large_result result = {.status = SUBJECT_OK};
    if (!opened || len != sizeof p || stream_read(p, sizeof p) != 0) {
        shim_fail(opened ? "LARGE has not 40 bytes" : "LARGE came before OPEN");
    }
    struct made_request request = made_request(p + 8);
    paths_disarm();
    thunks_assembly_on(0);
    uint64_t begun = cpu_time_ns();
    const char *wrong = large_run(load_le64(p), &request, &result);
    end_where_heap_departed();
    if (wrong != NULL) {
        shim_fail(wrong);
    }
    thunks_assembly_on(1);
    store_le64(answer, cpu_time_ns() - begun);
    store_le32(answer + 8, (uint32_t)result.status);
    store_le32(answer + 12, result.iv_len);
    memcpy(answer + 16, result.iv, result.iv_len);
    memcpy(answer + 32, result.tag, request.tag_len);
    store_le64(answer + 96, result.num_digests);
    stream_send_header(MSG_DIGESTS, sizeof answer + 8 * result.num_digests);
    if (stream_write(answer, sizeof answer) != 0 || stream_write(result.digests, 8 * result.num_digests) != 0) {
        _exit(3);
    }
    (void)munmap(result.memory, result.memory_len);
}

static void do_bulk(uint64_t len)
{
    uint8_t p[32], answer[COMPARED_LEN] = {0};
    struct bulk_result result = {.what = BULK_AGREES};
    if (!opened || len != sizeof p || stream_read(p, sizeof p) != 0) {
        shim_fail(opened ? "BULK has not 32 bytes" : "BULK came before OPEN");
    }
    struct made_request request = made_request(p);
    paths_disarm();
    thunks_assembly_on(0);
    uint64_t begun = cpu_time_ns();
    uint32_t flags = load_le32(p + 28);
    const char *wrong = bulk_run(&request, (flags & BULK_COUNTS) != 0, (flags & BULK_FEW) != 0, &result);
    end_where_heap_departed();
    if (wrong != NULL) {
        shim_fail(wrong);
    }
    thunks_assembly_on(1);
    store_le64(answer, cpu_time_ns() - begun);
    store_le64(answer + 8, result.num_compared);
    store_le64(answer + 16, result.offset);
    store_le32(answer + 24, result.what);
    store_le32(answer + 28, result.num_blocks);
    store_le32(answer + 32, result.wrap_bits);
    stream_send(MSG_COMPARED, answer, sizeof answer);
}

int main(void)
{
    arenas_init();
    signals_init();
    watchdog_start();
    say_hello();
    for (;;) {
        uint8_t header[STREAM_HEADER_LEN];
        if (stream_read(header, sizeof header) != 0) {
            return 0;
        }
        if (memcmp(header, "XLNE", 4) != 0 || header[5] != 0 || header[7] != 0) {
            shim_fail("a message does not begin with XLNE");
        }
        if (header[4] != STREAM_VERSION) {
            shim_fail("a message speaks another version of the protocol than 1");
        }
        uint64_t len = load_le64(header + 8);
        under_way = header[6];
        switch (under_way) {
        case MSG_OPEN: do_open(len); break;
        case MSG_RUN: do_run(len); break;
        case MSG_BARE: do_bare(len); break;
        case MSG_THREADS: do_threads(len); break;
        case MSG_LARGE: do_large(len); break;
        case MSG_BULK: do_bulk(len); break;
        default: shim_fail("a message is of an unknown kind");
        }
    }
}
