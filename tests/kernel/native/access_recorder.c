/*
 * access_recorder.c - preloaded: after each system call that makes, names or opens entries to others, writes who may do
 * what in a tree then.
 *
 * RECORDED_TREE names the tree, RECORDED_TO the file that takes the states; RECORDED_KILL, if set, is the number of the
 * call, from 0, after which the process is killed. A state is a line "@CALL", a line an entry, and an empty line; an
 * entry's line has its kind, mode, uid, gid, inode, size, access ACL in hexadecimal ("-": none), and path.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static __thread int recording;
static long calls;

static void put_entry(FILE *to, int directory, const char *name, const char *path)
{
    struct stat found;
    unsigned char acl[1024];
    char place[64 + 256];

    if (fstatat(directory, name, &found, AT_SYMLINK_NOFOLLOW))
        return;
    fprintf(to, "%o %o %u %u %lu %lu ", (unsigned)(found.st_mode & S_IFMT), (unsigned)(found.st_mode & 07777),
            (unsigned)found.st_uid, (unsigned)found.st_gid, (unsigned long)found.st_ino, (unsigned long)found.st_size);
    snprintf(place, sizeof place, "/proc/self/fd/%d/%s", directory, name);
    ssize_t size = S_ISLNK(found.st_mode) ? -1 : lgetxattr(place, "system.posix_acl_access", acl, sizeof acl);
    for (ssize_t at = 0; at < size; at++)
        fprintf(to, "%02x", acl[at]);
    fprintf(to, "%s %s\n", size > 0 ? "" : "-", path);
    if (!S_ISDIR(found.st_mode))
        return;
    int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (!entries) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(entries));) {
        char below[4096];
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        snprintf(below, sizeof below, "%s%s%s", path, *path ? "/" : "", entry->d_name);
        put_entry(to, fd, entry->d_name, below);
    }
    closedir(entries);
}

static void record(const char *call)
{
    const char *tree = getenv("RECORDED_TREE"), *log = getenv("RECORDED_TO"), *last = getenv("RECORDED_KILL");
    const int error = errno;

    if (!tree || !log || recording)
        return;
    recording = 1;
    pthread_mutex_lock(&one_at_a_time);
    char *state = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&state, &size);
    fprintf(to, "@%s\n", call);
    int top = open(tree, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (top >= 0) {
        put_entry(to, top, ".", "");
        close(top);
    }
    fprintf(to, "\n");
    fclose(to);
    int fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, state, size) != (ssize_t)size)
        abort();
    close(fd);
    free(state);
    if (last && calls++ == atol(last))
        kill(getpid(), SIGKILL);
    pthread_mutex_unlock(&one_at_a_time);
    recording = 0;
    errno = error;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define RECORDED(name, parameters, arguments) \
    int name parameters                       \
    {                                         \
        int result = REAL(name) arguments;    \
        if (!result)                          \
            record(#name);                    \
        return result;                        \
    }

#define OPENING(name, parameters, arguments)                      \
    int name parameters                                           \
    {                                                             \
        va_list rest;                                             \
        va_start(rest, flags);                                    \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                             \
        int result = REAL(name) arguments;                        \
        if (result >= 0 && flags & O_CREAT)                       \
            record(#name);                                        \
        return result;                                            \
    }

OPENING(open, (const char *path, int flags, ...), (path, flags, mode))
OPENING(open64, (const char *path, int flags, ...), (path, flags, mode))
OPENING(openat, (int directory, const char *path, int flags, ...), (directory, path, flags, mode))
OPENING(openat64, (int directory, const char *path, int flags, ...), (directory, path, flags, mode))
RECORDED(mkdir, (const char *path, mode_t mode), (path, mode))
RECORDED(mkdirat, (int directory, const char *path, mode_t mode), (directory, path, mode))
RECORDED(rename, (const char *old, const char *new), (old, new))
RECORDED(renameat, (int from, const char *old, int to, const char *new), (from, old, to, new))
RECORDED(renameat2, (int from, const char *old, int to, const char *new, unsigned flags), (from, old, to, new, flags))
RECORDED(link, (const char *old, const char *new), (old, new))
RECORDED(linkat, (int from, const char *old, int to, const char *new, int flags), (from, old, to, new, flags))
RECORDED(chmod, (const char *path, mode_t mode), (path, mode))
RECORDED(fchmod, (int fd, mode_t mode), (fd, mode))
RECORDED(fchmodat, (int directory, const char *path, mode_t mode, int flags), (directory, path, mode, flags))
RECORDED(chown, (const char *path, uid_t uid, gid_t gid), (path, uid, gid))
RECORDED(lchown, (const char *path, uid_t uid, gid_t gid), (path, uid, gid))
RECORDED(fchown, (int fd, uid_t uid, gid_t gid), (fd, uid, gid))
RECORDED(fchownat, (int directory, const char *path, uid_t uid, gid_t gid, int flags),
         (directory, path, uid, gid, flags))
RECORDED(setxattr, (const char *path, const char *name, const void *value, size_t size, int flags),
         (path, name, value, size, flags))
RECORDED(lsetxattr, (const char *path, const char *name, const void *value, size_t size, int flags),
         (path, name, value, size, flags))
RECORDED(fsetxattr, (int fd, const char *name, const void *value, size_t size, int flags),
         (fd, name, value, size, flags))
RECORDED(removexattr, (const char *path, const char *name), (path, name))
RECORDED(lremovexattr, (const char *path, const char *name), (path, name))
RECORDED(fremovexattr, (int fd, const char *name), (fd, name))

long syscall(long number, ...)
{
    va_list rest;
    long arguments[6];
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        arguments[i] = va_arg(rest, long);
    va_end(rest);
    long result = REAL(syscall)(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                                arguments[5]);
    if (!result && (number == SYS_renameat2 || number == SYS_fchmodat2))
        record(number == SYS_renameat2 ? "renameat2" : "fchmodat2");
    return result;
}
