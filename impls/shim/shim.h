/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the shim share. docs/reference/protocol.md gives the meaning of every number. */
#ifndef CROSSLANE_SHIM_H
#define CROSSLANE_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include "subject.h"

#define NUM_SLOTS 4u
#define MAX_MESSAGE_LEN (UINT64_C(4) << 20)
#define MAX_SMALL_LEN (UINT64_C(128) << 10) /* iv, associated data */
#define FILL_BYTE 0xa5
#define MAX_FEED_LEN 64u
#define NUM_CLASSES 16u
#define MAX_PATHS 64u
#define PATH_NAME_LEN 32u

#define STREAM_VERSION 1u
#define STREAM_HEADER_LEN 16u
#define DEPARTURE_LEN 32u

enum { MSG_OPEN = 0x01, MSG_RUN = 0x02, MSG_BARE = 0x03, MSG_THREADS = 0x04, MSG_LARGE = 0x05, MSG_BULK = 0x06 };
enum { MSG_HELLO = 0x81, MSG_OPENED = 0x82, MSG_DONE = 0x83, MSG_TIMED = 0x84, MSG_ENDED = 0x85, MSG_THREADED = 0x86 };
enum { MSG_DIGESTS = 0x87, MSG_COMPARED = 0x88 };
enum { MSG_ERROR = 0xff };
enum { WATCH_LAYOUT = 1, WATCH_CANARY = 2, WATCH_REGISTERS = 4, WATCH_CONTEXT = 8, WATCH_PATHS = 16, WATCH_WIPE = 32 };
enum { EDGE_END = 0, EDGE_START = 1, EDGE_MIDDLE = 2 };
enum { VERDICT_NOT_RUN = 0, VERDICT_RAN = 1, VERDICT_DISAGREE = 2, VERDICT_CRASH = 4, VERDICT_HANG = 5 };
enum {
    SYMPTOM_NONE = 0,
    SYMPTOM_CANARY = 3,
    SYMPTOM_GUARD_READ = 4,
    SYMPTOM_GUARD_WRITE = 5,
    SYMPTOM_ABI = 6,
    SYMPTOM_INPUT = 7,
    SYMPTOM_CONTEXT = 8,
    SYMPTOM_WIPE = 9,
    SYMPTOM_NONDETERMINISM = 10
};
enum {
    BUFFER_NONE = 0,
    BUFFER_KEY = 1,
    BUFFER_IV_IN = 2,
    BUFFER_IN = 3,
    BUFFER_OUT = 4,
    BUFFER_IV = 5,
    BUFFER_AAD = 6,
    BUFFER_TAG = 7,
    BUFFER_CTX = 8,
    BUFFER_CTX2 = 9,
    BUFFER_RESULTS = 10,
    BUFFER_BATCH = 11
};
enum { OP_SETKEY = 1, OP_SETIV, OP_AAD, OP_UPDATE, OP_FINAL, OP_TAG, OP_REINIT, OP_CLONE };
enum { FLAG_IN_PLACE = 1, FLAG_LAST = 2, FLAG_OBSERVE_IV = 4, FLAG_FEED = 8, FLAG_OVERLAP = 16 };

/* One buffer's home: usable bytes between two inaccessible stretches. `at` and `len` are the current placement. */
struct arena {
    uint8_t *start;
    uint8_t *end;
    uint8_t *at;
    size_t len;
    uint8_t kind; /* BUFFER_... */
};

struct departure {
    uint8_t verdict;
    uint8_t symptom;
    uint8_t buffer;
    uint8_t signal;
    int64_t offset;
    uint64_t registers;
    uint64_t pc;
};

/* arena.c */
void arenas_init(void);
struct arena *arena_of(uint8_t kind, unsigned slot);
/* Places len bytes in the arena, fenced by canaries where a canary fits. */
uint8_t *arena_place(struct arena *a, unsigned edge, unsigned align, size_t len, unsigned watch);
/* As arena_place, for a context: aligned to ctx_align, in the middle to no more than that. */
uint8_t *arena_place_context(struct arena *a, unsigned edge, size_t ctx_align, size_t len, unsigned watch);
/* 0 where both canaries stand; otherwise the departure is filled in. */
int arena_check(const struct arena *a, struct departure *d);
/* Finds the arena that an address lies in or near (1 MiB); NULL where none. */
const struct arena *arena_at(uintptr_t address);
size_t page_len(void);

/* thunks: thunk_<arch>.S, thunks.c */
void thunks_install(struct subject_leaf *leaf);
extern volatile uint64_t thunk_departures; /* registers that a call did not keep, since last cleared */
int thunks_available(void);
void thunks_for_assembly(int win64); /* watches assembly functions that C code calls: subject_asm.h */
void thunks_assembly_on(int on);

/* wipe.c */
void wipe_watch(int on);
int wipe_departed(struct departure *d); /* nonzero, and told once, where a call left a secret behind */

/* heap.c in programs of libraries, no_heap.c in others: what a library allocates while it runs */
enum { HEAP_FREED = 1 }; /* in `registers` of a departure: the memory had been freed */
#define HEAP_LEFT (UINT64_C(1) << 63)
int heap_available(void);
void heap_use(int on, int claims_wiping); /* once; claims_wiping: what is freed is to hold no key */
void heap_begin_case(unsigned ctx_edge);
void heap_know_key(const uint8_t *key, size_t key_len);
void heap_end_case(void);
int heap_departed(struct departure *d); /* nonzero, and told once, where memory beside a block or a freed one changed */
int heap_locate(uintptr_t address,
                int64_t *offset); /* nonzero where it lies at or near a block, whose start it is from */

/* paths.c */
void paths_init(const char *symbol);
unsigned paths_count(void);
const char *paths_name(unsigned index);
void paths_begin_batch(void);
void paths_forget(void);
void paths_arm(unsigned length_class);
void paths_disarm(void);
size_t paths_hit(uintptr_t pc); /* from the SIGTRAP handler: length of the trap where it was ours, else 0 */
const uint64_t *paths_taken(void);
unsigned paths_length_class(size_t len, size_t block_len);

/* features.c */
uint64_t features_detect(void);
size_t features_print(char *text, size_t capacity); /* JSON names, comma between; returns the length */
const char *features_arch(void);

/* signals.c */
void signals_init(void);
void watchdog_start(void);
#define WATCHDOG_S 3u
#define WATCHDOG_BYTES_PER_S (128u << 10)
void watchdog_allow(uint64_t seconds); /* of CPU time, for one operation */

/* driver.c: the two contracts behind one set of calls */
struct subject {
    struct subject_leaf leaf; /* thunks in its slots */
    struct subject_leaf bare; /* as the getter gave it */
    const struct subject_mode *mode;
    const struct subject_session *session; /* a library's, or NULL for a leaf */
    char cipher[33];
    uint32_t block_len, ways;
    uint32_t num_ctx; /* contexts that the shim places: none for a session, whose library keeps its own */
    int win64;        /* its assembly functions keep the Windows x64 convention */
    unsigned watch;   /* what OPEN asked for */
    unsigned blind;   /* what cannot be watched here */
};
extern struct subject subject;

/* One context, whichever contract it keeps. */
struct held {
    struct subject_message m;
    struct subject_state state;
    void *session;
};
void driver_use_leaf(const struct subject_leaf *leaf);
int driver_use_session(const struct subject_session *session, const char *cipher); /* 0: the library lacks it */
void driver_begin(struct held *h, void *ctx, void *ctx2, int decrypting);
void driver_end(struct held *h);
int driver_setkey(struct held *h, const uint8_t *key, size_t key_len, uint32_t policy);
int driver_setiv(struct held *h, const uint8_t *iv, size_t iv_len);
int driver_aad(struct held *h, const uint8_t *aad, size_t aad_len);
int driver_wants_tag(void); /* whether driver_expect is to come between setiv and the data */
int driver_expect(struct held *h, const uint8_t *tag, size_t tag_len);
int driver_update(struct held *h, uint8_t *dst, const uint8_t *src, size_t len, int last);
int driver_final(struct held *h);
int driver_tag(struct held *h, uint8_t *tag, size_t tag_len);
int driver_iv_out(struct held *h); /* whether block_len bytes at m.iv are the running iv */
int driver_reinit(struct held *h);
int driver_clone(struct held *to, const struct held *from); /* contexts apart, which the shim copies */

/* session.c */
extern volatile int subject_running, getter_running;
const struct departure *session_run_case(uint64_t index); /* not NULL: the process must end */

/* batch.c: the batch and its results, wherever they lie */
struct op {
    uint8_t kind, slot, flags, in_edge, in_align, out_edge, out_align, from_slot;
    uint64_t in_off, in_len, out_off, aux0, aux1;
};
struct test_case {
    uint64_t first_op;
    uint32_t num_ops, policy, tag_len;
    uint8_t decrypting, ctx_edge;
};
struct batch {
    const uint8_t *base;
    uint64_t base_len;
    uint64_t num_ops, cases_off, ops_off, blob_off, blob_len, out_len;
    uint32_t num_cases;
    uint8_t *results;
    uint64_t results_len, results_capacity;
    uint8_t *case_results, *statuses, *out;
    int strict;
};
extern struct batch batch;
const char *batch_open(const uint8_t *base, uint64_t base_len); /* NULL, or what is wrong */
uint64_t batch_results_len(void);
void batch_bind_results(uint8_t *results, uint64_t capacity);
const char *batch_case(uint64_t index, struct test_case *c);
const char *batch_op(uint64_t index, struct op *o);
const char *batch_op_bounds(const struct op *o, const struct test_case *c); /* NULL, or what is too long or outside */
/* Bytes between the starts of input and output where they overlap. */
uint64_t batch_op_distance(const struct op *o);
uint64_t batch_op_out_len(const struct op *o, const struct test_case *c); /* bytes of output, the running iv's too */
void batch_results_lock(void);                                            /* strict: read-only while the subject runs */
void batch_results_unlock(void);
void batch_clear(uint64_t first_case, uint64_t num_cases);
void batch_mark(uint64_t current_case, uint64_t current_op);
void batch_record(uint64_t case_index, const struct departure *d);
void departure_encode(uint8_t *to, const struct departure *d, uint64_t op);
uint64_t batch_current_case(void);

/* bare.c */
uint64_t bare_run(uint64_t num_messages, uint64_t message_len, uint64_t messages_per_key, uint64_t *cpu_ns);
uint64_t cpu_time_ns(void);

/* threads.c */
enum { DEPARTS_AGAIN = 1, DEPARTS_BESIDE = 2 }; /* the second time in one thread, or beside another thread */
struct threads_result {
    uint64_t num_calls;  /* operations in two threads at once */
    uint64_t num_beside; /* those of them during which the other thread ended one */
    uint64_t case_index; /* UINT64_MAX where nothing departed */
    uint64_t op;
    struct departure departure;
};
void threads_run(uint64_t first_case, uint64_t num_cases, uint64_t num_rounds, struct threads_result *result);
/* Where this thread is; DEPARTS_BESIDE where there is another one. */
unsigned threads_place(uint64_t *case_index, uint64_t *op);
uint64_t threads_progress(void);
int threads_fault(uintptr_t address); /* from the handler: nonzero where the call may go on */

/* made.c */
#define MADE_MAX_LEN 256u
#define MADE_MAX_TAG_LEN 64u
struct made_request {
    uint64_t seed;
    uint32_t key_len, iv_len, aad_len, tag_len, decrypting;
};
int made_fits(const struct made_request *r); /* whether lengths are within bounds and of what the mode has */
void made_data(const struct made_request *r, uint8_t *data, uint64_t data_len);
void made_iv(const struct made_request *r, uint8_t *iv);
int made_begin(struct held *h, const struct made_request *r); /* keyed; the status of setkey */
/* One message in place, its tag when encrypting; the status of the first operation that was refused. */
int made_message(struct held *h, const struct made_request *r, const uint8_t *iv, uint8_t *data, uint64_t data_len,
                 uint8_t *tag);

/* large.c */
struct large_result {
    int status; /* of the first operation that was refused */
    uint32_t iv_len;
    uint8_t iv[SUBJECT_MAX_BLOCK_LEN], tag[64];
    uint64_t num_digests;
    const uint8_t *digests; /* in the memory, which is for the caller to unmap */
    void *memory;
    uint64_t memory_len;
};
/* NULL, or what is wrong. */
const char *large_run(uint64_t data_len, const struct made_request *r, struct large_result *result);

/* bulk.c */
enum { BULK_AGREES = 0, BULK_STATUS = 1, BULK_OUTPUT = 2, BULK_IV = 3, BULK_TAG = 4 };
struct bulk_result {
    uint64_t num_compared; /* messages */
    uint32_t what;         /* of the last of them: BULK_... */
    uint32_t num_blocks, wrap_bits;
    uint64_t offset; /* of the first byte that differs */
};
/* NULL, or what is wrong. `counts`: the iv is a big-endian counter; `few`: with few numbers of blocks. */
enum { BULK_COUNTS = 1, BULK_FEW = 2 };
const char *bulk_run(const struct made_request *r, int counts, int few, struct bulk_result *result);

/* stream.c */
int stream_read(void *data, size_t len); /* 0, or -1 at the end of input */
int stream_write(const void *data, size_t len);
void stream_send_header(unsigned kind, uint64_t payload_len);
void stream_send(unsigned kind, const void *payload, size_t len);
int stream_printed(void); /* whether the subject has printed since the last call; its words go where its errors go */
_Noreturn void shim_fail(const char *sentence);

/* hello.c */
void say_hello(void);

/* main.c */
extern uint64_t num_calls;
_Noreturn void shim_end_after_departure(const struct departure *d); /* from a signal handler too */

#endif
