/*
 * opened_files.c - many small files of one tree: opened together, then read, then given their metadata.
 *
 * What does not go well here is not explained here: the caller does such a file again by itself, and that way has the
 * errors. A file stays open from the look at it to the setting of its times: what is set is set on the very file whose
 * content was read, whatever has its name by then.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "bulk/opened_files.h"

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bulk/column.h"
#include "base/nanoseconds.h"
#include "root/open_beneath.h"
#include "base/file_clock.h"

#define PARENT_MOST 4000 /* bytes of a directory's path; names in one with a longer path are opened by their own */

/* O_NONBLOCK: opening a fifo that took the file's place must not wait for a writer. */
#define READ_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* A directory that several paths in a row have: in it a name is found without a walk from the top. */
typedef struct {
    char path[PARENT_MOST + 1];
    size_t length;
    int fd; /* -1: there is none */
} parent;

/* Whether `path` is a name in the directory whose path has `length` bytes. */
static int is_in(const char *path, const char *directory, size_t length)
{
    return !strncmp(path, directory, length) && path[length] == '/' && !strchr(path + length + 1, '/');
}

/* Where that cannot be opened, the whole path is left to fail or not. */
static void open_parent(parent *above, int directory, const char *path, const char *next)
{
    const char *const slash = strrchr(path, '/');
    const size_t length = slash ? (size_t)(slash - path) : 0;

    if (above->fd >= 0)
        close(above->fd);
    above->fd = -1;
    if (!length || length > PARENT_MOST || !next || !is_in(next, path, length))
        return;
    memcpy(above->path, path, length);
    above->path[length] = 0;
    above->length = length;
    above->fd = rdc_open_beneath(directory, above->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

typedef struct {
    int directory;
    const char **paths; /* one more than files: NULL after the last */
    parent *above;      /* NULL where several are opened at a time: each goes its own way from the top */
    int32_t *fds;
    const rdc_opened_facts *facts;
    rdc_rows_seen *seen;
} opening;

static int open_in_parent(const opening *o, size_t row)
{
    const char *path = o->paths[row];

    if (!o->above)
        return rdc_open_beneath(o->directory, path, READ_FLAGS);
    if (o->above->fd < 0 || !is_in(path, o->above->path, o->above->length))
        open_parent(o->above, o->directory, path, o->paths[row + 1]);
    return o->above->fd < 0 ? rdc_open_beneath(o->directory, path, READ_FLAGS)
                            : rdc_open_beneath(o->above->fd, path + o->above->length + 1, READ_FLAGS);
}

static void open_row(void *context, size_t row)
{
    const opening *o = context;
    struct stat found;
    int fd = open_in_parent(o, row);

    if (fd < 0)
        rdc_note_errno(o->seen);
    else if (fstat(fd, &found) || !S_ISREG(found.st_mode)) {
        close(fd);
        fd = -1;
    }
    o->fds[row] = fd < 0 ? -1 : fd;
    if (fd < 0)
        memset(&found, 0, sizeof found);
    else
        rdc_note_nap(o->seen, rdc_outlast(found.st_ctim));
    o->facts->devices[row] = (uint64_t)found.st_dev;
    o->facts->inodes[row] = (uint64_t)found.st_ino;
    o->facts->sizes[row] = (uint64_t)found.st_size;
    o->facts->mtimes[row] = rdc_nanoseconds(found.st_mtim);
    o->facts->ctimes[row] = rdc_nanoseconds(found.st_ctim);
}

int rdc_open_files(int directory, const char *paths, size_t count, int32_t *fds, const rdc_opened_facts *facts,
                   unsigned depth, rdc_rows_seen *seen)
{
    parent above = {.fd = -1};
    const char **starts = malloc((count + 1) * sizeof *starts);
    opening o = {directory, starts, depth > 1 ? NULL : &above, fds, facts, seen};

    if (!starts)
        return 0;
    for (size_t i = 0; i < count; i++, paths += strlen(paths) + 1)
        starts[i] = paths;
    starts[count] = NULL;
    rdc_rows_at_once(count, depth, open_row, &o, seen);
    if (above.fd >= 0)
        close(above.fd);
    free(starts);
    return 1;
}

static int read_whole(int fd, uint8_t *to, uint64_t size)
{
    uint64_t at = 0;

    while (at < size) {
        ssize_t got = pread(fd, to + at, size - at, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return 0;
        at += (uint64_t)got;
    }
    return 1;
}

typedef struct {
    const int32_t *fds;
    const uint64_t *sizes;
    const int64_t *mtimes, *ctimes;
    uint8_t **targets; /* where the content of each file goes, whatever becomes of the others */
    uint8_t *good;
} reading;

static void read_row(void *context, size_t row)
{
    const reading *r = context;
    struct stat after;

    /* ctime counts: it cannot be set back, where a program can restore an mtime after writing. */
    r->good[row] = r->fds[row] >= 0 && read_whole(r->fds[row], r->targets[row], r->sizes[row]) &&
                   !fstat(r->fds[row], &after) && (uint64_t)after.st_size == r->sizes[row] &&
                   rdc_nanoseconds(after.st_mtim) == r->mtimes[row] && rdc_nanoseconds(after.st_ctim) == r->ctimes[row];
}

size_t rdc_read_files(const int32_t *fds, size_t count, const uint64_t *sizes, const int64_t *mtimes,
                      const int64_t *ctimes, uint8_t *content, uint8_t *good, unsigned depth, rdc_rows_seen *seen)
{
    reading r = {fds, sizes, mtimes, ctimes, malloc((count + 1) * sizeof *r.targets), good};
    size_t at = 0, filled = 0;

    if (!r.targets)
        return SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        r.targets[i] = content + at;
        at += fds[i] >= 0 ? sizes[i] : 0;
    }
    rdc_rows_at_once(count, depth, read_row, &r, seen);
    for (size_t i = 0; i < count; i++) {
        if (!good[i])
            continue;
        if (r.targets[i] != content + filled)
            memmove(content + filled, r.targets[i], sizes[i]);
        filled += sizes[i];
    }
    free(r.targets);
    return filled;
}

/* Owner and mode in the order of metadata.py: where the owner changes, first without what the new mode does not let
 * group and others do; then chown, which clears setuid and setgid bits; then the new mode. The mtime before all of
 * them: a write between the look at the file and this would not be seen any more. */
static int set_metadata(int fd, const struct stat *now, const rdc_wanted_metadata *wanted, size_t row)
{
    const uint32_t uid = column_u32(wanted->uids, row), gid = column_u32(wanted->gids, row);
    const mode_t mode = column_u16(wanted->modes, row);
    const int64_t mtime = (int64_t)column_u64(wanted->mtimes, row);
    struct timespec times[2] = {{0, UTIME_OMIT}};
    int chowned = 0;

    if (!rdc_time_of(mtime, times + 1))
        return 0; /* a distant time: left to Python */
    if (rdc_nanoseconds(now->st_mtim) != mtime && (now->st_nlink > 1 || futimens(fd, times)))
        return 0;
    if (wanted->owner && (now->st_uid != uid || now->st_gid != gid)) {
        if ((now->st_mode & 06077 & ~mode) && fchmod(fd, now->st_mode & (01700 | mode)))
            return 0;
        if (fchown(fd, uid, gid))
            return 0;
        chowned = 1;
    }
    return !((chowned || (now->st_mode & 07777) != mode) && fchmod(fd, mode));
}

typedef struct {
    const int32_t *fds;
    const int64_t *ctimes;
    const rdc_wanted_metadata *wanted;
    uint8_t *outcomes;
} setting;

static void set_row(void *context, size_t row)
{
    const setting *s = context;
    struct stat now;

    if (s->fds[row] < 0 || fstat(s->fds[row], &now))
        s->outcomes[row] = RDC_METADATA_FAILED;
    else if (rdc_nanoseconds(now.st_ctim) != s->ctimes[row])
        s->outcomes[row] = RDC_FILE_CHANGED;
    else if (set_metadata(s->fds[row], &now, s->wanted, (size_t)s->wanted->rows[row]))
        s->outcomes[row] = RDC_METADATA_SET;
    else
        s->outcomes[row] = RDC_METADATA_FAILED;
}

void rdc_set_metadata_of_files(const int32_t *fds, size_t count, const int64_t *ctimes, const rdc_wanted_metadata *wanted,
                      uint8_t *outcomes, unsigned depth, rdc_rows_seen *seen)
{
    setting s = {fds, ctimes, wanted, outcomes};

    rdc_rows_at_once(count, depth, set_row, &s, seen);
}

#endif
