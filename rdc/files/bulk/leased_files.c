/*
 * leased_files.c - many files under read leases: compared with others, and taken from their names.
 *
 * The steps and their order are those of rdc/files/names/leased_files.py and name_change.py, without a Python
 * object for each. What does not go well is left to them: they try it on their own, and name what is wrong.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "bulk/leased_files.h"

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define READ_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

#define NO_REPLACE 1 /* RENAME_NOREPLACE of linux/fs.h */
#define EXCHANGE 2   /* RENAME_EXCHANGE */

#define LIST_USUAL 1024        /* the kernel allocates as much as it is offered */
#define LIST_MOST 65536        /* XATTR_LIST_MAX */
#define ATTRIBUTES_MOST 262144 /* of one file; others are left to Python */

#define SPAN 65536   /* bytes compared at a time: they stay in the second-level cache */
#define EXTENTS 32   /* most files have fewer */
#define STALL_NANOSECONDS 500000000LL /* STALL_SECONDS of name_change.py */

static int is_intact(int fd) { return fcntl(fd, F_GETLEASE) == F_RDLCK; }

static int has_room(rdc_attributes *to, size_t more)
{
    if (to->size + more <= to->room)
        return 1;
    const size_t room = 2 * (to->size + more);
    uint8_t *data = realloc(to->data, room);
    if (!data)
        return 0;
    to->data = data;
    to->room = room;
    return 1;
}

/* Appends them. Returns 0, an errno, or RDC_SINGLY. */
static int read_attributes(int fd, rdc_attributes *to)
{
    char few[LIST_USUAL], *names = few;
    const size_t begun = to->size;
    int result = 0;
    ssize_t length = flistxattr(fd, few, sizeof few);

    if (length < 0 && errno == ERANGE) {
        names = malloc(LIST_MOST);
        length = names ? flistxattr(fd, names, LIST_MOST) : -1;
        if (!names)
            errno = ENOMEM;
    }
    if (length < 0)
        result = errno == EOPNOTSUPP || errno == ENOSYS ? 0 : errno;
    for (const char *name = names; !result && length > 0 && name < names + length; name += strlen(name) + 1) {
        const size_t named = strlen(name) + 1;
        const ssize_t most = fgetxattr(fd, name, NULL, 0);
        int32_t got;

        if (most < 0 || to->size - begun + named + sizeof got + (size_t)most > ATTRIBUTES_MOST) {
            result = most < 0 ? errno : RDC_SINGLY;
            break;
        }
        if (!has_room(to, named + sizeof got + (size_t)most)) {
            result = ENOMEM;
            break;
        }
        memcpy(to->data + to->size, name, named);
        got = (int32_t)fgetxattr(fd, name, to->data + to->size + named + sizeof got, (size_t)most);
        if (got < 0) {
            result = errno;
            break;
        }
        memcpy(to->data + to->size + named, &got, sizeof got);
        to->size += named + sizeof got + (size_t)got;
    }
    if (names != few)
        free(names);
    if (result)
        to->size = begun;
    return result;
}

/* Dirty data has no place yet, and so nothing else refers to it: it is not written for this. */
static int is_plain(int fd)
{
    union {
        struct fiemap head;
        char room[sizeof(struct fiemap) + EXTENTS * sizeof(struct fiemap_extent)];
    } map;

    memset(&map.head, 0, sizeof map.head);
    map.head.fm_length = FIEMAP_MAX_OFFSET;
    map.head.fm_extent_count = EXTENTS;
    if (ioctl(fd, FS_IOC_FIEMAP, &map))
        return 1; /* a file system that cannot tell shares nothing that it knows of */
    for (uint32_t i = 0; i < map.head.fm_mapped_extents; i++) {
        const uint32_t flags = map.head.fm_extents[i].fe_flags;
        /* What is encrypted takes its length on disk; what is encoded otherwise is compressed. */
        if (flags & FIEMAP_EXTENT_SHARED || (flags & FIEMAP_EXTENT_ENCODED && !(flags & FIEMAP_EXTENT_DATA_ENCRYPTED)))
            return 0;
    }
    return !map.head.fm_mapped_extents ||
           map.head.fm_extents[map.head.fm_mapped_extents - 1].fe_flags & FIEMAP_EXTENT_LAST;
}

static int lease(int directory, const char *name, int32_t *descriptor, rdc_leased *file, rdc_attributes *attributes)
{
    struct stat found;
    int error = 0, fd;

    do
        fd = openat(directory, name, READ_FLAGS);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return errno;
    /* Facts are read after the lease: a process may write between the opening and it. */
    if (fstat(fd, &found))
        error = errno;
    else if (!S_ISREG(found.st_mode))
        error = RDC_SINGLY;
    else if (fcntl(fd, F_SETSIG, SIGURG) || fcntl(fd, F_SETLEASE, F_RDLCK) || fstat(fd, &found))
        error = errno;
    else
        error = read_attributes(fd, attributes);
    if (error) {
        close(fd);
        return error;
    }
    *file = (rdc_leased){
        .device = (uint64_t)found.st_dev,
        .inode = (uint64_t)found.st_ino,
        .size = found.st_size,
        .mtime = found.st_mtim.tv_sec,
        .mtime_part = found.st_mtim.tv_nsec,
        .ctime = found.st_ctim.tv_sec,
        .ctime_part = found.st_ctim.tv_nsec,
        .atime = found.st_atim.tv_sec,
        .atime_part = found.st_atim.tv_nsec,
        .mode = found.st_mode,
        .uid = found.st_uid,
        .gid = found.st_gid,
        .links = (int64_t)found.st_nlink,
        .allocated = (int64_t)found.st_blocks * 512,
        .plain = is_plain(fd),
    };
    *descriptor = fd;
    return 0;
}

int rdc_lease_files(const int32_t *directories, const char *names, size_t count, int32_t *fds, int32_t *errors,
                    rdc_leased *files, rdc_attributes *attributes)
{
    if (!has_room(attributes, 1))
        return 0;
    for (size_t i = 0; i < count; i++, names += strlen(names) + 1) {
        fds[i] = -1;
        memset(&files[i], 0, sizeof files[i]);
        errors[i] = lease(directories[i], names, &fds[i], &files[i], attributes);
        files[i].attributes = (int64_t)attributes->size;
    }
    return 1;
}

static int has_content(int fd, const uint8_t *content, size_t size, uint8_t *buffer)
{
    for (size_t at = 0; at < size;) {
        const size_t length = size - at < SPAN ? size - at : SPAN;
        const ssize_t got = pread(fd, buffer, length, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || memcmp(buffer, content + at, (size_t)got))
            return 0;
        at += (size_t)got;
    }
    return is_intact(fd);
}

int rdc_compare_files(const int32_t *fds, size_t count, const uint8_t *content, size_t size, uint8_t *equal)
{
    uint8_t *buffer = malloc(SPAN);

    for (size_t i = 0; buffer && i < count; i++)
        equal[i] = fds[i] >= 0 && has_content(fds[i], content, size, buffer);
    free(buffer);
    return buffer != NULL;
}

static size_t attributes_begin(const rdc_departures *names, size_t file)
{
    return file ? (size_t)names->leased[file - 1].attributes : 0;
}

/* What LeasedFile.describe_change compares; with `exactly` the ctime, too. Names, and the ctime they change, do not count. */
static int is_like(const rdc_departures *names, size_t file, int exactly, rdc_attributes *scratch)
{
    const rdc_leased *then = &names->leased[file];
    const size_t begin = attributes_begin(names, file), length = (size_t)then->attributes - begin;
    const int fd = names->fds[file];
    struct stat now;

    if (!is_intact(fd) || fstat(fd, &now) || now.st_size != then->size || now.st_mtim.tv_sec != then->mtime ||
        now.st_mtim.tv_nsec != then->mtime_part || (int64_t)now.st_mode != then->mode || (int64_t)now.st_uid != then->uid ||
        (int64_t)now.st_gid != then->gid)
        return 0;
    if (exactly && (now.st_ctim.tv_sec != then->ctime || now.st_ctim.tv_nsec != then->ctime_part))
        return 0;
    scratch->size = 0;
    return !read_attributes(fd, scratch) && scratch->size == length &&
           (!length || !memcmp(scratch->data, names->attributes + begin, length));
}

static int is_at(int directory, const char *name, const rdc_leased *file)
{
    struct stat found;
    return !fstatat(directory, name, &found, AT_SYMLINK_NOFOLLOW) && (uint64_t)found.st_dev == file->device &&
           (uint64_t)found.st_ino == file->inode;
}

/* Whether the name that goes, or the one it got meanwhile, is its file's, and both files are as they were compared. The name
 * of the original matters where another name is to go because of it. */
static int are_alike(const rdc_departures *names, size_t row, const char *name, int exactly, rdc_attributes *scratch)
{
    const size_t file = names->files[row], original = names->originals[row];
    return is_at(names->directories[row], name, &names->leased[file]) && is_like(names, file, exactly, scratch) &&
           (names->exchange ||
            is_at(names->original_directories[row], names->original_names[row], &names->leased[original])) &&
           is_like(names, original, 0, scratch);
}

static int64_t nanoseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int rename_within(int directory, const char *from, const char *to, unsigned flags)
{
    /* Not every C library has renameat2. */
    return (int)syscall(SYS_renameat2, directory, from, directory, to, flags);
}

static void unlink_spare(const rdc_departures *names, size_t row)
{
    if (is_at(names->directories[row], names->displaced[row], &names->leased[names->originals[row]]))
        unlinkat(names->directories[row], names->displaced[row], 0);
}

/* A link to the original beside the name, then both names change places. */
static int exchange(const rdc_departures *names, size_t row, rdc_attributes *scratch)
{
    const int directory = names->directories[row];
    const size_t file = names->files[row], original = names->originals[row];
    char path[sizeof "/proc/self/fd/2147483647"];
    int64_t looked;

    /* The path through the descriptor links the file that was compared, whichever name it has now. */
    snprintf(path, sizeof path, "/proc/self/fd/%d", names->fds[original]);
    if (linkat(AT_FDCWD, path, directory, names->displaced[row], AT_SYMLINK_FOLLOW))
        return RDC_UNTOUCHED;
    looked = nanoseconds_now();
    if (!are_alike(names, row, names->names[row], 0, scratch) ||
        rename_within(directory, names->displaced[row], names->names[row], EXCHANGE)) {
        unlink_spare(names, row);
        return RDC_UNTOUCHED;
    }
    if (!is_at(directory, names->displaced[row], &names->leased[file]) || !is_like(names, file, 0, scratch))
        return RDC_UNLIKE;
    /* A lease delays a writer for at least a second, but this process may have been stopped for longer. */
    return nanoseconds_now() - looked > STALL_NANOSECONDS && !is_like(names, original, 0, scratch) ? RDC_UNLIKE : RDC_DONE;
}

static int displace(const rdc_departures *names, size_t row, int first, rdc_attributes *scratch)
{
    if (!are_alike(names, row, names->names[row], first, scratch) ||
        rename_within(names->directories[row], names->names[row], names->displaced[row], NO_REPLACE))
        return RDC_UNTOUCHED;
    /* rdc_remove_displaced compares both files again: a removal cannot be taken back, this rename can. */
    return is_at(names->directories[row], names->displaced[row], &names->leased[names->files[row]]) ? RDC_DONE : RDC_UNLIKE;
}

int rdc_displace_files(const rdc_departures *names, uint8_t *outcomes)
{
    rdc_attributes scratch = {0};
    const int ready = has_room(&scratch, 1);

    for (size_t row = 0; ready && row < names->count; row++)
        outcomes[row] = (uint8_t)(names->exchange ? exchange(names, row, &scratch)
                                                  : displace(names, row, names->firsts[row], &scratch));
    free(scratch.data);
    return ready;
}

int rdc_remove_displaced(const rdc_departures *names, uint8_t *outcomes)
{
    rdc_attributes scratch = {0};
    const int ready = has_room(&scratch, 1);

    for (size_t row = 0; ready && row < names->count; row++) {
        const size_t file = names->files[row];
        const char *displaced = names->displaced[row];
        int alike;

        outcomes[row] = RDC_UNTOUCHED;
        /* What happens to the original after an exchange does not undo it: its writer finds the bytes under this name. */
        alike = names->exchange ? is_at(names->directories[row], displaced, &names->leased[file]) &&
                                      is_like(names, file, 0, &scratch)
                                : are_alike(names, row, displaced, 0, &scratch);
        if (alike && !unlinkat(names->directories[row], displaced, 0))
            outcomes[row] = RDC_DONE;
    }
    free(scratch.data);
    return ready;
}

#endif
