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

/* The columns of a PackedListing and of PackedInodes (rdc/model/entries.py), little-endian, `count` rows each. */
typedef struct {
    size_t count;
    uint8_t *names, *targets, *temporaries; /* strings, each followed by NUL */
    size_t names_size, link_bytes, temporaries_size;
    uint64_t *sizes; /* one allocation with the columns below */
    uint64_t *mtimes;
    uint32_t *uids;
    uint32_t *gids;
    uint16_t *modes;
    uint8_t *kinds;
    /* The columns of PackedInodes, in the same allocation. */
    uint64_t *devices;
    uint64_t *inodes;
    uint64_t *allocated;
    uint64_t *ctimes;
    uint32_t *links;
} rdc_entries;

/*
 * Reads the directory open at fd from its beginning. Entries are sorted by the bytes of their names, each once; those
 * that vanish between the reading of their name and their stat are left out. With `part_temporaries`,
 * reserved names (rdc/files/base/temporary_names.py) are in `temporaries` and in no column. Returns 0, or an errno with nothing to free: ENAMETOOLONG for
 * a name of more than 255 bytes, EOVERFLOW when more than `limit` (at most 2^32 - 1) bytes would have to be held.
 * `depth`: entries that are looked at at a time; doubled up to `most` while they wait. `seen`: of the looks before
 * the first doubling, without rows for a small directory; what elapsed is of the whole call.
 */
int rdc_read_directory(int fd, size_t limit, int part_temporaries, rdc_entries *entries, unsigned depth,
                       unsigned most, rdc_rows_seen *seen);

/* Frees what rdc_read_directory filled in. */
void rdc_entries_free(rdc_entries *entries);

#endif
