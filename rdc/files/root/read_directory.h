/* read_directory.h - one directory's entries, with their metadata, as sorted packed columns. */
#ifndef RDC_READ_DIRECTORY_H
#define RDC_READ_DIRECTORY_H

#include <stddef.h>
#include <stdint.h>

#include "depth/rows_at_once.h"

/* What reading a directory may hold is counted as this many bytes an entry, besides its name and link target. */
#define RDC_ENTRY_BYTES 160

/* Values of Kind in rdc/model/entries.py; a test compares them. */
enum { RDC_FILE = 0, RDC_DIRECTORY = 1, RDC_SYMLINK = 2, RDC_SPECIAL = 3 };

/* Why an entry is in no column: values of BadCall in rdc/model/entries.py; a test compares them. */
enum { RDC_BAD_NAME = 0, RDC_BAD_STAT = 1, RDC_BAD_LINK = 2, RDC_BAD_KIND = 3 };

/* An entry that is there and could not be looked at. */
typedef struct {
    int error; /* an errno */
    uint8_t call, is_directory;
} rdc_bad_entry;

/* A time that 64 bits of nanoseconds cannot hold; its column has the nearest that they can. */
typedef struct {
    int64_t seconds;
    uint32_t rest, row; /* nanoseconds of that second; row of the columns */
} rdc_distant_time;

typedef struct {
    rdc_distant_time *times;
    size_t count;
} rdc_distant_times;

/* The columns of a PackedListing and of PackedInodes (rdc/model/entries.py), little-endian, `count` rows each. */
typedef struct {
    size_t count;
    uint8_t *names, *targets, *temporaries, *bad_names; /* strings, each followed by NUL */
    size_t names_size, link_bytes, temporaries_size, bad_names_size;
    uint64_t *sizes; /* one allocation with the columns below */
    uint64_t *mtimes;
    uint32_t *uids;
    uint32_t *gids;
    uint16_t *modes;
    uint8_t *kinds;
    uint64_t *devices; /* from here on of PackedInodes */
    uint64_t *inodes;
    uint64_t *allocated;
    uint64_t *ctimes;
    uint32_t *links;
    rdc_bad_entry *bad; /* in the order of `bad_names` */
    size_t bad_count;
    rdc_distant_times distant_mtimes, distant_ctimes; /* by increasing row */
} rdc_entries;

/*
 * Reads the directory open at fd from its beginning. Entries are sorted by the bytes of their names, each once; those
 * that vanish between the reading of their name and their stat are left out. Reserved names
 * (rdc/files/base/paths.py) are in `temporaries`, and entries that cannot be looked at in `bad`; neither are
 * in a column. Returns 0, or an errno with nothing to free: EOVERFLOW when more than `limit` (at most 2^32 - 1) bytes
 * would have to be held, and what `fstatat` says of the directory itself where entries could not be looked at because
 * of it. `depth`: entries that are looked at at a time; doubled up to `most` while they wait. `seen`: of the looks
 * before the first doubling, without rows for a small directory; what elapsed is of the whole call.
 */
int rdc_read_directory(int fd, size_t limit, rdc_entries *entries, unsigned depth, unsigned most,
                       rdc_rows_seen *seen);

/* Frees what rdc_read_directory filled in. */
void rdc_entries_free(rdc_entries *entries);

#endif
