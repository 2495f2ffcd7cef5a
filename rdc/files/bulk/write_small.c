/*
 * write_small.c - many small files written aside, and put in place once that is decided.
 *
 * The steps and their order are those of rdc/files/replace/replacement.py, metadata.py and commit_group.py, without a Python object
 * and a change of threads for each. A file that fails is left to them: they try it again on its own, and name what is
 * wrong.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "bulk/small_files.h"

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bulk/column.h"
#include "base/nanoseconds.h"
#include "depth/rows_at_once.h"

#define CREATING (O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC)
#define HOLE_BYTES 4096 /* as rdc/files/root/root.py */
#define NO_REPLACE 1 /* RENAME_NOREPLACE of linux/fs.h */

/* CRC-32 as zlib has it, half a byte at a time: names are short. */
static uint32_t crc32_of(const char *text)
{
    static const uint32_t step[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    uint32_t crc = 0xffffffff;
    for (; *text; text++) {
        crc ^= (uint8_t)*text;
        crc = crc >> 4 ^ step[crc & 15];
        crc = crc >> 4 ^ step[crc & 15];
    }
    return ~crc;
}

/* Locked before anything is written: a sweep takes only what nobody holds. File systems without locks have none. */
static int lock(int fd)
{
    if (!flock(fd, LOCK_EX | LOCK_NB))
        return 1;
    return errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP || errno == EINVAL;
}

static int write_range(int fd, const uint8_t *content, uint64_t at, uint64_t stop)
{
    while (at < stop) {
        ssize_t put = pwrite(fd, content + at, stop - at, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return 0;
        at += (uint64_t)put;
    }
    return 1;
}

static int is_zeros(const uint8_t *content, uint64_t size)
{
    return !content[0] && !memcmp(content, content + 1, size - 1);
}

/* All but runs of at least `hole` blocks of zeros, which become holes; the last block may be shorter. 0: no run does. */
static int write_content(int fd, const uint8_t *content, uint64_t size, uint64_t hole)
{
    uint64_t written = 0, blocks = 0, run = 0; /* the blocks of zeros that begin at `run` */

    for (uint64_t at = 0; hole && at < size; at += HOLE_BYTES) {
        const uint64_t stop = size - at < HOLE_BYTES ? size : at + HOLE_BYTES;
        const int zeros = is_zeros(content + at, stop - at);
        if (zeros && !blocks++)
            run = at;
        if (zeros && stop < size)
            continue;
        if (blocks >= hole) {
            if (!write_range(fd, content, written, run))
                return 0;
            written = zeros ? stop : at;
        }
        blocks = 0;
    }
    return written < size || !size ? write_range(fd, content, written, size) : !ftruncate(fd, (off_t)size);
}

/* chown before chmod: the kernel clears setuid and setgid bits when the owner changes, and until then the file is its
 * owner's alone, so that its old group is let do nothing. */
static int set_metadata(int fd, const struct stat *made, const rdc_small_files *files, const rdc_ownership *wanted,
                        size_t row)
{
    const uint32_t uid = column_u32(wanted->uids, row), gid = column_u32(wanted->gids, row);
    const mode_t mode = column_u16(wanted->modes, row);
    const int64_t mtime = (int64_t)column_u64(files->mtimes, row);
    struct timespec times[2] = {made->st_atim};
    int chowned = 0;

    if (!rdc_time_of(mtime, times + 1))
        return 0; /* a distant time: left to Python */
    if (wanted->owner && (made->st_uid != uid || made->st_gid != gid)) {
        if (fchown(fd, uid, gid))
            return 0;
        chowned = 1;
    }
    if ((chowned || (made->st_mode & 07777) != mode) && fchmod(fd, mode))
        return 0;
    return !futimens(fd, times);
}

/* Whether the file is there that is to be replaced: what is_same_entry of rdc/model/entries.py compares. `found` is what is there. */
static int is_expected(int directory, const char *name, const rdc_expected *expected, size_t row, struct stat *found)
{
    return !fstatat(directory, name, found, AT_SYMLINK_NOFOLLOW) && S_ISREG(found->st_mode) &&
           (!(expected->fields & RDC_BYTES) || (uint64_t)found->st_size == expected->sizes[row]) &&
           (!(expected->fields & RDC_INODE) || ((uint64_t)found->st_dev == expected->devices[row] &&
                                                (uint64_t)found->st_ino == expected->inodes[row])) &&
           (!(expected->fields & RDC_MTIME) || rdc_nanoseconds(found->st_mtim) == expected->mtimes[row]) &&
           (!(expected->fields & RDC_CTIME) || rdc_nanoseconds(found->st_ctim) == expected->ctimes[row]);
}

/* As temporary_name of rdc/files/base/paths.py; a test compares. A name that is taken fails, and is left to Python. */
static void name_aside(char temporary[RDC_TEMPORARY_SIZE], const char *target, uint32_t random)
{
    snprintf(temporary, RDC_TEMPORARY_SIZE, ".rdc-%08x%04x", (unsigned)crc32_of(target), (unsigned)(random & 0xffff));
    snprintf(temporary + 17, RDC_TEMPORARY_SIZE - 17, "%04x.tmp", (unsigned)(crc32_of(temporary) & 0xffff));
}

static int stage(int directory, const rdc_small_files *files, const rdc_ownership *ownership, size_t row,
                 const uint8_t *content, uint64_t hole, const char *temporary)
{
    struct stat made;
    int fd = openat(directory, temporary, CREATING, 0600);

    if (fd < 0)
        return -1;
    /* A sweep that was faster has left the file without a name. */
    if (lock(fd) && !fstat(fd, &made) && made.st_nlink && write_content(fd, content, column_u64(files->sizes, row), hole) &&
        set_metadata(fd, &made, files, ownership, row))
        return fd;
    unlinkat(directory, temporary, 0);
    close(fd);
    errno = 0;
    return -1;
}

/* Where each of `count` strings begins, which are followed by NUL; NULL if there is no memory. */
static const char **starts_of(const char *strings, size_t count)
{
    const char **starts = malloc((count + 1) * sizeof *starts);

    for (size_t i = 0; starts && i < count; i++, strings += strlen(strings) + 1)
        starts[i] = strings;
    return starts;
}

/* Where the content of each file begins, which are one behind another; NULL if there is no memory. */
static const uint8_t **contents_of(const uint8_t *content, const rdc_small_files *files)
{
    const uint8_t **starts = malloc((files->count + 1) * sizeof *starts);

    for (size_t i = 0; starts && i < files->count; i++) {
        starts[i] = content;
        content += column_u64(files->sizes, i);
    }
    return starts;
}

typedef struct {
    const int32_t *directories;
    const rdc_small_files *files;
    const rdc_ownership *ownership;
    const rdc_expected *expected;
    const char **names;
    const uint8_t **contents;
    uint64_t hole;
    const uint8_t *random;
    int32_t *fds;
    char (*temporaries)[RDC_TEMPORARY_SIZE];
    rdc_rows_seen *seen;
} staging;

static void stage_row(void *context, size_t row)
{
    const staging *s = context;
    struct stat found;

    name_aside(s->temporaries[row], s->names[row], column_u32(s->random, row));
    if (s->expected && !is_expected(s->directories[row], s->names[row], s->expected, row, &found)) {
        s->fds[row] = RDC_NOT_EXPECTED;
        return;
    }
    s->fds[row] = stage(s->directories[row], s->files, s->ownership, row, s->contents[row], s->hole,
                        s->temporaries[row]);
    if (s->fds[row] < 0)
        rdc_note_errno(s->seen);
}

int rdc_stage_small(const int32_t *directories, const rdc_small_files *files, const rdc_ownership *ownership,
                    const rdc_expected *expected, const uint8_t *content, uint64_t hole, const uint8_t *random, int32_t *fds,
                    char (*temporaries)[RDC_TEMPORARY_SIZE], unsigned depth, rdc_rows_seen *seen)
{
    staging s = {directories, files, ownership, expected, starts_of(files->names, files->count),
                 contents_of(content, files), hole / HOLE_BYTES, random, fds, temporaries, seen};
    const int ready = s.names && s.contents;

    if (ready)
        rdc_rows_at_once(files->count, depth, stage_row, &s, seen);
    free(s.names);
    free(s.contents);
    return ready;
}

/* An errno, or 0. What is another file by now, or has further names, is left to commit_group.py, which knows what to do. */
static int rename_over(int directory, const char *temporary, const char *name, const rdc_expected *expected, size_t row)
{
    struct stat found;

    if (!is_expected(directory, name, expected, row, &found))
        return ESTALE;
    if (found.st_nlink > 1)
        return EMLINK;
    return renameat(directory, temporary, directory, name) ? errno : 0;
}

/* An errno, or 0. As rename_to_free_name of rdc/files/root/policies.py. */
static int rename_to_free_name(int directory, const char *temporary, const char *name)
{
    /* Not every C library has renameat2. */
    if (!syscall(SYS_renameat2, directory, temporary, directory, name, NO_REPLACE))
        return 0;
    if (errno != ENOSYS && errno != EINVAL)
        return errno;
    return linkat(directory, temporary, directory, name, 0) || unlinkat(directory, temporary, 0) ? errno : 0;
}

typedef struct {
    const int32_t *directories;
    const char *temporaries;
    const char **names;
    const int32_t *fds;
    const rdc_expected *expected;
    int32_t *errors;
} renaming;

static void rename_row(void *context, size_t row)
{
    const renaming *r = context;
    const char *temporary = r->temporaries + row * RDC_TEMPORARY_SIZE;

    if (r->fds[row] < 0)
        r->errors[row] = 0;
    else if (r->expected)
        r->errors[row] = rename_over(r->directories[row], temporary, r->names[row], r->expected, row);
    else
        r->errors[row] = rename_to_free_name(r->directories[row], temporary, r->names[row]);
}

int rdc_rename_small(const int32_t *directories, size_t count, const char *temporaries, const char *names,
                     const int32_t *fds, const rdc_expected *expected, int32_t *errors, unsigned depth,
                     rdc_rows_seen *seen)
{
    renaming r = {directories, temporaries, starts_of(names, count), fds, expected, errors};
    const int ready = r.names != NULL;

    if (ready)
        rdc_rows_at_once(count, depth, rename_row, &r, seen);
    free(r.names);
    return ready;
}

#endif
