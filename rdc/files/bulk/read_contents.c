/*
 * read_contents.c - the content, or both ends of it, of many files of one tree.
 *
 * What it computes is defined by rdc/files/bulk/open_many.py. A small file costs six system calls and nothing else, where
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
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/nanoseconds.h"
#include "depth/rows_at_once.h"
#include "root/open_beneath.h"

/* O_NONBLOCK: opening a fifo that took the file's place must not wait for a writer. */
#define READ_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* The kernel's default read-ahead window: for smaller files the advice would be a wasted call. */
#define READAHEAD_WORTH (128 << 10)

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
        if (size > READAHEAD_WORTH) /* advice only */
            (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
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

typedef struct {
    int directory;
    const char **paths;
    const rdc_wanted *wanted;
    uint64_t head, tail;
    uint8_t **targets; /* where the content of each file goes */
    int32_t *outcomes;
    int64_t *ctimes;
    rdc_rows_seen *seen;
} reading;

static void read_row(void *context, size_t row)
{
    const reading *r = context;
    const int fd = rdc_open_beneath(r->directory, r->paths[row], READ_FLAGS);

    r->ctimes[row] = 0;
    if (fd < 0) {
        r->outcomes[row] = errno;
        rdc_note_errno(r->seen);
        return;
    }
    r->outcomes[row] = read_open(fd, r->wanted + row, r->head, r->tail, r->targets[row], r->ctimes + row);
    close(fd);
}

int rdc_read_contents(int directory, const char *paths, const rdc_wanted *wanted, size_t count, uint64_t head,
                      uint64_t tail, uint8_t *out, int32_t *outcomes, int64_t *ctimes, unsigned depth, unsigned most,
                      rdc_rows_seen *seen)
{
    reading r = {directory, malloc((count + 1) * sizeof *r.paths), wanted, head, tail,
                 malloc((count + 1) * sizeof *r.targets), outcomes, ctimes, seen};
    const int ready = r.paths && r.targets;

    for (size_t i = 0; ready && i < count; i++) {
        r.paths[i] = paths;
        r.targets[i] = out;
        paths += strlen(paths) + 1;
        out += rdc_content_bytes(le64toh(wanted[i].size), head, tail);
    }
    if (ready) {
        rdc_rows_deepening(count, &depth, most, read_row, &r, seen);
        /* Alone, a file may find the descriptor that it lacked among others. */
        for (size_t i = 0; depth > 1 && i < count; i++)
            if (outcomes[i] == EMFILE || outcomes[i] == ENFILE)
                read_row(&r, i);
    }
    free(r.paths);
    free(r.targets);
    return ready;
}

#endif
