/*
 * read_directory.c - one directory's entries, with their metadata, as sorted packed columns.
 *
 * What it computes is defined by rdc/files/root/listing_reference.py. It is getdents64, one fstatat for each entry of a buffer while
 * the kernel still has at hand what it has just told of them, and a sort of the names. Of directories of ten thousand files all stats
 * in the order of the names took a fourth longer, of those of a release of Linux a twentieth. statx took as long as
 * fstatat, which every kernel, C library and system call filter has.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "root/read_directory.h"

#ifdef __linux__

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/nanoseconds.h"
#include "depth/rows_at_once.h"
#include "base/sort_names.h"

#define NAME_MOST 255    /* NAME_BYTES of rdc/limits/paths.py: file systems in user space may send longer ones */
#define LINK_MOST 4096 /* the kernel gives at most a page */
#define RECORDS_SIZE (32 << 10)
#define TEMPORARY 255 /* as a kind: of which no more than the name is wanted */
#define UNKNOWN 254 /* as a kind: to be looked at */
#define GONE 253 /* as a kind: removed since its name was read */
#define MEASURED 32 /* entries of a buffer from which on it is measured how long they take */

/* getdents64(2) has no declaration of its record. */
typedef struct {
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[];
} record;

/* What the columns have of an entry. */
typedef struct {
    uint64_t size, mtime, device, inode, allocated, ctime;
    uint32_t uid, gid, links;
    uint16_t mode;
    uint8_t kind;
} facts;

typedef struct {
    uint8_t *at;
    size_t size, room;
} blob;

/* What has been read so far, and what may still be held. */
typedef struct {
    size_t left;
    blob names, targets, temporaries;
    sort_entry *sort_entries;
    facts *facts;
    size_t count, room;
    unsigned depth, most; /* entries that are looked at at a time, and may be in the end */
    int deeper;           /* whether `depth` is another one than was asked for */
    rdc_rows_seen *seen;
} reader;

static int charge(reader *r, size_t bytes)
{
    if (r->left < bytes)
        return EOVERFLOW;
    r->left -= bytes;
    return 0;
}

/* Appends a string and its NUL. `left` bounds all sizes below 2^32, so no sum here overflows. */
static int append(blob *b, const char *text, size_t length)
{
    if (b->room - b->size < length + 1) {
        size_t room = 2 * (b->size + length + 1) + 1024;
        uint8_t *at = realloc(b->at, room);
        if (!at)
            return ENOMEM;
        b->at = at;
        b->room = room;
    }
    memcpy(b->at + b->size, text, length);
    b->at[b->size + length] = 0;
    b->size += length + 1;
    return 0;
}

/* rdc/files/base/temporary_names.py has the pattern; a test compares. */
static int is_reserved(const char *name, size_t length)
{
    if ((length == 9 && !memcmp(name, ".rdc-undo", 9)) || (length == 10 && !memcmp(name, ".rdc-unite", 10)) ||
        (length == 10 && !memcmp(name, ".rdc.parts", 10)))
        return 1;
    return length == 5 + 16 + 4 && !memcmp(name, ".rdc-", 5) && strspn(name + 5, "0123456789abcdef") == 16 &&
           (!memcmp(name + 21, ".tmp", 4) || !memcmp(name + 21, ".old", 4));
}

static uint8_t kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return RDC_FILE;
    case S_IFDIR:
        return RDC_DIRECTORY;
    case S_IFLNK:
        return RDC_SYMLINK;
    default:
        return RDC_SPECIAL;
    }
}

static int add_name(reader *r, const char *name, size_t length, const facts *found)
{
    if (r->count == r->room) {
        const size_t room = 2 * r->room + 64;
        sort_entry *sort_entries = realloc(r->sort_entries, room * sizeof *sort_entries);
        if (!sort_entries)
            return ENOMEM;
        r->sort_entries = sort_entries;
        facts *all = realloc(r->facts, room * sizeof *all);
        if (!all)
            return ENOMEM;
        r->facts = all;
        r->room = room;
    }
    r->facts[r->count] = *found;
    sort_entry *p = r->sort_entries + r->count;
    uint8_t head[8] = {0};
    memcpy(head, name, length < 8 ? length : 8);
    memcpy(&p->head, head, 8);
    p->head = be64toh(p->head);
    p->at = (uint32_t)r->names.size;
    p->row = (uint32_t)r->count++;
    return append(&r->names, name, length);
}

static facts facts_of(const struct stat *found)
{
    const uint8_t kind = kind_of(found->st_mode);
    return (facts){
        .size = kind == RDC_FILE ? (uint64_t)found->st_size : 0,
        .mtime = (uint64_t)rdc_nanoseconds(found->st_mtim),
        .device = (uint64_t)found->st_dev,
        .inode = (uint64_t)found->st_ino,
        .allocated = (uint64_t)found->st_blocks * 512, /* its unit whatever st_blksize says */
        .ctime = (uint64_t)rdc_nanoseconds(found->st_ctim),
        .uid = found->st_uid,
        .gid = found->st_gid,
        .links = found->st_nlink < UINT32_MAX ? (uint32_t)found->st_nlink : UINT32_MAX,
        .mode = (uint16_t)(found->st_mode & 07777),
        .kind = kind,
    };
}

/* Takes the name of an entry that is to be looked at, unless it is reserved. */
static int take_name(reader *r, int part_temporaries, const char *name)
{
    const size_t length = strlen(name);

    if (length > NAME_MOST)
        return ENAMETOOLONG;
    int failed = charge(r, RDC_ENTRY_BYTES + length + 1);
    if (failed)
        return failed;
    return add_name(r, name, length, &(facts){.kind = part_temporaries && is_reserved(name, length) ? TEMPORARY : UNKNOWN});
}

/* The entries of one buffer that are looked at, from row `first` on. */
typedef struct {
    reader *r;
    int fd;
    size_t first;
} looking;

static void look_at(void *context, size_t row)
{
    looking *l = context;
    facts *known = l->r->facts + l->first + row;
    struct stat found;

    if (known->kind != UNKNOWN)
        return;
    while (fstatat(l->fd, (const char *)l->r->names.at + l->r->sort_entries[l->first + row].at, &found,
                   AT_SYMLINK_NOFOLLOW))
        if (errno != EINTR) {
            /* One that is gone since its name was read was never there. The error of another stays in its size. */
            known->kind = GONE;
            known->size = errno == ENOENT ? 0 : (uint64_t)errno;
            return;
        }
    *known = facts_of(&found);
}

/* Looks at the entries from row `first` on, and leaves out what is gone. Returns 0, or the errno of the first that failed. */
static int look_at_all(reader *r, int fd, size_t first)
{
    looking l = {.r = r, .fd = fd, .first = first};
    const size_t some = r->count - first;
    size_t kept = first;

    if (r->depth > 1 || some >= MEASURED) {
        const unsigned asked = r->depth;
        rdc_rows_seen later = {0};
        rdc_rows_deepening(some, &r->depth, r->most, look_at, &l, r->deeper ? &later : r->seen);
        r->deeper |= r->depth != asked;
    } else {
        for (size_t row = 0; row < some; row++)
            look_at(&l, row);
    }
    for (size_t row = first; row < r->count; row++) {
        if (r->facts[row].kind == GONE) {
            if (r->facts[row].size)
                return (int)r->facts[row].size;
            continue;
        }
        r->facts[kept] = r->facts[row];
        r->sort_entries[kept] = r->sort_entries[row];
        r->sort_entries[kept].row = (uint32_t)kept;
        kept++;
    }
    r->count = kept;
    return 0;
}

static int read_entries(reader *r, int fd, int part_temporaries)
{
    union {
        record first; /* for its alignment */
        char bytes[RECORDS_SIZE];
    } records;

    if (lseek(fd, 0, SEEK_SET) < 0)
        return errno;
    for (;;) {
        const size_t first = r->count;
        long filled = syscall(SYS_getdents64, fd, &records, sizeof records);
        if (filled == 0)
            return 0;
        if (filled < 0) {
            if (errno == EINTR)
                continue;
            return errno;
        }
        int failed = 0;
        for (long at = 0; at < filled && !failed;) {
            const record *found = (const record *)(records.bytes + at);
            const char *name = found->name;
            at += found->size;
            if (name[0] != '.' || (name[1] && (name[1] != '.' || name[2])))
                failed = take_name(r, part_temporaries, name);
        }
        if (!failed)
            failed = look_at_all(r, fd, first);
        if (failed)
            return failed;
    }
}

/* EINVAL when the link has been replaced by something else: left out, the entry would look deleted. */
static int read_link(reader *r, int fd, const char *name)
{
    char target[LINK_MOST + 1];
    ssize_t length;
    do
        length = readlinkat(fd, name, target, sizeof target);
    while (length < 0 && errno == EINTR);
    if (length < 0)
        return errno;
    if (length > LINK_MOST)
        return ENAMETOOLONG;
    if (memchr(target, 0, (size_t)length))
        return EIO; /* a damaged file system: no path holds a NUL */
    int failed = charge(r, (size_t)length + 1);
    return failed ? failed : append(&r->targets, target, (size_t)length);
}

static int fill_columns(reader *r, int fd, rdc_entries *entries)
{
    const size_t most = r->count;
    uint8_t *columns = malloc(most * (6 * 8 + 3 * 4 + 2 + 1) + 1);

    if (!columns)
        return ENOMEM;
    entries->sizes = (uint64_t *)columns;
    entries->mtimes = entries->sizes + most;
    entries->devices = entries->mtimes + most;
    entries->inodes = entries->devices + most;
    entries->allocated = entries->inodes + most;
    entries->ctimes = entries->allocated + most;
    entries->uids = (uint32_t *)(entries->ctimes + most);
    entries->gids = entries->uids + most;
    entries->links = entries->gids + most;
    entries->modes = (uint16_t *)(entries->links + most);
    entries->kinds = (uint8_t *)(entries->modes + most);
    entries->names = malloc(r->names.size + 1);
    if (!entries->names)
        return ENOMEM;
    for (size_t i = 0; i < most; i++) {
        const sort_entry *p = r->sort_entries + i;
        const char *name = (const char *)r->names.at + p->at;
        const facts *f = r->facts + p->row;
        const size_t length = strlen(name);

        /* A name that was removed and made again during the reading may come twice. */
        if (i && !compare(r->names.at, p - 1, p))
            continue;
        int failed = 0;
        if (f->kind == TEMPORARY)
            failed = append(&r->temporaries, name, length);
        else if (f->kind == RDC_SYMLINK)
            failed = read_link(r, fd, name);
        if (failed && failed != ENOENT)
            return failed;
        if (failed || f->kind == TEMPORARY)
            continue;
        size_t row = entries->count++;
        entries->sizes[row] = htole64(f->size);
        entries->mtimes[row] = htole64(f->mtime);
        entries->ctimes[row] = htole64(f->ctime);
        entries->uids[row] = htole32(f->uid);
        entries->gids[row] = htole32(f->gid);
        entries->modes[row] = htole16(f->mode);
        entries->kinds[row] = f->kind;
        entries->devices[row] = htole64(f->device);
        entries->inodes[row] = htole64(f->inode);
        entries->allocated[row] = htole64(f->allocated);
        entries->links[row] = htole32(f->links);
        memcpy(entries->names + entries->names_size, name, length + 1);
        entries->names_size += length + 1;
    }
    return 0;
}

int rdc_read_directory(int fd, size_t limit, int part_temporaries, rdc_entries *entries, unsigned depth,
                       unsigned most, rdc_rows_seen *seen)
{
    const uint64_t begun = rdc_steady_clock();
    reader r = {.left = limit < UINT32_MAX ? limit : UINT32_MAX, .depth = depth ? depth : 1, .most = most, .seen = seen};
    int failed;

    memset(entries, 0, sizeof *entries);
    failed = read_entries(&r, fd, part_temporaries);
    if (!failed)
        failed = sort_names(&r.sort_entries, r.count, r.names.at);
    if (!failed)
        failed = fill_columns(&r, fd, entries);
    free(r.names.at);
    free(r.sort_entries);
    free(r.facts);
    entries->targets = r.targets.at;
    entries->link_bytes = r.targets.size;
    entries->temporaries = r.temporaries.at;
    entries->temporaries_size = r.temporaries.size;
    if (failed)
        rdc_entries_free(entries);
    seen->elapsed = rdc_steady_clock() - begun;
    return failed;
}

void rdc_entries_free(rdc_entries *entries)
{
    free(entries->names);
    free(entries->targets);
    free(entries->temporaries);
    free(entries->sizes);
    memset(entries, 0, sizeof *entries);
}

#endif
