/* opened_files.h - many small files of one tree: opened together, then read, then given their metadata. */
#ifndef RDC_OPENED_FILES_H
#define RDC_OPENED_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "depth/rows_at_once.h"

/* What fstat says of each file, in this machine's order; times in nanoseconds. Zeros for one that is not open. */
typedef struct {
    uint64_t *devices, *inodes, *sizes;
    int64_t *mtimes, *ctimes;
} rdc_opened_facts;

/* What files are to have: little-endian columns as in a manifest (rdc/tree/manifest.py), and which row each file is. */
typedef struct {
    const uint64_t *rows;
    const uint8_t *modes;  /* u16 */
    const uint8_t *mtimes; /* i64, nanoseconds */
    const uint8_t *uids;   /* u32 */
    const uint8_t *gids;   /* u32 */
    int owner;             /* whether uids and gids are set */
} rdc_wanted_metadata;

/* Outcomes of rdc_set_metadata_of_files; rdc/files/bulk/open_many.py has the same. */
enum { RDC_METADATA_FAILED = 0, RDC_METADATA_SET = 1, RDC_FILE_CHANGED = 2 };

/*
 * Opens `count` regular files below the directory open (also with O_PATH) at `directory`. `paths` are relative, single
 * names joined by single slashes, each path followed by NUL. fds[i] is -1 where that failed, or found something else.
 * No link is followed, on the way neither, and no fifo waited for. `depth`: files in work at a time, of each function
 * here. Returns 0 if there was no memory, and nothing was done then.
 */
int rdc_open_files(int directory, const char *paths, size_t count, int32_t *fds, const rdc_opened_facts *facts,
                   unsigned depth, rdc_rows_seen *seen);

/*
 * Reads the files whose fd is not -1: sizes[i] bytes of each. good[i] says whether that is all of it and its mtime and
 * ctime are still those given; the contents of the good ones go to `content` one after the other. `content` has room for
 * all sizes. Returns the bytes, or SIZE_MAX if there was no memory.
 */
size_t rdc_read_files(const int32_t *fds, size_t count, const uint64_t *sizes, const int64_t *mtimes,
                      const int64_t *ctimes, uint8_t *content, uint8_t *good, unsigned depth, rdc_rows_seen *seen);

/*
 * Gives the files whose fd is not -1 the metadata in `wanted`: only what differs is set, and only on a file whose
 * ctime is the one given, which is to say that nothing about it was changed since. Another mtime is not set on a file
 * with several names, which may be to keep the one they have: that is RDC_METADATA_FAILED.
 */
void rdc_set_metadata_of_files(const int32_t *fds, size_t count, const int64_t *ctimes, const rdc_wanted_metadata *wanted,
                      uint8_t *outcomes, unsigned depth, rdc_rows_seen *seen);

#endif
