/*
 * killed_calls.c - preloaded: the system calls that change something are counted, and the process is killed right before
 * the one with the given number. arm() begins the count.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

static long left = -1;

void arm(long number) { left = number; }

static void count(void)
{
    if (left >= 0 && !left--)
        kill(getpid(), SIGKILL);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define COUNTED(type, name, parameters, arguments) \
    type name parameters                           \
    {                                              \
        count();                                   \
        return REAL(name) arguments;               \
    }

COUNTED(int, fsync, (int fd), (fd))
COUNTED(int, syncfs, (int fd), (fd))
COUNTED(int, unlinkat, (int directory, const char *path, int flags), (directory, path, flags))
COUNTED(int, unlink, (const char *path), (path))
COUNTED(int, rmdir, (const char *path), (path))
COUNTED(int, mkdirat, (int directory, const char *path, mode_t mode), (directory, path, mode))
COUNTED(int, symlinkat, (const char *text, int directory, const char *path), (text, directory, path))
COUNTED(int, linkat, (int from, const char *old, int to, const char *new, int flags), (from, old, to, new, flags))
COUNTED(int, renameat, (int from, const char *old, int to, const char *new), (from, old, to, new))
COUNTED(int, renameat2, (int from, const char *old, int to, const char *new, unsigned flags), (from, old, to, new, flags))
COUNTED(int, fchmod, (int fd, mode_t mode), (fd, mode))
COUNTED(int, fchown, (int fd, uid_t uid, gid_t gid), (fd, uid, gid))
COUNTED(int, futimens, (int fd, const struct timespec times[2]), (fd, times))
COUNTED(int, utimensat, (int directory, const char *path, const struct timespec times[2], int flags),
        (directory, path, times, flags))
COUNTED(int, ftruncate64, (int fd, off64_t size), (fd, size))
COUNTED(int, fallocate64, (int fd, int mode, off64_t at, off64_t size), (fd, mode, at, size))
COUNTED(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size))
COUNTED(ssize_t, pwrite64, (int fd, const void *from, size_t size, off64_t at), (fd, from, size, at))
COUNTED(ssize_t, copy_file_range, (int from, off64_t *at, int to, off64_t *there, size_t size, unsigned flags),
        (from, at, to, there, size, flags))
COUNTED(int, fsetxattr, (int fd, const char *name, const void *value, size_t size, int flags),
        (fd, name, value, size, flags))
COUNTED(int, fremovexattr, (int fd, const char *name), (fd, name))

static mode_t mode_of(int flags, va_list rest) { return flags & O_CREAT ? va_arg(rest, mode_t) : 0; }

int openat64(int directory, const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    if (flags & O_CREAT)
        count();
    return REAL(openat64)(directory, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    if (flags & O_CREAT)
        count();
    return REAL(open64)(path, flags, mode);
}

/* A lease that is taken: a kill between it and its use. */
int fcntl64(int fd, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    if (command == F_SETLEASE)
        count();
    return REAL(fcntl64)(fd, command, argument);
}

long syscall(long number, ...)
{
    va_list rest;
    long a[6];
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_renameat2)
        count();
    return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
