/*
 * read_small.c - many small files of one directory into one buffer.
 *
 * What does not go well here is not explained here: the caller reads such a file again on its own, and that way has
 * the errors, the exit codes and the case of a file that was changed since it was listed.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "bulk/small_files.h"

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bulk/column.h"
#include "base/file_clock.h"
#include "depth/rows_at_once.h"

/* O_NONBLOCK: opening a fifo that took the file's place must not wait for a writer. */
#define READING (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

static int as_listed(const struct stat *found, uint64_t size, int64_t mtime)
{
    int64_t seconds = mtime / 1000000000, rest = mtime % 1000000000;
    if (rest < 0) {
        seconds--;
        rest += 1000000000;
    }
    return S_ISREG(found->st_mode) && (uint64_t)found->st_size == size && found->st_mtim.tv_sec == seconds &&
           found->st_mtim.tv_nsec == rest;
}

/* ctime counts: it cannot be set back, where a program can restore an mtime after writing. */
static int unchanged(const struct stat *then, const struct stat *now)
{
    return then->st_size == now->st_size && then->st_mtim.tv_sec == now->st_mtim.tv_sec &&
           then->st_mtim.tv_nsec == now->st_mtim.tv_nsec && then->st_ctim.tv_sec == now->st_ctim.tv_sec &&
           then->st_ctim.tv_nsec == now->st_ctim.tv_nsec;
}

static int read_whole(int fd, uint8_t *to, uint64_t size)
{
    while (size) {
        ssize_t got = read(fd, to, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return 0;
        to += got;
        size -= (uint64_t)got;
    }
    return 1;
}

typedef struct {
    int directory;
    const rdc_small_files *files;
    const char *name; /* of the next file */
    uint8_t *content, *good;
    size_t filled;
    rdc_rows_seen *seen;
} reading;

static void read_next(void *context, size_t row)
{
    reading *r = context;
    const uint64_t size = column_u64(r->files->sizes, row);
    const char *name = r->name;
    struct stat before, after;
    int fd;

    r->name += strlen(name) + 1;
    r->good[row] = 0;
    do
        fd = openat(r->directory, name, READING);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        rdc_note_errno(r->seen);
        return;
    }
    if (!fstat(fd, &before) && as_listed(&before, size, (int64_t)column_u64(r->files->mtimes, row))) {
        rdc_note_nap(r->seen, rdc_outlast(before.st_ctim));
        r->good[row] = read_whole(fd, r->content + r->filled, size) && !fstat(fd, &after) && unchanged(&before, &after);
    }
    close(fd);
    if (r->good[row])
        r->filled += size;
}

size_t rdc_read_small(int directory, const rdc_small_files *files, uint8_t *content, uint8_t *good, rdc_rows_seen *seen)
{
    reading r = {directory, files, files->names, content, good, 0, seen};

    rdc_rows_at_once(files->count, 1, read_next, &r, seen);
    return r.filled;
}

#endif
