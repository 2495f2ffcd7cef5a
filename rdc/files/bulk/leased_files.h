/* leased_files.h - many files under read leases: compared with others, and taken from their names. */
#ifndef RDC_LEASED_FILES_H
#define RDC_LEASED_FILES_H

#include <stddef.h>
#include <stdint.h>

/* What fstat says of a file once its lease is held, in this machine's order; rdc/files/names/leased_files.py unpacks it. */
typedef struct {
    uint64_t device, inode;
    int64_t size;
    int64_t mtime, mtime_part, ctime, ctime_part, atime, atime_part; /* seconds, and nanoseconds */
    int64_t mode, uid, gid, links;
    int64_t allocated;  /* bytes */
    int64_t plain;      /* 1: all its blocks are its own alone, and none is compressed; 0: they are, or it is not known */
    int64_t attributes; /* where its extended attributes end in the buffer of all */
} rdc_leased;

/* Extended attributes of all files: of each, for each attribute its name with a NUL, an i32 of this machine, and as many
 * bytes of value. */
typedef struct {
    uint8_t *data;
    size_t size, room;
} rdc_attributes;

/* In place of an errno: no regular file, or one with more attributes than are taken here. */
#define RDC_SINGLY (-1)

/*
 * Opens each name in its directory (O_PATH is enough) without following a link, takes a read lease on it, and reads what
 * `files` has. errors[i] is 0, an errno, or RDC_SINGLY; then fds[i] is -1. Returns 0 if there was no memory.
 */
int rdc_lease_files(const int32_t *directories, const char *names, size_t count, int32_t *fds, int32_t *errors,
                    rdc_leased *files, rdc_attributes *attributes);

/*
 * equal[i] says whether file i has these `size` bytes, was read whole, and nobody asked to write to it by then. Returns 0
 * if there was no memory.
 */
int rdc_compare_files(const int32_t *fds, size_t count, const uint8_t *content, size_t size, uint8_t *equal);

/* Names that leave their files, and all the files they concern. */
typedef struct {
    size_t count;                /* names */
    const int32_t *directories;  /* of each name */
    const char **names;
    const char **displaced;      /* the name beside it that its file gets */
    const uint32_t *files;       /* which file has the name */
    const uint32_t *originals;   /* which file has the same content, and stays */
    const int32_t *original_directories;
    const char **original_names;
    int exchange;                /* 1: the name becomes one of the original's; 0: it goes */
    const int32_t *fds;          /* of the files */
    const rdc_leased *leased;
    const uint8_t *attributes;   /* of all files, as rdc_lease_files found them */
    const uint8_t *firsts;       /* 1: no name of its file was changed since the lease, so even the ctime must be as it was */
} rdc_departures;

/* Outcomes, which rdc/files/names/leased_files.py has as well. */
enum {
    RDC_DONE = 0,      /* the step was taken, and both files are as they were compared */
    RDC_UNTOUCHED = 1, /* nothing was changed */
    RDC_UNLIKE = 2,    /* the name was taken from its file, but one of the two is not as it was compared */
};

/*
 * Takes each name from its file, as rdc/files/names/name_change.py does: checks both files, renames without
 * overwriting or links and exchanges, and checks them again. Returns 0 if there was no memory.
 */
int rdc_displace_files(const rdc_departures *names, uint8_t *outcomes);

/* Checks once more, and removes what was displaced. RDC_UNTOUCHED: it is still there. Returns 0 if there was no memory. */
int rdc_remove_displaced(const rdc_departures *names, uint8_t *outcomes);

#endif
