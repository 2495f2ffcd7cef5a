/* rows_at_once.h - the same work for each of many rows, several of them at a time. */
#ifndef RDC_ROWS_AT_ONCE_H
#define RDC_ROWS_AT_ONCE_H

#include <stddef.h>
#include <stdint.h>

/* As in rdc/limits.py, a test compares them. */
#define RDC_DEPTH_LIMIT 64

/* As in rdc/files/depth/__init__.py, a test compares them. */
#define RDC_WAIT_NANOSECONDS 100000

/* What rdc/files/depth/__init__.py decides by. */
typedef struct {
    uint64_t rows;        /* all rows */
    uint64_t own_rows;    /* rows that the calling thread did */
    uint64_t waited;      /* nanoseconds that the calling thread waited in them; 0 where it waited for a processor alone */
    uint64_t elapsed;     /* nanoseconds from the first row to the end of the last */
    uint64_t napped;      /* nanoseconds of `waited` in which a row waited for a clock; they do not count */
    int no_descriptor;    /* a row found none free */
    int no_thread;        /* the system refused one; the others did the work */
} rdc_rows_seen;

typedef void (*rdc_row_work)(void *context, size_t row);

/*
 * Calls work(context, row) once for each of `count` rows, up to `depth` of them at a time, the calling thread's own
 * included. Each thread takes the next row when it has done one, so that a slow one holds up no others. With a depth
 * of 1 no thread is started, and rows are done in order. Returns when all are done. Signals go to other threads.
 */
void rdc_rows_at_once(size_t count, unsigned depth, rdc_row_work work, void *context, rdc_rows_seen *seen);

/*
 * The same for rows of which there may be no more in a later call: while they wait, *depth is doubled up to `most`.
 * `seen` counts the rows before the first doubling only, whose depth the caller chose.
 */
void rdc_rows_deepening(size_t count, unsigned *depth, unsigned most, rdc_row_work work, void *context,
                        rdc_rows_seen *seen);

/* Nanoseconds since some moment. */
uint64_t rdc_steady_clock(void);

/* For `work`, in any thread: notes that it waited for a clock. */
void rdc_note_nap(rdc_rows_seen *seen, uint64_t nanoseconds);

/* For `work`, in any thread: notes that errno says that no descriptor is free. */
void rdc_note_errno(rdc_rows_seen *seen);

#endif
