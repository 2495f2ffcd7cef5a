/*
 * rows_at_once.c - the same work for each of many rows, several of them at a time.
 *
 * Threads live for one call. To start one takes some 20 us, which is little beside what it waits for: there is none
 * unless rows were seen to wait (rdc/files/depth/__init__.py).
 */
#define _GNU_SOURCE
#include "depth/rows_at_once.h"

#ifdef __linux__

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

#define STACK_SIZE ((size_t)256 << 10) /* what a row needs is below 16 KiB; sanitizers need more */
#define WINDOW_ROWS 64 /* after so many rows a thread it is looked at how long they took */
#define ROWS_A_WAIT 16 /* a disk reads so many inodes together, so that one in so many rows waits */

typedef struct {
    rdc_row_work work;
    void *context;
    size_t count;
    atomic_size_t next;
} job;

static uint64_t nanoseconds(clockid_t clock)
{
    struct timespec now = {0, 0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* How often this thread gave up its processor by itself. */
static long waits(void)
{
    struct rusage used;
    return getrusage(RUSAGE_THREAD, &used) ? 0 : used.ru_nvcsw;
}

static size_t do_rows(job *all)
{
    size_t done = 0;
    for (size_t row; (row = atomic_fetch_add(&all->next, 1)) < all->count; done++)
        all->work(all->context, row);
    return done;
}

static void *run(void *argument)
{
    do_rows(argument);
    return NULL;
}

/* Starts up to `most` threads, which take no signals: those are for threads that know what to do. Returns how many. */
static size_t start(pthread_t *threads, size_t most, job *all)
{
    pthread_attr_t attributes;
    sigset_t every, before;
    size_t started = 0;

    if (pthread_attr_init(&attributes))
        return 0;
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    while (started < most && !pthread_create(threads + started, &attributes, run, all))
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

void rdc_rows_at_once(size_t count, unsigned depth, rdc_row_work work, void *context, rdc_rows_seen *seen)
{
    job all = {work, context, count, 0};
    pthread_t threads[RDC_DEPTH_LIMIT];
    const size_t most = depth < RDC_DEPTH_LIMIT ? depth : RDC_DEPTH_LIMIT;
    size_t wanted = count < most ? count : most, started = 0;
    const uint64_t begun = nanoseconds(CLOCK_MONOTONIC);

    wanted = wanted > 1 ? wanted - 1 : 0;
    if (wanted)
        started = start(threads, wanted, &all);
    seen->no_thread = started < wanted;

    seen->rows = count;
    const long waits_before = waits();
    const uint64_t own = nanoseconds(CLOCK_MONOTONIC), worked = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    seen->own_rows = do_rows(&all);
    const uint64_t wall = nanoseconds(CLOCK_MONOTONIC) - own, cpu = nanoseconds(CLOCK_THREAD_CPUTIME_ID) - worked;
    /* A thread whose processor another one took has waited, but not for storage. */
    const int waited = (uint64_t)(waits() - waits_before) * ROWS_A_WAIT >= seen->own_rows;

    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    seen->elapsed = nanoseconds(CLOCK_MONOTONIC) - begun;
    seen->waited = waited && wall > cpu + seen->napped ? wall - cpu - seen->napped : 0;
}

uint64_t rdc_steady_clock(void)
{
    return nanoseconds(CLOCK_MONOTONIC);
}

static void add_seen(rdc_rows_seen *sum, const rdc_rows_seen *seen)
{
    sum->rows += seen->rows;
    sum->own_rows += seen->own_rows;
    sum->waited += seen->waited;
    sum->elapsed += seen->elapsed;
    sum->no_descriptor |= seen->no_descriptor;
    sum->no_thread |= seen->no_thread;
}

/* Some rows of a job, counted from 0. */
typedef struct {
    rdc_row_work work;
    void *context;
    size_t first;
} window;

static void do_row_of_window(void *context, size_t row)
{
    const window *w = context;
    w->work(w->context, w->first + row);
}

void rdc_rows_deepening(size_t count, unsigned *depth, unsigned most, rdc_row_work work, void *context,
                        rdc_rows_seen *seen)
{
    int deeper = 0;

    for (size_t done = 0; done < count;) {
        const size_t some = *depth < most && count - done > WINDOW_ROWS * *depth ? WINDOW_ROWS * *depth : count - done;
        window w = {work, context, done};
        rdc_rows_seen part = {0};

        rdc_rows_at_once(some, *depth, do_row_of_window, &w, &part);
        done += some;
        if (!deeper)
            add_seen(seen, &part);
        if (part.waited > RDC_WAIT_NANOSECONDS * part.own_rows && 2 * *depth <= most && !part.no_thread) {
            *depth *= 2;
            deeper = 1;
        }
    }
}

void rdc_note_nap(rdc_rows_seen *seen, uint64_t nanoseconds)
{
    if (nanoseconds)
        __atomic_fetch_add(&seen->napped, nanoseconds, __ATOMIC_RELAXED);
}

void rdc_note_errno(rdc_rows_seen *seen)
{
    if (errno == EMFILE || errno == ENFILE)
        __atomic_store_n(&seen->no_descriptor, 1, __ATOMIC_RELAXED);
}

#endif
