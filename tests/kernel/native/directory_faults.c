/*
 * directory_faults.c - rdc/files/root/read_directory.c over a file system that does what real ones do too seldom to test:
 * names come twice or too long, entries vanish between two calls, calls are interrupted or fail, memory runs out.
 * Run under sanitizers, which see what is lost or overrun. Prints "passed", or fails an assertion.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#undef NDEBUG
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENTRIES_MOST 300

typedef struct {
    const char *name;
    mode_t mode;
    int stat_fails;   /* errno, or 0 */
    int target_fails; /* errno, or 0 */
    const char *target;
    ssize_t target_length;
    struct timespec time;
    mode_t then; /* the mode from the first look on, or 0 */
    uint8_t type;
} fake;

static fake entries[ENTRIES_MOST];
static int entry_count, given;
static int getdents_fails_at = -1; /* after so many entries, with EIO */
static int directory_fails;        /* errno of a look at the directory itself, or 0 */
static int interruptions;          /* every call is interrupted so often, once each time it is made */
static int interrupted;
static long allocations_left = -1; /* then memory has run out; -1: never */
static char long_text[5000];

static int interrupt(void)
{
    if (interrupted < interruptions) {
        interrupted++;
        errno = EINTR;
        return 1;
    }
    interrupted = 0;
    return 0;
}

static fake *find(const char *name)
{
    for (int i = 0; i < entry_count; i++)
        if (!strcmp(entries[i].name, name))
            return entries + i;
    assert(!"a name that was given");
    return NULL;
}

/* Three entries a call, so that the end of the records comes in the middle of a directory. */
static long fake_getdents(long number, int fd, void *records, size_t size)
{
    char *out = records;
    long filled = 0;
    assert(number == SYS_getdents64 && fd == 3 && size >= 4096);
    if (interrupt())
        return -1;
    for (int i = 0; i < 3 && given < entry_count; i++, given++) {
        if (given == getdents_fails_at) {
            errno = EIO;
            return -1;
        }
        size_t length = strlen(entries[given].name);
        uint16_t whole = (uint16_t)((19 + length + 1 + 7) & ~(size_t)7);
        memset(out + filled, 0, whole);
        memcpy(out + filled + 16, &whole, 2);
        out[filled + 18] = (char)entries[given].type;
        memcpy(out + filled + 19, entries[given].name, length);
        filled += whole;
    }
    return filled;
}

static int fake_fstatat(int fd, const char *name, struct stat *found, int flags)
{
    if (!strcmp(name, ".")) {
        assert(fd == 3 && flags == 0);
        errno = directory_fails;
        return directory_fails ? -1 : 0;
    }
    fake *entry = find(name);
    assert(fd == 3 && flags == AT_SYMLINK_NOFOLLOW);
    if (interrupt())
        return -1;
    if (entry->stat_fails) {
        errno = entry->stat_fails;
        return -1;
    }
    memset(found, 0, sizeof *found);
    found->st_mode = entry->mode;
    if (entry->then) {
        entry->mode = entry->then;
        entry->then = 0;
    }
    found->st_size = name[0];
    found->st_mtim = entry->time;
    found->st_dev = 7;
    found->st_ino = UINT64_MAX - (uint64_t)name[0];
    found->st_blocks = name[0];
    found->st_nlink = (nlink_t)UINT32_MAX + name[0] - 'b';
    return 0;
}

static ssize_t fake_readlinkat(int fd, const char *name, char *target, size_t room)
{
    const fake *entry = find(name);
    assert(fd == 3);
    if (interrupt())
        return -1;
    if (!S_ISLNK(entry->mode)) {
        errno = EINVAL;
        return -1;
    }
    if (entry->target_fails) {
        errno = entry->target_fails;
        return -1;
    }
    size_t length = (size_t)entry->target_length < room ? (size_t)entry->target_length : room;
    memcpy(target, entry->target, length);
    return (ssize_t)length;
}

static off_t fake_lseek(int fd, off_t to, int whence)
{
    assert(fd == 3 && to == 0 && whence == SEEK_SET);
    given = 0;
    return 0;
}

static int exhausted(void)
{
    return allocations_left >= 0 && allocations_left-- == 0;
}

static void *fake_malloc(size_t size)
{
    return exhausted() ? NULL : malloc(size);
}

static void *fake_realloc(void *at, size_t size)
{
    return exhausted() ? NULL : realloc(at, size);
}

#define syscall fake_getdents
#define fstatat fake_fstatat
#define readlinkat fake_readlinkat
#define lseek fake_lseek
#define malloc fake_malloc
#define realloc fake_realloc
#include "root/read_directory.c"
#undef malloc
#undef realloc

static rdc_rows_seen seen;

static fake *add(const char *name, mode_t mode)
{
    fake *entry = entries + entry_count++;
    *entry = (fake){.name = name, .mode = mode, .target = "to", .target_length = 2};
    return entry;
}

static void begin(void)
{
    entry_count = interruptions = interrupted = 0;
    getdents_fails_at = -1;
    directory_fails = 0;
    allocations_left = -1;
}

/* Expects these names, each followed by a space, in every column's order, and no bad entry. */
static void expect(const char *names)
{
    rdc_entries found;
    char text[1000] = "";
    assert(rdc_read_directory(3, 1 << 20, &found, 1, 1, &seen) == 0);
    size_t at = 0;
    for (size_t row = 0; row < found.count; row++) {
        const char *name = (const char *)found.names + at;
        int file = S_ISREG(find(name)->mode);
        assert(le64toh(found.sizes[row]) == (file ? (uint64_t)name[0] : 0));
        assert(found.kinds[row] == (file ? RDC_FILE : RDC_SYMLINK));
        assert(le64toh(found.devices[row]) == 7 && le64toh(found.inodes[row]) == UINT64_MAX - (uint64_t)name[0]);
        assert(le64toh(found.allocated[row]) == 512 * (uint64_t)name[0]);
        assert(le32toh(found.links[row]) == (name[0] == 'a' ? UINT32_MAX - 1 : UINT32_MAX));
        strcat(strcat(text, name), " ");
        at += strlen(name) + 1;
    }
    assert(at == found.names_size && !found.bad_count && !found.bad && !found.bad_names);
    assert(!strcmp(text, names));
    rdc_entries_free(&found);
}

/* Expects one bad entry, and all others in the columns. */
static void expect_bad(const char *name, int error, int call, int is_directory)
{
    rdc_entries found;
    assert(rdc_read_directory(3, 1 << 20, &found, 1, 1, &seen) == 0);
    assert(found.count == (size_t)entry_count - 1 && found.bad_count == 1);
    assert(found.bad_names_size == strlen(name) + 1 && !strcmp((const char *)found.bad_names, name));
    assert(found.bad->error == error && found.bad->call == call && found.bad->is_directory == is_directory);
    rdc_entries_free(&found);
}

static void expect_failure(int number)
{
    rdc_entries found;
    assert(rdc_read_directory(3, 1 << 20, &found, 1, 1, &seen) == number);
    assert(!found.names && !found.sizes && !found.targets && !found.temporaries && !found.bad && !found.bad_names);
}

static void names_that_come_twice(void)
{
    begin();
    for (const char **name = (const char *[]){"b", ".", "a", "b", "..", "eight_by", "nine_byte", "eight_by", "a", NULL};
         *name; name++)
        add(*name, S_IFREG);
    expect("a b eight_by nine_byte ");
}

static void entries_that_vanish(void)
{
    begin();
    add("f", S_IFREG);
    add("e", S_IFREG)->stat_fails = ENOENT;
    add("d", S_IFLNK)->target_fails = ENOENT;
    add("c", S_IFLNK);
    add("b", S_IFREG);
    add("a", S_IFREG)->stat_fails = ENOENT;
    expect("b c f ");
    interruptions = 2;
    expect("b c f ");
}

static void calls_that_fail(void)
{
    begin();
    add("a", S_IFREG);
    fake *link = add("b", S_IFLNK);
    for (int i = 0; i < 10; i++)
        add(&"cdefghijkl"[i], S_IFREG); /* nested tails of one string: they sort and stat like any others */
    link->target_fails = EIO;
    expect_bad("b", EIO, RDC_BAD_LINK, 0);
    link->target_fails = EINVAL; /* a link and something else by turns */
    expect_bad("b", EINVAL, RDC_BAD_LINK, 0);
    link->target_fails = 0;
    link->mode = S_IFIFO | S_IFDIR; /* no kind at all */
    expect_bad("b", EUCLEAN, RDC_BAD_KIND, 0);
    link->stat_fails = ENOTCONN;
    expect_bad("b", ENOTCONN, RDC_BAD_STAT, 0);
    link->type = 4; /* DT_DIR */
    expect_bad("b", ENOTCONN, RDC_BAD_STAT, 1);
    directory_fails = EACCES;
    expect_failure(EACCES);
    directory_fails = link->stat_fails = 0;
    getdents_fails_at = 6;
    expect_failure(EIO);
}

/* A link that something else replaces after the first look is what replaced it. */
static void a_link_that_is_replaced(void)
{
    begin();
    add("a", S_IFLNK)->then = S_IFREG;
    add("b", S_IFREG);
    expect("a b ");
}

static void names_and_targets_too_long(void)
{
    begin();
    fake *file = add(long_text + sizeof long_text - 1 - 255, S_IFREG);
    rdc_entries found;
    assert(rdc_read_directory(3, 1 << 20, &found, 1, 1, &seen) == 0 && found.names_size == 256);
    rdc_entries_free(&found);
    file->name--;
    expect_bad(file->name, ENAMETOOLONG, RDC_BAD_NAME, 0);

    begin();
    fake *link = add("l", S_IFLNK);
    link->target = long_text;
    link->target_length = 4096;
    assert(rdc_read_directory(3, 1 << 20, &found, 1, 1, &seen) == 0 && found.link_bytes == 4097);
    rdc_entries_free(&found);
    link->target_length = 4097;
    expect_bad("l", ENAMETOOLONG, RDC_BAD_LINK, 0);
    link->target = "a\0b";
    link->target_length = 3;
    expect_bad("l", EIO, RDC_BAD_LINK, 0);
}

static void times(void)
{
    static const struct {
        int64_t seconds;
        long rest;
        int64_t expected;
        int distant;
    } cases[] = {
        {0, 0, 0, 0},
        {-1, 999999999, -1, 0},
        {-2, 0, -2000000000, 0},
        {RDC_END_SECOND - 1, 999999999, RDC_END_SECOND * 1000000000 - 1, 0},
        {RDC_END_SECOND, 0, INT64_MAX, 1},
        {INT64_C(9223372037), 0, INT64_MAX, 1},
        {RDC_FIRST_SECOND, 0, RDC_FIRST_SECOND * 1000000000, 0},
        {RDC_FIRST_SECOND - 1, 999999999, INT64_MIN, 1},
        {INT64_C(-9223372038), 999999999, INT64_MIN, 1},
        {INT64_MAX, 999999999, INT64_MAX, 1},
        {INT64_MIN, 0, INT64_MIN, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rdc_entries found;
        begin();
        add("Z", S_IFREG);
        add("a", S_IFREG)->time = (struct timespec){.tv_sec = cases[i].seconds, .tv_nsec = cases[i].rest};
        assert(rdc_read_directory(3, 1 << 20, &found, 1, 1, &seen) == 0);
        assert((int64_t)le64toh(found.mtimes[1]) == cases[i].expected);
        assert(found.distant_mtimes.count == (size_t)cases[i].distant && !found.distant_ctimes.count);
        if (cases[i].distant) {
            const rdc_distant_time *t = found.distant_mtimes.times;
            assert(t->row == 1 && t->seconds == cases[i].seconds && t->rest == cases[i].rest);
        }
        rdc_entries_free(&found);
    }
}

/* Enough entries of each sort that every buffer grows; each allocation in turn is the one that fails. */
static void memory_that_runs_out(void)
{
    static char names[ENTRIES_MOST][30];
    rdc_entries found;
    long allocations = 0;
    int failed;
    begin();
    for (int i = 0; i < ENTRIES_MOST; i++) {
        snprintf(names[i], sizeof names[i], i % 3 ? "%020d" : ".rdc-%016x.tmp", i);
        fake *entry = add(names[i], i % 3 == 1 ? S_IFLNK : S_IFREG);
        entry->stat_fails = i % 30 == 2 ? EIO : 0;
        entry->time.tv_sec = i % 3 == 2 ? INT64_MAX : 0;
    }
    do {
        allocations_left = allocations++;
        failed = rdc_read_directory(3, 1 << 20, &found, 1, 1, &seen);
        assert(failed == 0 || failed == ENOMEM);
    } while (failed);
    assert(allocations > 10);
    assert(found.count == 190 && found.temporaries_size == 100 * 26 && found.link_bytes == 100 * 3);
    assert(found.bad_count == 10 && found.bad_names_size == 10 * 21 && found.distant_mtimes.count == 90);
    rdc_entries_free(&found);
}

int main(void)
{
    memset(long_text, 'n', sizeof long_text - 1);
    names_that_come_twice();
    entries_that_vanish();
    calls_that_fail();
    a_link_that_is_replaced();
    names_and_targets_too_long();
    times();
    memory_that_runs_out();
    puts("passed");
    return 0;
}
