/* read_contents.h - the content, or both ends of it, of many files of one tree. */
#ifndef RDC_READ_CONTENTS_H
#define RDC_READ_CONTENTS_H

#include <stddef.h>
#include <stdint.h>

#include "depth/rows_at_once.h"

/* Outcomes besides 0 and an errno; rdc/files/bulk/open_many.py has the same, a test compares them. */
enum {
    RDC_REPLACED = -1, /* not the regular file that was listed */
    RDC_RESIZED = -2,  /* its size was another one when it was opened */
    RDC_TOUCHED = -3,  /* it changed while it was read */
};

/* One file that is asked for, as it was listed; packed little-endian in this order. */
typedef struct {
    uint64_t device, inode, size;
} rdc_wanted;

/* Bytes that are read of a file of this size: all of it, or `head` from its start and `tail` from its end. */
uint64_t rdc_content_bytes(uint64_t size, uint64_t head, uint64_t tail);

/*
 * Reads `count` files below the directory open (also with O_PATH) at `directory` into `out`, one after the other,
 * rdc_content_bytes of each; where that fails, its bytes of `out` are undefined. `paths` are relative, single names
 * joined by single slashes, each path followed by NUL. outcomes[i] is 0, an errno or one of the above; where it is 0,
 * ctimes[i] is the file's ctime in nanoseconds. No link is followed, on the way neither, and no fifo waited for.
 * `depth`: files in work at a time, doubled up to `most` while they wait. Returns 0 if there was no memory, and nothing
 * was done then.
 */
int rdc_read_contents(int directory, const char *paths, const rdc_wanted *wanted, size_t count, uint64_t head,
                      uint64_t tail, uint8_t *out, int32_t *outcomes, int64_t *ctimes, unsigned depth, unsigned most,
                      rdc_rows_seen *seen);

#endif
