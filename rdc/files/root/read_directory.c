/*
 * read_directory.c - one directory's entries, with their metadata, as sorted packed columns.
 *
 * What it computes is defined by rdc/files/root/lister.py. It is getdents64, one fstatat for each entry of a buffer while
 * the kernel still has at hand what it has just told of them, and a sort of the names. Of directories of ten thousand files all stats
 * in the order of the names took a fourth longer, of those of a release of Linux a twentieth. statx took as long as
 * fstatat, which every kernel, C library and system call filter has.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "root/read_directory.h"

#ifdef __linux__

#include <endian.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/nanoseconds.h"
#include "depth/rows_at_once.h"

#define NAME_MOST 255    /* NAME_BYTES of rdc/limits.py: file systems in user space may send longer ones */
#define LINK_MOST 4096 /* the kernel gives at most a page */
#define RECORDS_SIZE (32 << 10)
#define TEMPORARY 255 /* as a kind: of which no more than the name is wanted */
#define UNKNOWN 254 /* as a kind: to be looked at */
#define GONE 253 /* as a kind: removed since its name was read */
#define BAD 252 /* as a kind: cannot be looked at */
#define LINK_LOOKS 8 /* at a name that is a link and something else by turns */
#define MEASURED 32 /* entries of a buffer from which on it is measured how long they take */

/* A name to sort: its first 8 bytes as a big-endian number, zeros behind a shorter one, decide most comparisons. */
typedef struct {
    uint64_t head;
    uint32_t at; /* in the blob of names */
    uint32_t row; /* of its facts */
} sort_entry;

/* Names hold no NUL: equal heads that end in one are equal names, and others go on after 8 bytes. */
static int compare(const uint8_t *names, const sort_entry *a, const sort_entry *b)
{
    if (a->head != b->head)
        return a->head < b->head ? -1 : 1;
    if (!(a->head & 0xff))
        return 0;
    return strcmp((const char *)names + a->at + 8, (const char *)names + b->at + 8);
}

/* Merges sorted runs of doubling length: n log n comparisons whatever the names, which may be chosen to hurt. */
static int sort_names(sort_entry **entries, size_t count, const uint8_t *names)
{
    sort_entry *from = *entries, *to = malloc((count + 1) * sizeof *to);

    if (!to)
        return ENOMEM;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            size_t middle = count - start < width ? count : start + width;
            size_t end = count - start < 2 * width ? count : start + 2 * width;
            size_t a = start, b = middle, out = start;
            while (a < middle && b < end)
                to[out++] = compare(names, from + a, from + b) <= 0 ? from[a++] : from[b++];
            memcpy(to + out, from + a, (middle - a) * sizeof *to);
            memcpy(to + out + (middle - a), from + b, (end - b) * sizeof *to);
        }
        sort_entry *swapped = from;
        from = to;
        to = swapped;
    }
    *entries = from;
    free(to);
    return 0;
}

/* getdents64(2) has no declaration of its record. */
typedef struct {
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[];
} record;

/* What the columns have of an entry. Of a bad one: its errno in `size` and its call in `links`. */
typedef struct {
    uint64_t size, device, inode, allocated;
    int64_t mtime, ctime; /* seconds */
    uint32_t mtime_rest, ctime_rest; /* nanoseconds */
    uint32_t uid, gid, links;
    uint16_t mode;
    uint8_t kind, is_directory; /* is_directory: as the record says, before any look */
} facts;

typedef struct {
    uint8_t *at;
    size_t size, room;
} blob;

/* What has been read so far, and what may still be held. */
typedef struct {
    size_t left;
    blob names, targets, temporaries, bad_names;
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

/* rdc/files/base/paths.py has the pattern; a test compares. */
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
    case S_IFIFO:
    case S_IFSOCK:
    case S_IFCHR:
    case S_IFBLK:
        return RDC_SPECIAL;
    default:
        return BAD;
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

static facts bad_facts(int error, uint32_t call, uint8_t is_directory)
{
    return (facts){.kind = BAD, .size = (uint64_t)error, .links = call, .is_directory = is_directory};
}

static facts facts_of(const struct stat *found)
{
    const uint8_t kind = kind_of(found->st_mode);
    if (kind == BAD)
        return bad_facts(EUCLEAN, RDC_BAD_KIND, 0);
    return (facts){
        .size = kind == RDC_FILE ? (uint64_t)found->st_size : 0,
        .mtime = found->st_mtim.tv_sec,
        .mtime_rest = (uint32_t)found->st_mtim.tv_nsec,
        .device = (uint64_t)found->st_dev,
        .inode = (uint64_t)found->st_ino,
        .allocated = (uint64_t)found->st_blocks * 512, /* its unit whatever st_blksize says */
        .ctime = found->st_ctim.tv_sec,
        .ctime_rest = (uint32_t)found->st_ctim.tv_nsec,
        .uid = found->st_uid,
        .gid = found->st_gid,
        .links = found->st_nlink < UINT32_MAX ? (uint32_t)found->st_nlink : UINT32_MAX,
        .mode = (uint16_t)(found->st_mode & 07777),
        .kind = kind,
    };
}

/* Takes the name of an entry that is to be looked at, unless it is reserved or too long. */
static int take_name(reader *r, const char *name, int is_directory)
{
    const size_t length = strlen(name);
    facts found = {.kind = UNKNOWN, .is_directory = (uint8_t)is_directory};

    int failed = charge(r, RDC_ENTRY_BYTES + length + 1);
    if (failed)
        return failed;
    if (length > NAME_MOST)
        found = bad_facts(ENAMETOOLONG, RDC_BAD_NAME, (uint8_t)is_directory);
    else if (is_reserved(name, length))
        found.kind = TEMPORARY;
    return add_name(r, name, length, &found);
}

/* The entries of one buffer that are looked at, from row `first` on. */
typedef struct {
    reader *r;
    int fd;
    size_t first;
} looking;

/* An entry that is gone since its name was read was never there. */
static facts look(int fd, const char *name, uint8_t is_directory)
{
    struct stat found;

    while (fstatat(fd, name, &found, AT_SYMLINK_NOFOLLOW))
        if (errno != EINTR)
            return errno == ENOENT ? (facts){.kind = GONE} : bad_facts(errno, RDC_BAD_STAT, is_directory);
    return facts_of(&found);
}

static void look_at(void *context, size_t row)
{
    looking *l = context;
    facts *known = l->r->facts + l->first + row;

    if (known->kind == UNKNOWN)
        *known = look(l->fd, (const char *)l->r->names.at + l->r->sort_entries[l->first + row].at,
                      known->is_directory);
}

/*
 * Looks at the entries from row `first` on, and leaves out what is gone. Returns 0, or the errno that the directory
 * itself gives: whoever may not search it can look at no entry.
 */
static int look_at_all(reader *r, int fd, size_t first)
{
    looking l = {.r = r, .fd = fd, .first = first};
    const size_t some = r->count - first;
    size_t kept = first;
    int bad = 0;

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
        if (r->facts[row].kind == GONE)
            continue;
        bad |= r->facts[row].kind == BAD && r->facts[row].links == RDC_BAD_STAT;
        r->facts[kept] = r->facts[row];
        r->sort_entries[kept] = r->sort_entries[row];
        r->sort_entries[kept].row = (uint32_t)kept;
        kept++;
    }
    r->count = kept;
    struct stat itself;
    return bad && fstatat(fd, ".", &itself, 0) ? errno : 0;
}

static int read_entries(reader *r, int fd)
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
                failed = take_name(r, name, found->type == DT_DIR);
        }
        if (!failed)
            failed = look_at_all(r, fd, first);
        if (failed)
            return failed;
    }
}

/* Appends the target of a link. Returns 0, or an errno that ends the reading. `*bad` is the errno of a link alone. */
static int read_link(reader *r, int fd, const char *name, int *bad)
{
    char target[LINK_MOST + 1];
    ssize_t length;
    do
        length = readlinkat(fd, name, target, sizeof target);
    while (length < 0 && errno == EINTR);
    *bad = length < 0 ? errno : length > LINK_MOST ? ENAMETOOLONG : 0;
    if (!*bad && memchr(target, 0, (size_t)length))
        *bad = EIO; /* a damaged file system: no path holds a NUL */
    if (*bad)
        return 0;
    int failed = charge(r, (size_t)length + 1);
    return failed ? failed : append(&r->targets, target, (size_t)length);
}

/* Appends the target of a link, and looks again at a name that is no link any more. */
static int take_link(reader *r, int fd, const char *name, facts *f)
{
    for (int looks = 0; f->kind == RDC_SYMLINK; looks++) {
        int bad, failed = read_link(r, fd, name, &bad);
        if (failed || !bad)
            return failed;
        if (bad == EINVAL && looks < LINK_LOOKS)
            *f = look(fd, name, 0);
        else
            *f = bad == ENOENT ? (facts){.kind = GONE} : bad_facts(bad, RDC_BAD_LINK, 0);
    }
    return 0;
}

/* Has room for one more item behind `count` items of `size` bytes: memory doubles at powers of two. */
static void *room_for_one(void *items, size_t count, size_t size)
{
    return count & (count - 1) ? items : realloc(items, (count ? 2 * count : 1) * size);
}

static int add_bad(reader *r, rdc_entries *entries, const char *name, size_t length, const facts *f)
{
    rdc_bad_entry *bad = room_for_one(entries->bad, entries->bad_count, sizeof *bad);
    if (!bad)
        return ENOMEM;
    entries->bad = bad;
    bad[entries->bad_count++] =
        (rdc_bad_entry){.error = (int)f->size, .call = (uint8_t)f->links, .is_directory = f->is_directory};
    return append(&r->bad_names, name, length);
}

/* Puts a time into its column, and beside it where that cannot hold it. */
static int put_time(uint64_t *column, size_t row, int64_t seconds, uint32_t rest, rdc_distant_times *distant)
{
    const struct timespec time = {.tv_sec = seconds, .tv_nsec = rest};
    int64_t nanoseconds;
    const int is_distant = rdc_is_distant(time, &nanoseconds);

    column[row] = htole64((uint64_t)nanoseconds);
    if (!is_distant)
        return 0;
    rdc_distant_time *times = room_for_one(distant->times, distant->count, sizeof *times);
    if (!times)
        return ENOMEM;
    distant->times = times;
    times[distant->count++] = (rdc_distant_time){.seconds = seconds, .rest = rest, .row = (uint32_t)row};
    return 0;
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
        facts *f = r->facts + p->row;
        const size_t length = strlen(name);

        /* A name that was removed and made again during the reading may come twice. */
        if (i && !compare(r->names.at, p - 1, p))
            continue;
        int failed = take_link(r, fd, name, f);
        if (!failed && f->kind == TEMPORARY)
            failed = append(&r->temporaries, name, length);
        else if (!failed && f->kind == BAD)
            failed = add_bad(r, entries, name, length, f);
        if (failed)
            return failed;
        if (f->kind == TEMPORARY || f->kind == BAD || f->kind == GONE)
            continue;
        size_t row = entries->count++;
        failed = put_time(entries->mtimes, row, f->mtime, f->mtime_rest, &entries->distant_mtimes);
        if (!failed)
            failed = put_time(entries->ctimes, row, f->ctime, f->ctime_rest, &entries->distant_ctimes);
        if (failed)
            return failed;
        entries->sizes[row] = htole64(f->size);
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

int rdc_read_directory(int fd, size_t limit, rdc_entries *entries, unsigned depth, unsigned most,
                       rdc_rows_seen *seen)
{
    const uint64_t begun = rdc_steady_clock();
    reader r = {.left = limit < UINT32_MAX ? limit : UINT32_MAX, .depth = depth ? depth : 1, .most = most, .seen = seen};
    int failed;

    memset(entries, 0, sizeof *entries);
    failed = read_entries(&r, fd);
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
    entries->bad_names = r.bad_names.at;
    entries->bad_names_size = r.bad_names.size;
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
    free(entries->bad_names);
    free(entries->sizes);
    free(entries->bad);
    free(entries->distant_mtimes.times);
    free(entries->distant_ctimes.times);
    memset(entries, 0, sizeof *entries);
}

#endif
