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

void rdc_open_files(int directory, const char *paths, size_t count, int32_t *fds, const rdc_opened_facts *facts)
{
    parent above = {.fd = -1};

    for (size_t i = 0; i < count; i++, paths += strlen(paths) + 1) {
        struct stat found;
        if (above.fd < 0 || !is_in(paths, above.path, above.length))
            open_parent(&above, directory, paths, i + 1 < count ? paths + strlen(paths) + 1 : NULL);
        int fd = above.fd < 0 ? rdc_open_beneath(directory, paths, READ_FLAGS)
                              : rdc_open_beneath(above.fd, paths + above.length + 1, READ_FLAGS);

        if (fd >= 0 && (fstat(fd, &found) || !S_ISREG(found.st_mode))) {
            close(fd);
            fd = -1;
        }
        fds[i] = fd < 0 ? -1 : fd;
        if (fd < 0)
            memset(&found, 0, sizeof found);
        else
            rdc_outlast(found.st_ctim);
        facts->devices[i] = (uint64_t)found.st_dev;
        facts->inodes[i] = (uint64_t)found.st_ino;
        facts->sizes[i] = (uint64_t)found.st_size;
        facts->mtimes[i] = rdc_nanoseconds(found.st_mtim);
        facts->ctimes[i] = rdc_nanoseconds(found.st_ctim);
    }
    if (above.fd >= 0)
        close(above.fd);
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

size_t rdc_read_files(const int32_t *fds, size_t count, const uint64_t *sizes, const int64_t *mtimes,
                      const int64_t *ctimes, uint8_t *content, uint8_t *good)
{
    size_t filled = 0;

    for (size_t i = 0; i < count; i++) {
        struct stat after;

        /* ctime counts: it cannot be set back, where a program can restore an mtime after writing. */
        good[i] = fds[i] >= 0 && read_whole(fds[i], content + filled, sizes[i]) && !fstat(fds[i], &after) &&
                  (uint64_t)after.st_size == sizes[i] && rdc_nanoseconds(after.st_mtim) == mtimes[i] &&
                  rdc_nanoseconds(after.st_ctim) == ctimes[i];
        if (good[i])
            filled += sizes[i];
    }
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
    struct timespec times[2] = {{0, UTIME_OMIT}, {mtime / 1000000000, mtime % 1000000000}};
    int chowned = 0;

    if (times[1].tv_nsec < 0) {
        times[1].tv_sec--;
        times[1].tv_nsec += 1000000000;
    }
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

void rdc_set_metadata_of_files(const int32_t *fds, size_t count, const int64_t *ctimes, const rdc_wanted_metadata *wanted,
                      uint8_t *outcomes)
{
    for (size_t i = 0; i < count; i++) {
        struct stat now;

        if (fds[i] < 0 || fstat(fds[i], &now))
            outcomes[i] = RDC_METADATA_FAILED;
        else if (rdc_nanoseconds(now.st_ctim) != ctimes[i])
            outcomes[i] = RDC_FILE_CHANGED;
        else
            outcomes[i] = set_metadata(fds[i], &now, wanted, (size_t)wanted->rows[i]) ? RDC_METADATA_SET : RDC_METADATA_FAILED;
    }
}

#endif
