/*
 * list_xattrs.c - which of a directory's entries have extended attributes, and what one of them is.
 *
 * Most trees have nearly none, and each entry has to be asked all the same. By name that is one lookup; by a path
 * below /proc/self/fd it is five, which take longer than the answer.
 */
#define _GNU_SOURCE
#include "facts/list_xattrs.h"

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Numbers since 5.1 are the same on every architecture but alpha. */
#ifndef SYS_getxattrat
#define SYS_getxattrat 464
#endif
#ifndef SYS_listxattrat
#define SYS_listxattrat 465
#endif

#define NAME_MOST 255
#define LIST_USUAL 1024 /* the kernel allocates as much as it is offered: from 8 KiB on that takes longer */
#define LIST_MOST 65536 /* XATTR_LIST_MAX: a longer list is E2BIG, whatever is offered */

/* struct xattr_args of linux/xattr.h (Linux 6.13), which older systems' headers lack. */
typedef struct {
    _Alignas(8) uint64_t value;
    uint32_t size, flags;
} xattr_args;

static ssize_t list_by_name(int directory, const char *entry, char *names, size_t size)
{
    return syscall(SYS_listxattrat, directory, entry, AT_SYMLINK_NOFOLLOW, names, size);
}

static ssize_t list_by_path(int directory, const char *entry, char *names, size_t size)
{
    char path[sizeof "/proc/self/fd/2147483647/" + NAME_MOST];
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", directory, entry);
    return llistxattr(path, names, size);
}

ssize_t rdc_get_xattr(int directory, const char *entry, const char *attribute, char *value, size_t size)
{
    const xattr_args args = {(uint64_t)(uintptr_t)value, (uint32_t)size, 0};
    ssize_t found;
    do
        found = syscall(SYS_getxattrat, directory, entry, AT_SYMLINK_NOFOLLOW, attribute, &args, sizeof args);
    while (found < 0 && errno == EINTR);
    return found;
}

int rdc_xattrs_go_by_name(void)
{
    char byte;
    /* A kernel that has them looks for the descriptor and says EBADF. One that has not says ENOSYS; a filter of system
     * calls says whatever it was told to, mostly EPERM, which an entry's own file system may say as well. */
    return list_by_name(-1, "a", &byte, 1) < 0 && errno == EBADF &&
           rdc_get_xattr(-1, "a", "user.a", &byte, 1) < 0 && errno == EBADF;
}

/* Makes room for `more` elements of `width` bytes after `count`; 0 if there is no memory. */
static int reserve(void **at, size_t count, size_t more, size_t *room, size_t width)
{
    if (*room - count >= more)
        return 1;
    const size_t wanted = 2 * *room + more;
    void *grown = realloc(*at, wanted * width);
    if (!grown)
        return 0;
    *at = grown;
    *room = wanted;
    return 1;
}

static int reserve_names(rdc_listed_entries *l, size_t more)
{
    return reserve((void **)&l->names, l->size, more, &l->names_room, 1);
}

#define NO_MEMORY (-2)

/* Lists one entry's behind the others': their bytes, -1 with errno, or NO_MEMORY, which the kernel's is not. */
static ssize_t list_one(int directory, const char *entry, int by_name, rdc_listed_entries *l)
{
    const size_t length = strlen(entry);
    if (!length || length > NAME_MOST || strchr(entry, '/') || !strcmp(entry, "..")) {
        errno = EINVAL;
        return -1;
    }
    size_t offered = LIST_USUAL;
    for (;;) {
        if (!reserve_names(l, offered))
            return NO_MEMORY;
        const ssize_t size = (by_name ? list_by_name : list_by_path)(directory, entry, l->names + l->size, offered);
        if (size >= 0)
            return size;
        /* Once: nothing that is added meanwhile makes a list longer than the longest. */
        if (errno == ERANGE && offered < LIST_MOST)
            offered = LIST_MOST;
        else if (errno != EINTR)
            return -1;
    }
}

static int has_none(int error)
{
    return error == EOPNOTSUPP || error == ENOSYS;
}

int rdc_list_xattrs(int directory, const char *entries, size_t size, uint64_t row, size_t offset, size_t limit,
                    int by_name, rdc_listed_entries *listed)
{
    rdc_listed_entries *l = listed;
    memset(l, 0, sizeof *l);
    for (; offset < size && l->size + l->count * sizeof *l->rows < limit; row++) {
        const ssize_t found = list_one(directory, entries + offset, by_name, l);
        const int error = found < 0 ? errno : 0;
        if (found == NO_MEMORY)
            goto no_memory;
        if (error ? !has_none(error) : found > 0) {
            if (!reserve((void **)&l->rows, l->count, 1, &l->rows_room, sizeof *l->rows))
                goto no_memory;
            l->rows[l->count++] = (rdc_listed){row, error ? 0 : (uint32_t)found, error};
            l->size += error ? 0 : (size_t)found;
        }
        offset += strlen(entries + offset) + 1;
    }
    l->next_row = row;
    l->next_offset = offset;
    return 0;
no_memory:
    rdc_listed_free(l);
    return ENOMEM;
}

void rdc_listed_free(rdc_listed_entries *listed)
{
    free(listed->rows);
    free(listed->names);
}

#endif
