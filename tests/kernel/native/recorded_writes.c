/*
 * recorded_writes.c - preloaded: every call that changes something below the directory RECORD_TOP is appended to the
 * file RECORD_LOG once it has succeeded, with the bytes that it wrote. tests/support/power/recorded_writes.py reads the log.
 *
 * A record, little-endian: u32 length of all that follows, u8 kind, three u64, u16 and u16 lengths of two names, the
 * names, data. Inode numbers name files, since names change. What this library does not see (a store into a mapping,
 * a system call that is not made through the C library) shows as a difference between the log replayed and the tree.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define LOG_FD 900 /* out of the way of programs that count theirs */

/* The system's own: this library has its `syscall` too. */
static long (*raw(void))(long, ...)
{
    static long (*real)(long, ...);
    if (!real)
        real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return real;
}

static int log_fd = -1;
static char top[PATH_MAX];
static size_t top_length;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void)
{
    const char *log = getenv("RECORD_LOG"), *below = getenv("RECORD_TOP");
    if (!log || !below || strlen(below) >= sizeof top)
        return;
    strcpy(top, below);
    top_length = strlen(top);
    int fd = (int)raw()(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        abort();
    log_fd = fcntl(fd, F_DUPFD_CLOEXEC, LOG_FD);
    if (log_fd < 0)
        log_fd = fd;
}

static void record(char kind, uint64_t a, uint64_t b, uint64_t c, const char *one, const char *two, const void *data,
                   size_t size)
{
    uint16_t lengths[2] = {one ? (uint16_t)strlen(one) : 0, two ? (uint16_t)strlen(two) : 0};
    uint64_t numbers[3] = {a, b, c};
    uint32_t total = (uint32_t)(1 + sizeof numbers + sizeof lengths + lengths[0] + lengths[1] + size);
    struct iovec parts[] = {{&total, sizeof total}, {&kind, 1},          {numbers, sizeof numbers}, {lengths, sizeof lengths},
                            {(void *)one, lengths[0]}, {(void *)two, lengths[1]}, {(void *)data, size}};
    /* One call, and so one record beside those of other processes. */
    if (raw()(SYS_writev, log_fd, parts, 7) != (long)(sizeof total + total))
        abort();
}

static int is_below(const char *path)
{
    return !strncmp(path, top, top_length) && (!path[top_length] || path[top_length] == '/');
}

/* Whether the open file is below the top, and its inode number. */
static int watched(int fd, uint64_t *inode)
{
    char link[40], path[PATH_MAX];
    struct stat found;
    const int saved = errno;
    if (log_fd < 0 || fd < 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    int result = 0;
    if (length > 0) {
        path[length] = 0;
        result = is_below(path) && !fstat(fd, &found);
    }
    if (result)
        *inode = found.st_ino;
    errno = saved;
    return result;
}

typedef struct {
    uint64_t directory;
    char name[NAME_MAX + 1];
} place;

/* The directory of a path, if it is below the top, and the name in it. */
static int locate(int directory, const char *path, place *found)
{
    char above[PATH_MAX];
    const int saved = errno;
    size_t length = path ? strlen(path) : 0;
    if (log_fd < 0 || !length || length >= sizeof above)
        return 0;
    memcpy(above, path, length + 1);
    while (length > 1 && above[length - 1] == '/')
        above[--length] = 0;
    char *slash = strrchr(above, '/');
    const char *name = slash ? slash + 1 : above;
    if (strlen(name) > NAME_MAX)
        return 0;
    strcpy(found->name, name);
    if (slash)
        slash[slash == above] = 0;
    int fd = (int)raw()(SYS_openat, directory, slash ? above : ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    const int result = watched(fd, &found->directory);
    if (fd >= 0)
        raw()(SYS_close, fd);
    errno = saved;
    return result;
}

static uint64_t inode_at(int directory, const char *path, int flags)
{
    struct stat found;
    const int saved = errno;
    const uint64_t inode = fstatat(directory, path, &found, flags) ? 0 : found.st_ino;
    errno = saved;
    return inode;
}

static void lock(void) { pthread_mutex_lock(&mutex); }

static void unlock(void) { pthread_mutex_unlock(&mutex); }

/* What a file has in a range after a call that let the kernel copy. */
static void record_range(int fd, uint64_t inode, uint64_t at, uint64_t size)
{
    char link[40];
    const int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const int reading = (int)raw()(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
    char *data = malloc(size ? size : 1);
    if (reading < 0 || !data)
        abort();
    const ssize_t got = pread(reading, data, size, (off_t)at);
    if (got > 0)
        record('W', 0, inode, at, NULL, NULL, data, (size_t)got);
    free(data);
    raw()(SYS_close, reading);
    errno = saved;
}

/* Opening */

static int opened(int directory, const char *path, int flags, mode_t mode, int fd, int was_there)
{
    place where;
    uint64_t inode;
    struct stat found;
    if (fd < 0 || !watched(fd, &inode) || fstat(fd, &found))
        return fd;
    if ((flags & O_TMPFILE) == O_TMPFILE)
        record('O', 0, inode, found.st_mode & 07777, NULL, NULL, NULL, 0);
    else if (flags & O_CREAT && !was_there && locate(directory, path, &where))
        record('C', where.directory, inode, found.st_mode & 07777, where.name, NULL, NULL, 0);
    else if (flags & O_TRUNC && flags & (O_WRONLY | O_RDWR))
        record('T', 0, inode, 0, NULL, NULL, NULL, 0);
    (void)mode;
    return fd;
}

static int open_recorded(int directory, const char *path, int flags, mode_t mode)
{
    place where;
    if (!(flags & (O_CREAT | O_TRUNC)) && (flags & O_TMPFILE) != O_TMPFILE)
        return (int)raw()(SYS_openat, directory, path, flags, mode);
    if (!locate(directory, path, &where))
        return (int)raw()(SYS_openat, directory, path, flags, mode);
    lock();
    const int was_there = inode_at(directory, path, 0) != 0;
    const int fd = opened(directory, path, flags, mode, (int)raw()(SYS_openat, directory, path, flags, mode), was_there);
    unlock();
    return fd;
}

#define MODE(flags, after)                                                                                             \
    mode_t mode = 0;                                                                                                   \
    if ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE) {                                                     \
        va_list rest;                                                                                                  \
        va_start(rest, after);                                                                                         \
        mode = va_arg(rest, mode_t);                                                                                   \
        va_end(rest);                                                                                                  \
    }

/* With 64-bit offsets the header renames these four by a label; both symbols are defined below. */
int recorded_open(const char *path, int flags, ...) __asm__("open");
int recorded_open64(const char *path, int flags, ...) __asm__("open64");
int recorded_openat(int directory, const char *path, int flags, ...) __asm__("openat");
int recorded_openat64(int directory, const char *path, int flags, ...) __asm__("openat64");

int recorded_open(const char *path, int flags, ...)
{
    MODE(flags, flags)
    return open_recorded(AT_FDCWD, path, flags, mode);
}

int recorded_open64(const char *path, int flags, ...)
{
    MODE(flags, flags)
    return open_recorded(AT_FDCWD, path, flags, mode);
}

int recorded_openat(int directory, const char *path, int flags, ...)
{
    MODE(flags, flags)
    return open_recorded(directory, path, flags, mode);
}

int recorded_openat64(int directory, const char *path, int flags, ...)
{
    MODE(flags, flags)
    return open_recorded(directory, path, flags, mode);
}

int recorded_creat(const char *path, mode_t mode) __asm__("creat");
int recorded_creat64(const char *path, mode_t mode) __asm__("creat64");
int recorded_creat(const char *path, mode_t mode)
{
    return open_recorded(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int recorded_creat64(const char *path, mode_t mode) { return recorded_creat(path, mode); }

/* Contents. `at` below 0: where the file's position was, which the call has moved. */

static ssize_t wrote(int fd, uint64_t inode, const struct iovec *parts, int count, off_t at, ssize_t result)
{
    const int saved = errno;
    if (result > 0) {
        if (at < 0)
            at = lseek(fd, 0, SEEK_CUR) - result;
        size_t left = (size_t)result;
        for (int i = 0; i < count && left; i++) {
            const size_t size = parts[i].iov_len < left ? parts[i].iov_len : left;
            if (size)
                record('W', 0, inode, (uint64_t)at, NULL, NULL, parts[i].iov_base, size);
            at += (off_t)size;
            left -= size;
        }
    }
    errno = saved;
    return result;
}

static ssize_t write_recorded(int fd, const struct iovec *parts, int count, off_t at)
{
    uint64_t inode = 0;
    const int mine = watched(fd, &inode);
    if (mine)
        lock();
    ssize_t result = at < 0 ? raw()(SYS_writev, fd, parts, count) : raw()(SYS_pwritev, fd, parts, count, at, 0);
    if (mine) {
        result = wrote(fd, inode, parts, count, at, result);
        unlock();
    }
    return result;
}

ssize_t write(int fd, const void *from, size_t size)
{
    const struct iovec part = {(void *)from, size};
    uint64_t inode;
    return watched(fd, &inode) ? write_recorded(fd, &part, 1, -1) : raw()(SYS_write, fd, from, size);
}

ssize_t recorded_pwrite(int fd, const void *from, size_t size, off_t at) __asm__("pwrite");
ssize_t recorded_pwrite64(int fd, const void *from, size_t size, off_t at) __asm__("pwrite64");
ssize_t recorded_pwrite(int fd, const void *from, size_t size, off_t at)
{
    const struct iovec part = {(void *)from, size};
    return write_recorded(fd, &part, 1, at);
}

ssize_t recorded_pwrite64(int fd, const void *from, size_t size, off_t at) { return recorded_pwrite(fd, from, size, at); }

ssize_t writev(int fd, const struct iovec *parts, int count) { return write_recorded(fd, parts, count, -1); }

ssize_t recorded_pwritev(int fd, const struct iovec *parts, int count, off_t at) __asm__("pwritev");
ssize_t recorded_pwritev64(int fd, const struct iovec *parts, int count, off_t at) __asm__("pwritev64");
ssize_t recorded_pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    return write_recorded(fd, parts, count, at);
}

ssize_t recorded_pwritev64(int fd, const struct iovec *parts, int count, off_t at)
{
    return write_recorded(fd, parts, count, at);
}

static ssize_t copied(int fd, uint64_t inode, off_t at, ssize_t result)
{
    if (result > 0)
        record_range(fd, inode, (uint64_t)at, (uint64_t)result);
    return result;
}

ssize_t copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t size, unsigned flags)
{
    uint64_t inode;
    if (!watched(to, &inode))
        return raw()(SYS_copy_file_range, from, from_at, to, to_at, size, flags);
    lock();
    const off_t at = to_at ? *to_at : lseek(to, 0, SEEK_CUR);
    const ssize_t result = copied(to, inode, at, raw()(SYS_copy_file_range, from, from_at, to, to_at, size, flags));
    unlock();
    return result;
}

static ssize_t send_recorded(int to, int from, off_t *at, size_t size)
{
    uint64_t inode;
    if (!watched(to, &inode))
        return raw()(SYS_sendfile, to, from, at, size);
    lock();
    const off_t where = lseek(to, 0, SEEK_CUR);
    const ssize_t result = copied(to, inode, where, raw()(SYS_sendfile, to, from, at, size));
    unlock();
    return result;
}

ssize_t recorded_sendfile(int to, int from, off_t *at, size_t size) __asm__("sendfile");
ssize_t recorded_sendfile64(int to, int from, off_t *at, size_t size) __asm__("sendfile64");
ssize_t recorded_sendfile(int to, int from, off_t *at, size_t size) { return send_recorded(to, from, at, size); }
ssize_t recorded_sendfile64(int to, int from, off_t *at, size_t size) { return send_recorded(to, from, at, size); }

int ioctl(int fd, unsigned long request, ...)
{
    va_list rest;
    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    uint64_t inode;
    struct stat now;
    if ((request != FICLONE && request != FICLONERANGE) || !watched(fd, &inode))
        return (int)raw()(SYS_ioctl, fd, request, argument);
    lock();
    const int result = (int)raw()(SYS_ioctl, fd, request, argument);
    if (!result && !fstat(fd, &now)) {
        const struct file_clone_range *range = argument;
        const uint64_t at = request == FICLONE ? 0 : range->dest_offset;
        record_range(fd, inode, at, (uint64_t)now.st_size - at);
    }
    unlock();
    return result;
}

static void *map_recorded(void *address, size_t size, int protection, int flags, int fd, off_t at)
{
    uint64_t inode;
    if (fd >= 0 && protection & PROT_WRITE && flags & MAP_SHARED && watched(fd, &inode))
        record('G', 0, inode, 0, NULL, NULL, NULL, 0);
    return (void *)raw()(SYS_mmap, address, size, protection, flags, fd, at);
}

void *recorded_mmap(void *address, size_t size, int protection, int flags, int fd, off_t at) __asm__("mmap");
void *recorded_mmap64(void *address, size_t size, int protection, int flags, int fd, off_t at) __asm__("mmap64");
void *recorded_mmap(void *address, size_t size, int protection, int flags, int fd, off_t at)
{
    return map_recorded(address, size, protection, flags, fd, at);
}

void *recorded_mmap64(void *address, size_t size, int protection, int flags, int fd, off_t at)
{
    return map_recorded(address, size, protection, flags, fd, at);
}

/* Sizes */

static int resized(int fd, uint64_t inode, int result)
{
    struct stat now;
    const int saved = errno;
    if (!result && !fstat(fd, &now))
        record('T', 0, inode, (uint64_t)now.st_size, NULL, NULL, NULL, 0);
    errno = saved;
    return result;
}

static int truncate_recorded(int fd, off_t size)
{
    uint64_t inode;
    if (!watched(fd, &inode))
        return (int)raw()(SYS_ftruncate, fd, size);
    lock();
    const int result = resized(fd, inode, (int)raw()(SYS_ftruncate, fd, size));
    unlock();
    return result;
}

int recorded_ftruncate(int fd, off_t size) __asm__("ftruncate");
int recorded_ftruncate64(int fd, off_t size) __asm__("ftruncate64");
int recorded_ftruncate(int fd, off_t size) { return truncate_recorded(fd, size); }
int recorded_ftruncate64(int fd, off_t size) { return truncate_recorded(fd, size); }

static int truncate_path(const char *path, off_t size)
{
    const int fd = (int)raw()(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    const int result = fd < 0 ? -1 : truncate_recorded(fd, size);
    if (fd >= 0)
        raw()(SYS_close, fd);
    return result;
}

int recorded_truncate(const char *path, off_t size) __asm__("truncate");
int recorded_truncate64(const char *path, off_t size) __asm__("truncate64");
int recorded_truncate(const char *path, off_t size) { return truncate_path(path, size); }
int recorded_truncate64(const char *path, off_t size) { return truncate_path(path, size); }

static int allocate_recorded(int fd, int mode, off_t at, off_t size)
{
    uint64_t inode;
    if (!watched(fd, &inode) || mode == FALLOC_FL_KEEP_SIZE)
        return (int)raw()(SYS_fallocate, fd, mode, at, size);
    lock();
    const int result = (int)raw()(SYS_fallocate, fd, mode, at, size);
    if (!result && mode)
        record_range(fd, inode, (uint64_t)at, (uint64_t)size);
    if (!(mode & FALLOC_FL_KEEP_SIZE))
        resized(fd, inode, result);
    unlock();
    return result;
}

int recorded_fallocate(int fd, int mode, off_t at, off_t size) __asm__("fallocate");
int recorded_fallocate64(int fd, int mode, off_t at, off_t size) __asm__("fallocate64");
int recorded_posix_fallocate(int fd, off_t at, off_t size) __asm__("posix_fallocate");
int recorded_posix_fallocate64(int fd, off_t at, off_t size) __asm__("posix_fallocate64");
int recorded_fallocate(int fd, int mode, off_t at, off_t size) { return allocate_recorded(fd, mode, at, size); }
int recorded_fallocate64(int fd, int mode, off_t at, off_t size) { return allocate_recorded(fd, mode, at, size); }
int recorded_posix_fallocate(int fd, off_t at, off_t size) { return allocate_recorded(fd, 0, at, size) ? errno : 0; }
int recorded_posix_fallocate64(int fd, off_t at, off_t size) { return allocate_recorded(fd, 0, at, size) ? errno : 0; }

/* Names */

static int made(char kind, int directory, const char *path, const place *where, const char *target, int result)
{
    struct stat found;
    const int saved = errno;
    if (!result && !fstatat(directory, path, &found, AT_SYMLINK_NOFOLLOW))
        record(kind, where->directory, found.st_ino, found.st_mode & 07777, where->name, NULL, target,
               target ? strlen(target) : 0);
    errno = saved;
    return result;
}

int mkdirat(int directory, const char *path, mode_t mode)
{
    place where;
    if (!locate(directory, path, &where))
        return (int)raw()(SYS_mkdirat, directory, path, mode);
    lock();
    const int result = made('M', directory, path, &where, NULL, (int)raw()(SYS_mkdirat, directory, path, mode));
    unlock();
    return result;
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int symlinkat(const char *target, int directory, const char *path)
{
    place where;
    if (!locate(directory, path, &where))
        return (int)raw()(SYS_symlinkat, target, directory, path);
    lock();
    const int result = made('L', directory, path, &where, target, (int)raw()(SYS_symlinkat, target, directory, path));
    unlock();
    return result;
}

int symlink(const char *target, const char *path) { return symlinkat(target, AT_FDCWD, path); }

int linkat(int from, const char *old, int to, const char *path, int flags)
{
    place where;
    if (!locate(to, path, &where))
        return (int)raw()(SYS_linkat, from, old, to, path, flags);
    lock();
    const int result = made('H', to, path, &where, NULL, (int)raw()(SYS_linkat, from, old, to, path, flags));
    unlock();
    return result;
}

int link(const char *old, const char *path) { return linkat(AT_FDCWD, old, AT_FDCWD, path, 0); }

int unlinkat(int directory, const char *path, int flags)
{
    place where;
    if (!locate(directory, path, &where))
        return (int)raw()(SYS_unlinkat, directory, path, flags);
    lock();
    const int result = (int)raw()(SYS_unlinkat, directory, path, flags);
    if (!result)
        record(flags & AT_REMOVEDIR ? 'D' : 'U', where.directory, 0, 0, where.name, NULL, NULL, 0);
    unlock();
    return result;
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path)
{
    const int result = unlinkat(AT_FDCWD, path, 0);
    return result && errno == EISDIR ? rmdir(path) : result;
}

/* As the C library: without flags, the call that every system has. */
static long rename_raw(int from, const char *old, int to, const char *new, unsigned flags)
{
    return flags ? raw()(SYS_renameat2, from, old, to, new, flags) : raw()(SYS_renameat, from, old, to, new);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    place before, after;
    const int leaves = locate(from, old, &before), comes = locate(to, new, &after);
    if (!leaves && !comes)
        return (int)rename_raw(from, old, to, new, flags);
    if (!leaves || !comes)
        abort(); /* over the border of what is watched: nothing here does that */
    lock();
    const int result = (int)rename_raw(from, old, to, new, flags);
    if (!result)
        record(flags & RENAME_EXCHANGE ? 'E' : 'R', before.directory, after.directory, 0, before.name, after.name, NULL, 0);
    unlock();
    return result;
}

int renameat(int from, const char *old, int to, const char *new) { return renameat2(from, old, to, new, 0); }
int rename(const char *old, const char *new) { return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0); }

/* Metadata: what a stat says after. Owners and extended attributes are noted, and not simulated. */

static int changed(int fd, int directory, const char *path, int flags, char kind, int result)
{
    struct stat now;
    place where;
    const int saved = errno;
    uint64_t inode;
    if (!result && log_fd >= 0) {
        const int mine = path && *path ? locate(directory, path, &where) : watched(path ? directory : fd, &inode);
        const int found = path && *path ? fstatat(directory, path, &now, flags) : fstat(path ? directory : fd, &now);
        if (mine && !found) {
            const int64_t mtime = (int64_t)now.st_mtim.tv_sec * 1000000000 + now.st_mtim.tv_nsec;
            record(kind, 0, now.st_ino, kind == 'N' ? (uint64_t)mtime : now.st_mode & 07777, NULL, NULL, NULL, 0);
        }
    }
    errno = saved;
    return result;
}

int fchmod(int fd, mode_t mode) { return changed(fd, 0, NULL, 0, 'A', (int)raw()(SYS_fchmod, fd, mode)); }

int fchmodat(int directory, const char *path, mode_t mode, int flags)
{
    return changed(-1, directory, path, flags, 'A', REAL(fchmodat)(directory, path, mode, flags));
}

int chmod(const char *path, mode_t mode) { return fchmodat(AT_FDCWD, path, mode, 0); }

int fchown(int fd, uid_t uid, gid_t gid)
{
    return changed(fd, 0, NULL, 0, 'A', (int)raw()(SYS_fchown, fd, uid, gid));
}

int fchownat(int directory, const char *path, uid_t uid, gid_t gid, int flags)
{
    return changed(-1, directory, path, flags & AT_SYMLINK_NOFOLLOW, 'A',
                   (int)raw()(SYS_fchownat, directory, path, uid, gid, flags));
}

int chown(const char *path, uid_t uid, gid_t gid) { return fchownat(AT_FDCWD, path, uid, gid, 0); }
int lchown(const char *path, uid_t uid, gid_t gid) { return fchownat(AT_FDCWD, path, uid, gid, AT_SYMLINK_NOFOLLOW); }

int futimens(int fd, const struct timespec times[2])
{
    return changed(fd, 0, NULL, 0, 'N', (int)raw()(SYS_utimensat, fd, NULL, times, 0));
}

int utimensat(int directory, const char *path, const struct timespec times[2], int flags)
{
    return changed(directory, directory, path, flags, 'N', (int)raw()(SYS_utimensat, directory, path, times, flags));
}

int fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
    return changed(fd, 0, NULL, 0, 'A', (int)raw()(SYS_fsetxattr, fd, name, value, size, flags));
}

/* What makes it last */

static int synced(int fd, char kind, int result)
{
    uint64_t inode;
    if (!result && watched(fd, &inode))
        record(kind, 0, inode, 0, NULL, NULL, NULL, 0);
    return result;
}

int fsync(int fd) { return synced(fd, 'F', (int)raw()(SYS_fsync, fd)); }
int fdatasync(int fd) { return synced(fd, 'F', (int)raw()(SYS_fdatasync, fd)); }
int syncfs(int fd) { return synced(fd, 'S', (int)raw()(SYS_syncfs, fd)); }

void sync(void)
{
    raw()(SYS_sync);
    if (log_fd >= 0)
        record('S', 0, 0, 0, NULL, NULL, NULL, 0);
}

/* Calls that C libraries lack and rdc makes by number. */

long syscall(long number, ...)
{
    long a[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    if (log_fd >= 0 && number == SYS_renameat2)
        return renameat2((int)a[0], (const char *)a[1], (int)a[2], (const char *)a[3], (unsigned)a[4]);
    const long result = raw()(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    /* fchmodat2, Linux 6.6: not in all headers. */
    if (log_fd >= 0 && number == 452)
        return changed(-1, (int)a[0], (const char *)a[1], (int)a[3], 'A', (int)result);
    return result;
}
