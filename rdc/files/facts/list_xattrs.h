/* list_xattrs.h - which of a directory's entries have extended attributes, and what one of them is. */
#ifndef RDC_LIST_XATTRS_H
#define RDC_LIST_XATTRS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* An entry that has any, or of which that cannot be told. */
typedef struct {
    uint64_t row;
    uint32_t size; /* bytes of its attributes' names, each followed by NUL */
    int error;     /* an errno, and the size is 0; or 0 */
} rdc_listed;

typedef struct {
    rdc_listed *rows;
    size_t count, rows_room;
    char *names; /* of all rows, one after the other */
    size_t size, names_room;
    uint64_t next_row; /* where the call stopped: a row, and the offset of its name */
    size_t next_offset;
} rdc_listed_entries;

/* Both calls without a followed link, by a directory's descriptor (also with O_PATH) and a name in it: 1 where the
 * kernel has them (Linux 6.13) and nothing forbids them. */
int rdc_xattrs_go_by_name(void);

/*
 * Lists the attributes of the entries of `directory` whose names, each followed by NUL, are in entries[offset, size);
 * the first of them is row `row`. Rows without attributes, and those of file systems that keep none, are left out.
 * With `by_name` through listxattrat, else through paths below /proc/self/fd. Stops before the end once it holds
 * `limit` bytes. Returns 0, or ENOMEM with nothing to free.
 */
int rdc_list_xattrs(int directory, const char *entries, size_t size, uint64_t row, size_t offset, size_t limit,
                    int by_name, rdc_listed_entries *listed);

/* Frees what rdc_list_xattrs filled in. */
void rdc_listed_free(rdc_listed_entries *listed);

/* getxattrat of an entry, its own if it is a link: bytes of the value, which are at `value`, or -1 with errno; ERANGE
 * if they are more than `size`. */
ssize_t rdc_get_xattr(int directory, const char *entry, const char *attribute, char *value, size_t size);

#endif
