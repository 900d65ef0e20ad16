/* SPDX-License-Identifier: Apache-2.0
 *
 * The same messages in two threads at once, and twice in one: each time they must give what they gave the first time.
 *
 * Each thread has contexts, ivs, keys and buffers of its own and calls the leaf itself, without thunks, whose cells are
 * shared. Cases of a batch are run as session.c runs them, less all watching; of what an operation refuses only the
 * status counts.
 *
 * On a busy machine two threads rarely meet within calls of a microsecond. So one is held up in its calls: the second
 * half of its input, its output or its context lies on a page that cannot be reached. When the call comes there, the
 * other thread does its next update from beginning to end, then the page is opened and the call goes on. After that,
 * or where the other one cannot go on, both run freely.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "worker.h"

#define NUM_THREADS 2u
#define STACK_LEN (UINT64_C(1) << 20)
#define SIGNAL_STACK_LEN 65536u
#define SPINS 200u
#define PATIENCE_S 2

static struct worker workers[NUM_THREADS];
static struct outcome expected;
static uint64_t first_case, num_cases, num_rounds;
static unsigned num_waiting, num_meetings;
static sem_t go_on, gone_on, finished;
static int over, in_two;

uint64_t threads_progress(void)
{
    return (uint64_t)workers[0].progress + workers[1].progress;
}

/* Whose thread a signal handler runs in, by the stack that it has; the first one's where one thread is all there is.
 * Thread-local variables are of no use: qemu-i386 7.2 gives a thread those of another once a handler has returned. */
static struct worker *worker_of_handler(void)
{
    uint8_t here = 0;
    const uint8_t *stack = workers[1].signal_stack;
    int in_second = in_two && (uintptr_t)&here - (uintptr_t)stack < SIGNAL_STACK_LEN;
    return &workers[in_second];
}

unsigned threads_place(uint64_t *case_index, uint64_t *op)
{
    const struct worker *w = worker_of_handler();
    *case_index = w->case_index;
    *op = w->op_index;
    return in_two ? DEPARTS_BESIDE : 0;
}

/* ---- two threads ------------------------------------------------------------------------------------------ */

/* Whether the other thread did its update. It cannot where a library lets one call in at a time: then nobody is held up
 * any more. */
static int other_goes_on(void)
{
    struct timespec until;
    int status;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    do {
        status = sem_timedwait(&gone_on, &until);
    } while (status != 0 && errno == EINTR);
    return status == 0;
}

int threads_fault(uintptr_t address)
{
    struct worker *w = worker_of_handler();
    if (w->closed == NULL || address - (uintptr_t)w->closed >= page_len()) {
        return 0;
    }
    (void)sem_post(&go_on);
    if (other_goes_on()) {
        w->num_beside++;
    } else {
        w->held_up = 0;
    }
    worker_open_page(w);
    return 1;
}

static uint8_t *room(uint64_t len)
{
    uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        shim_fail("no memory for THREADS: ask for fewer cases or raise the memory limit of the lane");
    }
    return p;
}

/* Both go on from here at once: a case takes microseconds, and is to meet another. */
static void meet(void)
{
    unsigned meeting = __atomic_load_n(&num_meetings, __ATOMIC_ACQUIRE), spins = 0;
    if (__atomic_add_fetch(&num_waiting, 1, __ATOMIC_ACQ_REL) == NUM_THREADS) {
        __atomic_store_n(&num_waiting, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&num_meetings, meeting + 1, __ATOMIC_RELEASE);
        return;
    }
    while (__atomic_load_n(&num_meetings, __ATOMIC_ACQUIRE) == meeting) {
        if (++spins > SPINS) {
            (void)sched_yield();
        }
    }
}

static void prepare_thread(struct worker *w)
{
    stack_t stack = {.ss_sp = w->signal_stack, .ss_size = SIGNAL_STACK_LEN};
    if (sigaltstack(&stack, NULL) != 0) {
        shim_fail("cannot set up a thread's signal stack");
    }
}

/* Does an update whenever the other thread is held up. */
static void serve(struct worker *w)
{
    uint64_t number = num_cases / 2;
    worker_begin_case(w, first_case + number);
    for (;;) {
        while (sem_wait(&go_on) != 0) {
        }
        if (__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
            return;
        }
        for (unsigned kind = OP_SETKEY, left = 64; kind != OP_UPDATE && left > 0; left--) {
            kind = worker_step(w);
            if (kind == 0) {
                worker_compare(w, &expected, DEPARTS_BESIDE);
                number = (number + 1) % num_cases;
                worker_begin_case(w, first_case + number);
            }
        }
        (void)sem_post(&gone_on);
    }
}

static void be_held_up(struct worker *w)
{
    for (uint64_t i = 0; i < num_cases; i++) {
        worker_run_case(w, first_case + i);
        worker_compare(w, &expected, DEPARTS_BESIDE);
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    (void)sem_post(&go_on);
}

/* Ends with the process: a thread that ends uses thread-local variables. */
static _Noreturn void rest(void)
{
    (void)sem_post(&finished);
    for (;;) {
        (void)pause();
    }
}

static void *work(void *argument)
{
    struct worker *w = argument;
    prepare_thread(w);
    if (w->number == 0) {
        be_held_up(w);
    } else {
        serve(w);
    }
    meet();
    w->held_up = 0;
    for (uint64_t round = 0; round < num_rounds; round++) {
        for (uint64_t i = 0; i < num_cases; i++) {
            meet();
            worker_run_case(w, first_case + (w->number == 0 ? i : (i + num_cases / 2 + round) % num_cases));
            worker_compare(w, &expected, DEPARTS_BESIDE);
        }
    }
    rest();
}

/* Nothing is left to be wrong with a case when threads run it. Returns the longest input or tag. */
static uint64_t check_cases(void)
{
    uint64_t most = 64;
    for (uint64_t index = first_case; index < first_case + num_cases; index++) {
        struct test_case c;
        const char *wrong = batch_case(index, &c);
        for (uint64_t i = 0; wrong == NULL && i < c.num_ops; i++) {
            struct op o;
            wrong = batch_op(c.first_op + i, &o);
            wrong = wrong != NULL ? wrong : batch_op_bounds(&o, &c);
            if (wrong == NULL && ((o.flags & FLAG_FEED) != 0 || o.aux0 > 1) && o.kind == OP_UPDATE) {
                wrong = "THREADS takes no operation that is fed or repeated";
            }
            most = o.in_len > most ? o.in_len : most;
        }
        if (wrong != NULL) {
            shim_fail(wrong);
        }
    }
    return most;
}

static void run_in_one(void)
{
    struct worker *w = &workers[0];
    struct outcome own = w->outcome;
    w->outcome = expected;
    for (uint64_t i = 0; i < num_cases; i++) {
        worker_run_case(w, first_case + i);
    }
    w->outcome = own;
    for (uint64_t i = num_cases; i-- > 0;) {
        worker_run_case(w, first_case + i);
        worker_compare(w, &expected, DEPARTS_AGAIN);
    }
}

static void run_in_two(void)
{
    pthread_t threads[NUM_THREADS];
    pthread_attr_t attributes;
    int failed = sem_init(&go_on, 0, 0) != 0 || sem_init(&gone_on, 0, 0) != 0 || sem_init(&finished, 0, 0) != 0;
    failed = failed || pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, STACK_LEN) != 0;
    workers[0].held_up = 1;
    over = 0;
    in_two = 1;
    for (unsigned i = 0; i < NUM_THREADS && !failed; i++) {
        failed = pthread_create(&threads[i], &attributes, work, &workers[i]) != 0;
    }
    if (failed) {
        shim_fail("the host grants no thread, which THREADS needs");
    }
    for (unsigned i = 0; i < NUM_THREADS; i++) {
        while (sem_wait(&finished) != 0) {
        }
    }
}

/* Both halves of what is placed here fit, and the border is a page's beginning. */
static struct room room_around(uint64_t len)
{
    uint64_t half = (len + page_len() - 1) / page_len() * page_len();
    uint8_t *start = room(2 * half);
    return (struct room){start, start + half};
}

static void prepare_workers(uint64_t most, struct threads_result *results)
{
    uint64_t outcome_len = batch.num_ops + batch.out_len;
    for (unsigned i = 0; i < NUM_THREADS; i++) {
        struct worker *w = &workers[i];
        memset(w, 0, sizeof *w);
        w->number = i;
        w->other = &workers[NUM_THREADS - 1 - i].progress;
        for (unsigned slot = 0; slot < NUM_SLOTS; slot++) {
            w->contexts[slot][0] = room_around(MAX_CONTEXT_LEN);
            w->contexts[slot][1] = room_around(MAX_CONTEXT_LEN);
        }
        w->signal_stack = room(SIGNAL_STACK_LEN);
        w->in = room_around(most);
        w->out = room_around(most);
        w->outcome.statuses = room(outcome_len);
        w->outcome.out = w->outcome.statuses + batch.num_ops;
        results[i] = (struct threads_result){.case_index = UINT64_MAX};
        w->result = &results[i];
    }
    expected.statuses = room(outcome_len);
    expected.out = expected.statuses + batch.num_ops;
}

/* What it maps and its threads stay, and thunks are off: after it the process is good for nothing but more of it. */
void threads_run(uint64_t first, uint64_t num, uint64_t rounds, struct threads_result *result)
{
    static struct threads_result results[NUM_THREADS];
    first_case = first;
    num_cases = num;
    num_rounds = rounds;
    in_two = 0;
    prepare_workers(check_cases(), results);
    subject_running = 1;
    run_in_one();
    uint64_t alone = threads_progress();
    if (results[0].case_index == UINT64_MAX) {
        workers[0].num_beside = 0;
        run_in_two();
    }
    for (unsigned i = 0; i < NUM_THREADS * NUM_SLOTS; i++) {
        driver_end(&workers[i / NUM_SLOTS].held[i % NUM_SLOTS]);
    }
    subject_running = 0;
    *result = results[results[0].case_index != UINT64_MAX ? 0 : 1];
    result->num_calls = threads_progress() - alone;
    result->num_beside = workers[0].num_beside + workers[1].num_beside;
}
