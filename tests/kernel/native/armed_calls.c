/*
 * armed_calls.c - preloaded: the system calls that make and replace files are counted, and the one with the given
 * number fails, or is the last thing that the process was about to do. arm() begins the count.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long count;
static long target;
static int failure, armed;

/* number: which call, from 0; error: an errno, or 0 for a kill. */
void arm(long number, int error)
{
    count = 0;
    target = number;
    failure = error;
    armed = 1;
}

/* How many calls there were. */
long disarm(void)
{
    armed = 0;
    return count;
}

static int hit(void)
{
    if (!armed || count++ != target)
        return 0;
    if (!failure)
        kill(getpid(), SIGKILL);
    errno = failure;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int openat64(int directory, const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return hit() ? -1 : REAL(openat64)(directory, path, flags, mode);
}

ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at)
{
    if (hit())
        return -1;
    /* Half of it: who writes must go on. */
    return REAL(pwrite64)(fd, from, size > 1 ? size / 2 : size, at);
}

ssize_t read(int fd, void *to, size_t size) { return hit() ? -1 : REAL(read)(fd, to, size > 1 ? size / 2 : size); }
int fstat64(int fd, struct stat64 *found) { return hit() ? -1 : REAL(fstat64)(fd, found); }
int flock(int fd, int operation) { return hit() ? -1 : ((int (*)(int, int))dlsym(RTLD_NEXT, "flock"))(fd, operation); }
int fchmod(int fd, mode_t mode) { return hit() ? -1 : REAL(fchmod)(fd, mode); }
int fchown(int fd, uid_t uid, gid_t gid) { return hit() ? -1 : REAL(fchown)(fd, uid, gid); }
int futimens(int fd, const struct timespec times[2]) { return hit() ? -1 : REAL(futimens)(fd, times); }
int unlinkat(int directory, const char *path, int flags)
{
    return hit() ? -1 : REAL(unlinkat)(directory, path, flags);
}
int fsync(int fd) { return hit() ? -1 : REAL(fsync)(fd); }
int syncfs(int fd) { return hit() ? -1 : REAL(syncfs)(fd); }
int renameat(int from, const char *old, int to, const char *new)
{
    return hit() ? -1 : REAL(renameat)(from, old, to, new);
}
int linkat(int from, const char *old, int to, const char *new, int flags)
{
    return hit() ? -1 : REAL(linkat)(from, old, to, new, flags);
}
int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    return hit() ? -1 : REAL(renameat2)(from, old, to, new, flags);
}

long syscall(long number, ...)
{
    long a[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_renameat2 && hit())
        return -1;
    return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
