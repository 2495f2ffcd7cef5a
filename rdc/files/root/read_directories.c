/*
 * read_directories.c - directories of a walk, one after another, in one set of columns.
 *
 * What it computes is defined by rdc/files/root/lister.py. Each directory is opened from the top one, as alone.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "root/read_directories.h"

#ifdef __linux__

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "root/open_beneath.h"

#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

int rdc_grow(rdc_grown *grown, const void *bytes, size_t size)
{
    if (grown->room - grown->size < size) {
        if (size > SIZE_MAX / 4 - grown->size)
            return ENOMEM;
        const size_t room = 2 * (grown->size + size) + 64;
        uint8_t *at = realloc(grown->at, room);
        if (!at)
            return ENOMEM;
        grown->at = at;
        grown->room = room;
    }
    if (size)
        memcpy(grown->at + grown->size, bytes, size);
    grown->size += size;
    return 0;
}

static int grow_number(rdc_grown *grown, uint64_t number)
{
    number = htole64(number);
    return rdc_grow(grown, &number, sizeof number);
}

/* Where the last of the strings begins that each end with NUL. There is one. */
static size_t last_string(const rdc_grown *strings)
{
    size_t at = strings->size - 1;
    while (at && strings->at[at - 1])
        at--;
    return at;
}

static int is_plain(const rdc_entries *e)
{
    return !e->temporaries_size && !e->bad_count && !e->distant_mtimes.count && !e->distant_ctimes.count &&
           e->count <= RDC_RUN_ROWS && !memchr(e->kinds, RDC_SPECIAL, e->count);
}

/* Tells whether all subdirectories are on the file system of their own directory, which is open as `fd`. */
static int is_of_one_device(const rdc_entries *e, int fd)
{
    struct stat own;

    if (!memchr(e->kinds, RDC_DIRECTORY, e->count))
        return 1;
    if (fstat(fd, &own))
        return 0;
    for (size_t row = 0; row < e->count; row++)
        if (e->kinds[row] == RDC_DIRECTORY && e->devices[row] != htole64((uint64_t)own.st_dev))
            return 0;
    return 1;
}

/* Adds the subdirectories to those to come, the first one last. `path` ends with NUL. */
static int add_below(rdc_run *run, const char *path, const rdc_entries *e)
{
    const size_t length = strlen(path);
    const uint8_t *end = e->names + e->names_size;

    for (size_t row = e->count; row--;) {
        const uint8_t *name = end - 1;
        while (name > e->names && name[-1])
            name--;
        if (e->kinds[row] == RDC_DIRECTORY && ((length && (rdc_grow(&run->todo, path, length) ||
                                                           rdc_grow(&run->todo, "/", 1))) ||
                                               rdc_grow(&run->todo, name, (size_t)(end - name))))
            return ENOMEM;
        end = name;
    }
    return 0;
}

static int add_rows(rdc_run *run, const char *path, const rdc_entries *e)
{
    const size_t n = e->count, with_nul = strlen(path) + 1;
    rdc_grown *c = run->columns;

    if (!n)
        return 0;
    int failed = rdc_grow(c + RDC_PATHS, path, with_nul) || grow_number(c + RDC_FIRST_ROWS, run->rows) ||
                 rdc_grow(c + RDC_TEXT, "", 1) || rdc_grow(c + RDC_TEXT, path, with_nul) ||
                 grow_number(c + RDC_FIRST_NAMES, c[RDC_TEXT].size) ||
                 rdc_grow(c + RDC_TEXT, e->names, e->names_size) ||
                 grow_number(c + RDC_FIRST_TARGETS, c[RDC_TARGETS].size) ||
                 rdc_grow(c + RDC_NAMES, e->names, e->names_size) ||
                 rdc_grow(c + RDC_TARGETS, e->targets, e->link_bytes) || rdc_grow(c + RDC_KINDS, e->kinds, n) ||
                 rdc_grow(c + RDC_MODES, e->modes, 2 * n) || rdc_grow(c + RDC_SIZES, e->sizes, 8 * n) ||
                 rdc_grow(c + RDC_MTIMES, e->mtimes, 8 * n) || rdc_grow(c + RDC_UIDS, e->uids, 4 * n) ||
                 rdc_grow(c + RDC_GIDS, e->gids, 4 * n) || rdc_grow(c + RDC_DEVICES, e->devices, 8 * n) ||
                 rdc_grow(c + RDC_INODES, e->inodes, 8 * n) || rdc_grow(c + RDC_LINKS, e->links, 4 * n) ||
                 rdc_grow(c + RDC_ALLOCATED, e->allocated, 8 * n) || rdc_grow(c + RDC_CTIMES, e->ctimes, 8 * n);
    run->rows += n;
    return failed ? ENOMEM : 0;
}

static void count_waits(rdc_run *run, const rdc_rows_seen *seen, uint64_t elapsed, size_t rows)
{
    const uint64_t mean = elapsed / (1 + rows);

    run->looked++;
    run->slow += mean > RDC_WAIT_NANOSECONDS;
    run->waited += mean;
    run->elapsed += elapsed;
    run->seen.rows += seen->rows;
    run->seen.own_rows += seen->own_rows;
    run->seen.waited += seen->waited;
    run->seen.no_descriptor |= seen->no_descriptor;
    run->seen.no_thread |= seen->no_thread;
}

/* Reads the last one of `todo`, and takes it from there. Returns ENOMEM, or 0 also where the directory has an error. */
static int read_next(int directory, size_t limit, unsigned depth, unsigned most, rdc_run *run)
{
    const size_t at = last_string(&run->todo);
    const char *last = (const char *)run->todo.at + at;
    const size_t length = run->todo.size - at;
    char path[RDC_PATH_MOST + 1];
    rdc_rows_seen seen = {0};
    rdc_entries e;

    if (length > sizeof path) {
        run->error = ENAMETOOLONG;
        return 0;
    }
    memcpy(path, last, length); /* with its NUL: the stack below may move */
    if (length > 1 && !rdc_is_plain_path(path)) {
        run->error = EINVAL;
        return 0;
    }
    const uint64_t begun = rdc_steady_clock();
    const int fd =
        length > 1 ? rdc_open_beneath(directory, path, DIRECTORY_FLAGS) : openat(directory, ".", DIRECTORY_FLAGS);
    run->error = fd < 0 ? errno : rdc_read_directory(fd, limit, &e, depth, most, &seen);
    const int joins = !run->error && is_plain(&e) && is_of_one_device(&e, fd);
    if (fd >= 0)
        close(fd);
    if (run->error)
        return 0;
    count_waits(run, &seen, rdc_steady_clock() - begun, e.count);
    run->todo.size = at;
    if (!joins) {
        run->alone = e;
        run->has_alone = 1;
        return rdc_grow(&run->alone_path, path, length);
    }
    run->directories++;
    int failed = add_rows(run, path, &e);
    if (!failed)
        failed = add_below(run, path, &e);
    rdc_entries_free(&e);
    return failed;
}

int rdc_read_directories(int directory, size_t limit, unsigned depth, unsigned most, rdc_run *run)
{
    int failed = 0;

    while (!failed && run->todo.size && !run->error && !run->has_alone && run->directories < RDC_RUN_DIRECTORIES &&
           run->rows < RDC_RUN_ROWS && run->todo.size < RDC_RUN_PATHS && run->slow < RDC_RUN_SLOW)
        failed = read_next(directory, limit, depth, most, run);
    run->seen.elapsed = run->elapsed;
    return failed;
}

void rdc_run_free(rdc_run *run)
{
    for (size_t i = 0; i < RDC_RUN_COLUMNS; i++)
        free(run->columns[i].at);
    free(run->todo.at);
    free(run->alone_path.at);
    if (run->has_alone)
        rdc_entries_free(&run->alone);
    memset(run, 0, sizeof *run);
}

#endif
