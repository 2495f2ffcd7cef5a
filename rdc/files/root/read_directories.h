/* read_directories.h - directories of a walk, one after another, in one set of columns. */
#ifndef RDC_READ_DIRECTORIES_H
#define RDC_READ_DIRECTORIES_H

#include "root/read_directory.h"

/* Where a run of directories ends; rdc/files/root/lister.py has the same numbers, a test compares them. */
#define RDC_RUN_DIRECTORIES 64
#define RDC_RUN_ROWS 4096
#define RDC_RUN_PATHS (1 << 20) /* bytes of the paths of directories to come */
#define RDC_RUN_SLOW 8          /* directories whose calls made it wait */
#define RDC_PATH_MOST 2048      /* bytes of a path that needs no check of its depth */

/* Bytes that grow at their end. */
typedef struct {
    uint8_t *at;
    size_t size, room;
} rdc_grown;

/* The columns of ListedDirectories (rdc/model/entries.py), numbers little-endian. */
enum {
    RDC_NAMES,
    RDC_KINDS,
    RDC_MODES,
    RDC_SIZES,
    RDC_MTIMES,
    RDC_UIDS,
    RDC_GIDS,
    RDC_TARGETS,
    RDC_DEVICES,
    RDC_INODES,
    RDC_LINKS,
    RDC_ALLOCATED,
    RDC_CTIMES,
    RDC_PATHS,
    RDC_TEXT,
    RDC_FIRST_ROWS,
    RDC_FIRST_NAMES,
    RDC_FIRST_TARGETS,
    RDC_RUN_COLUMNS
};

typedef struct {
    rdc_grown columns[RDC_RUN_COLUMNS];
    rdc_grown todo; /* paths of the directories to come, the next one last, each followed by NUL */
    size_t directories, rows;
    rdc_grown alone_path;
    rdc_entries alone; /* of the directory after these, if it is `has_alone` */
    int has_alone;
    int error; /* errno of the next directory, which is in `todo`; 0 for none */
    /* Of all directories that were read, the one alone included. */
    size_t looked, slow;
    uint64_t waited, elapsed; /* nanoseconds: of a mean call each, and of all calls */
    rdc_rows_seen seen;
} rdc_run;

/*
 * Reads the directories of `todo` below the one open at `directory`, from the last one on, and those in them before
 * others. Only plain ones join the columns: no name in them is reserved, no entry bad or special, no time distant, no
 * directory of another file system, and they have at most RDC_RUN_ROWS entries. Any other one ends the run and is `alone`; its subdirectories do not join
 * `todo`. `limit`, `depth` and `most`: as for rdc_read_directory. Returns 0, or ENOMEM. Free `run` in either case.
 */
int rdc_read_directories(int directory, size_t limit, unsigned depth, unsigned most, rdc_run *run);

/* Appends. Returns 0 or ENOMEM. */
int rdc_grow(rdc_grown *grown, const void *bytes, size_t size);

void rdc_run_free(rdc_run *run);

#endif
