/* small_files.h - many small files read from one directory, or written into some, in one call. */
#ifndef RDC_SMALL_FILES_H
#define RDC_SMALL_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "depth/rows_at_once.h"

/* A temporary's name (rdc/files/base/paths.py) and its NUL. */
#define RDC_TEMPORARY_SIZE 26

/* Columns are little-endian as in a PackedListing (rdc/model/entries.py), and need not be aligned. */
typedef struct {
    size_t count;      /* files */
    const char *names; /* each followed by NUL: single components */
    const uint8_t *sizes;  /* u64 */
    const uint8_t *mtimes; /* i64, nanoseconds */
} rdc_small_files;

typedef struct {
    const uint8_t *modes; /* u16 */
    const uint8_t *uids;  /* u32 */
    const uint8_t *gids;  /* u32 */
    int owner;            /* whether uids and gids are set */
} rdc_ownership;

/* What is to be replaced, as it was when it was looked at, in this machine's order; times in nanoseconds. */
typedef struct {
    const uint64_t *devices, *inodes, *sizes;
    const int64_t *mtimes, *ctimes;
    unsigned fields; /* which of them count: RDC_INODE and the others */
} rdc_expected;

/* The bits of ComparedFields (rdc/model/entries.py); a test compares them. Devices count with inodes. */
enum { RDC_INODE = 1, RDC_MTIME = 2, RDC_CTIME = 4, RDC_BYTES = 8 };

/* In place of the descriptor of a file that was not written because another one than expected is there. */
#define RDC_NOT_EXPECTED (-2)

/*
 * `directory`: an open descriptor, O_PATH is enough.
 *
 * Reads the files that are still as listed: regular, with that size and mtime before and after, and nothing about
 * them changed meanwhile. Their contents go to `content`, which has room for all sizes, one after the other;
 * good[i] says whether file i is among them. Returns the bytes that were read. One file at a time: for several there is
 * bulk/opened_files.h.
 */
size_t rdc_read_small(int directory, const rdc_small_files *files, uint8_t *content, uint8_t *good, rdc_rows_seen *seen);

/*
 * Writes each file under a new temporary name in its directory, locked, with its final metadata: what a Replacement
 * (rdc/files/replace/replacement.py) does. `directories`: an open descriptor a file, O_PATH is enough. `random`: 4 bytes a file.
 * fds[i] stays open, or is -1 where file i failed, of which nothing is left; temporaries[i] is its name. `expected`:
 * NULL, or what each file is to replace; where something else is there now, fds[i] is RDC_NOT_EXPECTED. `hole`:
 * bytes of the shortest run of zeros, in whole blocks, that becomes a hole; 0: none does. `depth`: files in work at a
 * time. Returns 0 if there was no memory, and nothing was done then.
 */
int rdc_stage_small(const int32_t *directories, const rdc_small_files *files, const rdc_ownership *ownership,
                     const rdc_expected *expected, const uint8_t *content, uint64_t hole, const uint8_t *random, int32_t *fds,
                     char (*temporaries)[RDC_TEMPORARY_SIZE], unsigned depth, rdc_rows_seen *seen);

/*
 * Renames each staged file to its own name: unless something is there, or, with `expected`, while just that is there,
 * a regular file without further names. errors[i] is 0 or an errno, and the temporary then still has its name. Files
 * whose fd is negative are passed over. `depth`: files in work at a time. Returns 0 if there was no memory, and nothing
 * was done then.
 */
int rdc_rename_small(const int32_t *directories, size_t count, const char *temporaries, const char *names,
                     const int32_t *fds, const rdc_expected *expected, int32_t *errors, unsigned depth,
                     rdc_rows_seen *seen);

#endif
