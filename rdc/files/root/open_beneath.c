/*
 * open_beneath.c - opens what lies below a directory, following no link on the way.
 *
 * One openat2 where the system has it and the path fits a call; else a descriptor for each directory on the way.
 */
#define _GNU_SOURCE
#include "root/open_beneath.h"

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define WHOLE_PATH_MOST 4000 /* below PATH_MAX (4,096) */
#define NAME_MOST 255
#define PASS_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* struct open_how of linux/openat2.h (Linux 5.6), which older systems' headers lack. */
typedef struct {
    uint64_t flags, mode, resolve;
} open_how;

#define NO_MAGICLINKS 0x02
#define NO_SYMLINKS 0x04
#define BENEATH 0x08

static int open_name(int directory, const char *name, int flags)
{
    int fd;
    do
        fd = openat(directory, name, flags);
    while (fd < 0 && errno == EINTR);
    return fd;
}

static void close_quietly(int fd)
{
    const int saved_errno = errno;
    close(fd);
    errno = saved_errno;
}

/* Nothing that leads elsewhere: no empty name, no "." and no "..". */
static int is_plain(const char *name, size_t length)
{
    const int dots = name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.'));
    return length && length <= NAME_MOST && !dots;
}

int rdc_is_plain_path(const char *path)
{
    for (;;) {
        const size_t length = strcspn(path, "/");
        if (!is_plain(path, length))
            return 0;
        if (!path[length])
            return 1;
        path += length + 1;
    }
}

static int open_steps(int directory, const char *path, int flags)
{
    int here = directory, next;
    for (;;) {
        char name[NAME_MOST + 1];
        const size_t length = strcspn(path, "/");
        const int last = !path[length];
        if (is_plain(path, length)) {
            memcpy(name, path, length);
            name[length] = 0;
            next = open_name(here, name, last ? flags : PASS_FLAGS);
        } else {
            errno = length > NAME_MOST ? ENAMETOOLONG : EINVAL;
            next = -1;
        }
        if (here != directory)
            close_quietly(here);
        if (last || next < 0)
            return next;
        here = next;
        path += length + 1;
    }
}

int rdc_open_beneath(int directory, const char *path, int flags)
{
    if (strlen(path) <= WHOLE_PATH_MOST) {
        const open_how how = {(uint64_t)flags, 0, BENEATH | NO_SYMLINKS | NO_MAGICLINKS};
        const long fd = syscall(SYS_openat2, directory, path, &how, sizeof how);
        /* EPERM is what filters of system calls answer to those they do not know. EAGAIN: a rename raced. */
        if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EAGAIN && errno != EINTR))
            return (int)fd;
    }
    return open_steps(directory, path, flags);
}

#endif
