/*
 * read_contents.c - the content, or both ends of it, of many files of one tree.
 *
 * What it computes is defined by rdc/files/bulk/read_many.py. A small file costs six system calls and nothing else, where
 * Python adds three times as much around them. The second fstat proves that what was read was one state of the file:
 * a write in between moves its ctime, which no program can set back.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "bulk/read_contents.h"

#ifdef __linux__

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/nanoseconds.h"
#include "root/open_beneath.h"

/* O_NONBLOCK: opening a fifo that took the file's place must not wait for a writer. */
#define READ_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

uint64_t rdc_content_bytes(uint64_t size, uint64_t head, uint64_t tail)
{
    return size <= head || size - head <= tail ? size : head + tail;
}

static int read_part(int fd, uint8_t *out, uint64_t length, uint64_t offset)
{
    while (length) {
        ssize_t got = pread(fd, out, length, (off_t)offset);
        if (got < 0) {
            if (errno == EINTR)
                continue;
            return errno;
        }
        if (got == 0)
            return RDC_TOUCHED;
        out += got;
        offset += (uint64_t)got;
        length -= (uint64_t)got;
    }
    return 0;
}

static int same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static int read_open(int fd, const rdc_wanted *wanted, uint64_t head, uint64_t tail, uint8_t *out,
                     int64_t *ctime)
{
    const uint64_t size = le64toh(wanted->size);
    struct stat before, after;
    int failed;

    if (fstat(fd, &before))
        return errno;
    if (!S_ISREG(before.st_mode) || (uint64_t)before.st_dev != le64toh(wanted->device) ||
        (uint64_t)before.st_ino != le64toh(wanted->inode))
        return RDC_REPLACED;
    if ((uint64_t)before.st_size != size)
        return RDC_RESIZED;
    if (rdc_content_bytes(size, head, tail) == size) {
        failed = read_part(fd, out, size, 0);
    } else {
        failed = read_part(fd, out, head, 0);
        if (!failed)
            failed = read_part(fd, out + head, tail, size - tail);
    }
    if (failed)
        return failed;
    if (fstat(fd, &after))
        return errno;
    *ctime = rdc_nanoseconds(after.st_ctim);
    return after.st_size == before.st_size && same_time(before.st_mtim, after.st_mtim) &&
                   same_time(before.st_ctim, after.st_ctim)
               ? 0
               : RDC_TOUCHED;
}

void rdc_read_contents(int directory, const char *paths, const rdc_wanted *wanted, size_t count, uint64_t head,
                       uint64_t tail, uint8_t *out, int32_t *outcomes, int64_t *ctimes)
{
    for (size_t i = 0; i < count; i++) {
        ctimes[i] = 0;
        const int fd = rdc_open_beneath(directory, paths, READ_FLAGS);
        if (fd < 0) {
            outcomes[i] = errno;
        } else {
            outcomes[i] = read_open(fd, wanted + i, head, tail, out, ctimes + i);
            close(fd);
        }
        paths += strlen(paths) + 1;
        out += rdc_content_bytes(le64toh(wanted[i].size), head, tail);
    }
}

#endif
