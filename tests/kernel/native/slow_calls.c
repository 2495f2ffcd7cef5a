/*
 * slow_calls.c - preloaded: calls that wait for storage take longer, as on a remote or a spinning disk.
 *
 * SLOW_OPEN, SLOW_STAT, SLOW_LIST, SLOW_CHANGE: microseconds that each call waits before it is made; unset is 0. A call
 * that opens a directory for reading waits for SLOW_LIST, any other open for SLOW_OPEN, a look at a name for SLOW_STAT;
 * what renames, links or removes a name waits for SLOW_CHANGE. SLOW_NAME: only names that contain this text wait.
 * Only calls on relative paths wait, as rdc makes them below the top of a tree.
 *
 * SLOW_NO_THREAD: no thread is started. SLOW_MOST_OPEN: an open fails with EMFILE while more calls than that wait. SLOW_COUNT: a file of two ints, which all
 * processes share: the threads that were started, and the most calls of one process that waited at a time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static long open_us, stat_us, list_us, change_us, most_open, no_thread;
static const char *part;
static atomic_int inside, unshared[2], *started = unshared, *deepest = unshared + 1;

static long number(const char *name)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin(void)
{
    open_us = number("SLOW_OPEN");
    stat_us = number("SLOW_STAT");
    list_us = number("SLOW_LIST");
    change_us = number("SLOW_CHANGE");
    most_open = number("SLOW_MOST_OPEN");
    no_thread = number("SLOW_NO_THREAD");
    part = getenv("SLOW_NAME");
    const char *file = getenv("SLOW_COUNT");
    const int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *shared = mmap(NULL, sizeof unshared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (shared == MAP_FAILED)
        return;
    started = shared;
    deepest = started + 1;
}

/* Returns 0 where the call is to fail for want of descriptors. */
static int wait_for(long microseconds, const char *path, int opens)
{
    if (!path || path[0] == '/' || !microseconds || (part && !strstr(path, part)))
        return 1;
    const int now = atomic_fetch_add(&inside, 1) + 1;
    int most = atomic_load(deepest);
    while (now > most && !atomic_compare_exchange_weak(deepest, &most, now))
        ;
    struct timespec rest = {microseconds / 1000000, microseconds % 1000000 * 1000};
    const int saved = errno;
    while (nanosleep(&rest, &rest))
        ;
    atomic_fetch_sub(&inside, 1);
    errno = opens && most_open && now > most_open ? EMFILE : saved;
    return !(opens && most_open && now > most_open);
}

static int wait_for_open(const char *path, int flags)
{
    const int lists = flags & O_DIRECTORY && !(flags & O_PATH);
    return wait_for(lists ? list_us : open_us, path, 1);
}

#define OPEN(name)                                                                                                     \
    int name(int directory, const char *path, int flags, ...)                                                          \
    {                                                                                                                  \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;                                                      \
        va_end(rest);                                                                                                  \
        return wait_for_open(path, flags) ? REAL(name)(directory, path, flags, mode) : -1;                             \
    }
OPEN(openat)
OPEN(openat64)

#define WAITS(result, name, microseconds, path, parameters, arguments)                                                 \
    result name parameters                                                                                             \
    {                                                                                                                  \
        wait_for(microseconds, path, 0);                                                                               \
        return REAL(name) arguments;                                                                                   \
    }
WAITS(int, fstatat, stat_us, path, (int fd, const char *path, struct stat *to, int flags), (fd, path, to, flags))
WAITS(int, fstatat64, stat_us, path, (int fd, const char *path, struct stat64 *to, int flags), (fd, path, to, flags))
WAITS(int, statx, stat_us, path, (int fd, const char *path, int flags, unsigned mask, struct statx *to),
      (fd, path, flags, mask, to))
WAITS(int, renameat, change_us, old, (int from, const char *old, int to, const char *new), (from, old, to, new))
WAITS(int, linkat, change_us, old, (int from, const char *old, int to, const char *new, int flags),
      (from, old, to, new, flags))
WAITS(int, unlinkat, change_us, path, (int fd, const char *path, int flags), (fd, path, flags))

long syscall(long number, ...)
{
    va_list rest;
    long a[6];
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    int made = 1;
    if (number == SYS_openat2)
        made = wait_for_open((const char *)a[1], (int)*(const unsigned long *)a[2]);
    else if (number == SYS_renameat2)
        wait_for(change_us, (const char *)a[1], 0);
    return made ? REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]) : -1;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    if (no_thread)
        return EAGAIN;
    atomic_fetch_add(started, 1);
    return REAL(pthread_create)(thread, attributes, run, argument);
}
