/*
 * random_faults.h - put before a source of rdc/files: system calls and allocations fail now and then, or give less than
 * was asked for, as RDC_FAULTS says: one call in so many (0 or unset: none). Every outcome is one the calls may have.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#ifdef __SSE2__
#include <immintrin.h>
#endif
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

__attribute__((unused)) static int rdc_fails(int memory)
{
    static const int errors[] = {EINTR, EINTR, EIO, EACCES, ENOENT, ENOMEM, EMFILE, ENOSPC, ENOSYS, EAGAIN, EPERM, ELOOP};
    static __thread uint64_t state;
    static int one_in = -1;
    if (one_in < 0) {
        const char *given = getenv("RDC_FAULTS");
        one_in = given ? atoi(given) : 0;
    }
    if (!one_in)
        return 0;
    if (!state) {
        const char *seed = getenv("RDC_FAULTS_SEED");
        state = (seed ? strtoull(seed, NULL, 10) : 1) * 0x9e3779b97f4a7c15u + (uint64_t)(uintptr_t)&state;
    }
    state = state * 6364136223846793005u + 1442695040888963407u;
    if ((state >> 33) % (uint64_t)one_in)
        return 0;
    errno = memory ? ENOMEM : errors[(state >> 20) % (sizeof errors / sizeof errors[0])];
    return 1;
}

/* Less than was asked for, which a read or write may always give. */
__attribute__((unused)) static size_t rdc_less(size_t size)
{
    int saved = errno;
    size_t less = size > 1 && rdc_fails(0) ? size / 2 : size;
    errno = saved;
    return less;
}

#define malloc(size) (rdc_fails(1) ? NULL : malloc(size))
#define realloc(at, size) (rdc_fails(1) ? NULL : realloc(at, size))
#define openat(...) (rdc_fails(0) ? -1 : openat(__VA_ARGS__))
#define read(fd, to, size) (rdc_fails(0) ? -1 : read(fd, to, rdc_less(size)))
#define pread(fd, to, size, at) (rdc_fails(0) ? -1 : pread(fd, to, rdc_less(size), at))
#define pwrite(fd, from, size, at) (rdc_fails(0) ? -1 : pwrite(fd, from, rdc_less(size), at))
#define fstat(fd, found) (rdc_fails(0) ? -1 : fstat(fd, found))
#define fstatat(fd, name, found, flags) (rdc_fails(0) ? -1 : fstatat(fd, name, found, flags))
#define readlinkat(fd, name, to, size) (rdc_fails(0) ? -1 : readlinkat(fd, name, to, size))
#define lseek(fd, to, whence) (rdc_fails(0) ? -1 : lseek(fd, to, whence))
#define llistxattr(path, to, size) (rdc_fails(0) ? -1 : llistxattr(path, to, size))
#define fchmod(fd, mode) (rdc_fails(0) ? -1 : fchmod(fd, mode))
#define fchown(fd, uid, gid) (rdc_fails(0) ? -1 : fchown(fd, uid, gid))
#define futimens(fd, times) (rdc_fails(0) ? -1 : futimens(fd, times))
#define renameat(from, old, to, name) (rdc_fails(0) ? -1 : renameat(from, old, to, name))
#define flock(fd, how) (rdc_fails(0) ? -1 : flock(fd, how))
#define syscall(...) (rdc_fails(0) ? -1 : syscall(__VA_ARGS__))
