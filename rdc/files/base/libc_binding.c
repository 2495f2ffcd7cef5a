/*
 * libc_binding.c - calls of Linux, macOS and their C libraries that Python's os module
 * does not offer.
 *
 * Each is the call and nothing else; rdc/files/base/syscalls.py says what they are for. A function that the system this
 * is built on does not have is not in the module.
 */
#define _GNU_SOURCE
#include "functions.h"

#ifdef __linux__

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Numbers since 5.1 are the same on every architecture but alpha. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static PyObject *done(long result)
{
    return result < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromLong(result);
}

static PyObject *openat2_(PyObject *Py_UNUSED(module), PyObject *args)
{
    int directory;
    unsigned long long flags, resolve;
    const char *path;
    long fd;
    if (!PyArg_ParseTuple(args, "iyKK:openat2", &directory, &path, &flags, &resolve))
        return NULL;
    /* struct open_how of linux/openat2.h (Linux 5.6), which older systems' headers lack. */
    const struct {
        uint64_t flags, mode, resolve;
    } how = {flags, 0, resolve};
    Py_BEGIN_ALLOW_THREADS
    fd = syscall(SYS_openat2, directory, path, &how, sizeof how);
    Py_END_ALLOW_THREADS
    return done(fd);
}

static PyObject *fchmodat2_(PyObject *Py_UNUSED(module), PyObject *args)
{
    int directory, flags;
    unsigned mode;
    const char *name;
    long failed;
    if (!PyArg_ParseTuple(args, "iyIi:fchmodat2", &directory, &name, &mode, &flags))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    failed = syscall(SYS_fchmodat2, directory, name, mode, flags);
    Py_END_ALLOW_THREADS
    return done(failed);
}

static PyObject *renameat2_(PyObject *Py_UNUSED(module), PyObject *args)
{
    int old_directory, new_directory;
    unsigned flags;
    const char *old_name, *new_name;
    long failed;
    if (!PyArg_ParseTuple(args, "iyiyI:renameat2", &old_directory, &old_name, &new_directory, &new_name, &flags))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    failed = syscall(SYS_renameat2, old_directory, old_name, new_directory, new_name, flags);
    Py_END_ALLOW_THREADS
    return done(failed);
}

static PyObject *syncfs_(PyObject *Py_UNUSED(module), PyObject *args)
{
    int fd, failed;
    if (!PyArg_ParseTuple(args, "i:syncfs", &fd))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    failed = syncfs(fd);
    Py_END_ALLOW_THREADS
    return done(failed);
}

static PyObject *fallocate_(PyObject *Py_UNUSED(module), PyObject *args)
{
    int fd, mode, failed;
    long long offset, length;
    if (!PyArg_ParseTuple(args, "iiLL:fallocate", &fd, &mode, &offset, &length))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    failed = fallocate(fd, mode, (off_t)offset, (off_t)length);
    Py_END_ALLOW_THREADS
    return done(failed);
}

static PyObject *refresh_stat(PyObject *Py_UNUSED(module), PyObject *args)
{
    /* Values of linux/stat.h (Linux 4.11); the kernel's struct statx has 256 bytes. */
    enum { BASIC_STATS = 0x7ff, FORCE_SYNC = 0x2000 };
    uint64_t found[32];
    int directory;
    const char *name;
    long failed;
    if (!PyArg_ParseTuple(args, "iy:refresh_stat", &directory, &name))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    failed = syscall(SYS_statx, directory, name, AT_SYMLINK_NOFOLLOW | FORCE_SYNC, BASIC_STATS, found);
    Py_END_ALLOW_THREADS
    return done(failed);
}

static PyObject *birth_time(PyObject *Py_UNUSED(module), PyObject *args)
{
    /* Values of linux/stat.h: the mask comes first, and the time of birth behind 80 bytes. */
    enum { BIRTH = 0x800, SECONDS_AT = 80, NANOSECONDS_AT = 88 };
    unsigned char found[256] = {0};
    uint32_t mask, nanoseconds;
    int64_t seconds;
    int fd;
    long failed;
    if (!PyArg_ParseTuple(args, "i:birth_time", &fd))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    failed = syscall(SYS_statx, fd, "", AT_EMPTY_PATH, BIRTH, found);
    Py_END_ALLOW_THREADS
    if (failed)
        return PyErr_SetFromErrno(PyExc_OSError);
    memcpy(&mask, found, sizeof mask);
    memcpy(&seconds, found + SECONDS_AT, sizeof seconds);
    memcpy(&nanoseconds, found + NANOSECONDS_AT, sizeof nanoseconds);
    return PyLong_FromLongLong(mask & BIRTH ? (long long)seconds * 1000000000 + nanoseconds : 0);
}

static PyObject *set_access_time(PyObject *Py_UNUSED(module), PyObject *args)
{
    long long seconds;
    struct timespec times[2] = {{0, 0}, {0, UTIME_OMIT}};
    int fd, failed;
    if (!PyArg_ParseTuple(args, "iL:set_access_time", &fd, &seconds))
        return NULL;
    times[0].tv_sec = (time_t)seconds;
    Py_BEGIN_ALLOW_THREADS
    failed = utimensat(fd, "", times, AT_EMPTY_PATH);
    Py_END_ALLOW_THREADS
    return done(failed);
}

static PyObject *unshare_(PyObject *Py_UNUSED(module), PyObject *args)
{
    int flags;
    if (!PyArg_ParseTuple(args, "i:unshare", &flags))
        return NULL;
    return done(unshare(flags));
}

static PyObject *fstatfs_type(PyObject *Py_UNUSED(module), PyObject *args)
{
    int fd, failed;
    struct statfs found;
    if (!PyArg_ParseTuple(args, "i:fstatfs_type", &fd))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    failed = fstatfs(fd, &found);
    Py_END_ALLOW_THREADS
    if (failed)
        return PyErr_SetFromErrno(PyExc_OSError);
    /* f_type is signed on some architectures, and the numbers of the larger ones are not. */
    return PyLong_FromUnsignedLong((unsigned long)found.f_type & 0xFFFFFFFFUL);
}

#ifdef __GLIBC__
static PyObject *mallopt_(PyObject *Py_UNUSED(module), PyObject *args)
{
    int parameter, value;
    if (!PyArg_ParseTuple(args, "ii:mallopt", &parameter, &value))
        return NULL;
    return PyBool_FromLong(mallopt(parameter, value));
}
#endif

#elif defined(__APPLE__)

#include <errno.h>
#include <fcntl.h>
#include <sys/stdio.h>

/* As Linux numbers them in renameat2: what syscalls.py passes. */
#define NO_REPLACE 1
#define EXCHANGE 2

static PyObject *done(long result)
{
    /* To the callers, a file system that cannot is a system that cannot. */
    if (result < 0 && errno == ENOTSUP)
        errno = ENOSYS;
    return result < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromLong(result);
}

static PyObject *renameat2_(PyObject *Py_UNUSED(module), PyObject *args)
{
    int old_directory, new_directory, failed;
    unsigned flags;
    const char *old_name, *new_name;
    if (!PyArg_ParseTuple(args, "iyiyI:renameat2", &old_directory, &old_name, &new_directory, &new_name, &flags))
        return NULL;
    flags = flags == NO_REPLACE ? RENAME_EXCL : flags == EXCHANGE ? RENAME_SWAP : flags;
    Py_BEGIN_ALLOW_THREADS
    failed = renameatx_np(old_directory, old_name, new_directory, new_name, flags);
    Py_END_ALLOW_THREADS
    return done(failed);
}

static PyObject *full_fsync(PyObject *Py_UNUSED(module), PyObject *args)
{
    int fd, failed;
    if (!PyArg_ParseTuple(args, "i:full_fsync", &fd))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    failed = fcntl(fd, F_FULLFSYNC);
    Py_END_ALLOW_THREADS
    return done(failed);
}

#endif

PyMethodDef rdc_libc_functions[] = {
#ifdef __linux__
    {"fallocate", fallocate_, METH_VARARGS, NULL},
    {"fchmodat2", fchmodat2_, METH_VARARGS, NULL},
    {"fstatfs_type", fstatfs_type, METH_VARARGS, NULL},
    {"openat2", openat2_, METH_VARARGS, NULL},
    {"refresh_stat", refresh_stat, METH_VARARGS, NULL},
    {"birth_time", birth_time, METH_VARARGS, NULL},
    {"renameat2", renameat2_, METH_VARARGS, NULL},
    {"set_access_time", set_access_time, METH_VARARGS, NULL},
    {"syncfs", syncfs_, METH_VARARGS, NULL},
    {"unshare", unshare_, METH_VARARGS, NULL},
#ifdef __GLIBC__
    {"mallopt", mallopt_, METH_VARARGS, NULL},
#endif
#elif defined(__APPLE__)
    {"full_fsync", full_fsync, METH_VARARGS, NULL},
    {"renameat2", renameat2_, METH_VARARGS, NULL},
#endif
    {NULL, NULL, 0, NULL},
};
