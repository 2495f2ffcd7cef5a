/* patterns.c - paths matched against many wildcard patterns at once.
 *
 * All patterns are one nondeterministic automaton whose states are bits. A pattern of m tokens, each of which takes
 * one byte of a set, has m + 1 neighbouring states: "so many tokens matched". A star is no token: it lets a state
 * stay as it is over any byte (`**`) or over any byte but '/' (`*`). So a byte takes the states to
 *
 *     (states << 1 & row of the byte) | (states & loops)
 *
 * where a row has the states whose token takes the byte (the extended shift-and method of Navarro and Raffinot,
 * "Flexible Pattern Matching in Strings", 2002, section 4). The work of a byte is one pass over states / 64 words,
 * whatever the patterns are: nothing backtracks, and there is no table of sets of states that could grow.
 *
 * `**` with a '/' on both sides of a line of .gitignore stands for any number of directories, none included. It is two
 * states: one that the '/' before it reaches and that any byte leaves as it is, and one that a '/' reaches from there,
 * or that the first '/' reaches itself (`skip`).
 *
 * The states after "directory/" are the same for all entries of a directory, so the set remembers them for the
 * directories that it met last. An entry then costs the bytes of its name, however deep it lies: a walk asks for the
 * entries of one directory after another, and comes to a directory from the one above it. */
#include "patterns/patterns.h"

#include <stdlib.h>
#include <string.h>

#define NO_TOKEN UINT32_MAX /* of a pattern's first state, which no byte reaches */
#define CLASSES 256         /* tokens from here on are classes; those below are bytes */

/* Classes that every set has. */
#define NOT_SLASH (CLASSES + 0)
#define ANY_BYTE (CLASSES + 1)
#define NO_BYTE (CLASSES + 2)

/* What a state is, as bits. */
enum {
    LOOPS_IN_NAME = 1, /* `*`: stays over all but '/' */
    LOOPS = 2,         /* `**`: stays over every byte */
    BEGINS = 4,
    ANYWHERE = 8, /* begins after any '/', too */
    SKIPPED_TO = 16,
    ABSOLUTE = 32,
    NEGATED = 64,
    DECIDES = 128,        /* the last state of a pattern */
    MATCHES_FILE = 256,   /* it matches what is no directory */
    MATCHES_FOLDER = 512, /* it matches a directory */
    MATCHES_INSIDE = 1024 /* it matches a directory once a '/' follows its path */
};

#define ROWS_BYTES (32 << 20) /* of rows: of a set of a million states, those of all bytes */

#define REMEMBERED_BYTES (4 << 20) /* of states after directories: 64 of them with half a million states */
#define REMEMBERED_MOST 64         /* they are searched one by one */
#define REMEMBERED_LEAST 4

typedef struct {
    uint64_t bits[4];
} byte_class;

typedef struct {
    uint8_t *path;
    size_t size, room;
    uint64_t used; /* when, 0 for never */
    uint64_t *states;
} directory;

enum { LOOP, LOOP_SLASH, SKIP, INJECT, FIRST, FILE_MASK, FOLDER_MASK, INSIDE_MASK, NEGATED_MASK, LAST, MASKS };

struct rdc_patterns {
    size_t count; /* patterns */
    size_t *ends; /* the last state of each */
    size_t ends_room;

    size_t states, states_room;
    uint32_t *tokens; /* that leads to each state from the one before it */
    uint16_t *marks;

    byte_class *classes;
    size_t classes_count, classes_room;

    size_t words;
    uint64_t *masks;     /* MASKS times `words` */
    uint64_t *rows[256]; /* NULL until the byte is met */
    size_t rows_count;
    uint64_t *scratch; /* twice `words` */
    int negates;

    directory *directories;
    size_t directories_count, directories_most;
    directory *last;
    uint64_t clock;
};

static const uint64_t *mask(const rdc_patterns *set, int which)
{
    return set->masks + (size_t)which * set->words;
}

/* Makes room for `count` items of `size` bytes. Returns -1 for lack of memory. */
static int make_room(void *items, size_t *room, size_t count, size_t size)
{
    if (count <= *room)
        return 0;
    size_t more = *room < 16 ? 16 : *room + *room / 2;
    if (more < count)
        more = count;
    if (more > SIZE_MAX / size)
        return -1;
    void **at = items;
    void *found = realloc(*at, more * size);
    if (!found)
        return -1;
    *at = found;
    *room = more;
    return 0;
}

rdc_patterns *rdc_patterns_new(void)
{
    rdc_patterns *set = calloc(1, sizeof *set);
    if (!set)
        return NULL;
    if (make_room(&set->classes, &set->classes_room, 3, sizeof *set->classes)) {
        free(set);
        return NULL;
    }
    memset(set->classes, 0xFF, 2 * sizeof *set->classes);
    set->classes[NOT_SLASH - CLASSES].bits['/' >> 6] &= ~(UINT64_C(1) << ('/' & 63));
    memset(&set->classes[NO_BYTE - CLASSES], 0, sizeof *set->classes);
    set->classes_count = 3;
    return set;
}

static void drop_rows(rdc_patterns *set)
{
    for (size_t i = 0; i < 256; i++) {
        free(set->rows[i]);
        set->rows[i] = NULL;
    }
    set->rows_count = 0;
}

void rdc_patterns_free(rdc_patterns *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->directories_count; i++) {
        free(set->directories[i].path);
        free(set->directories[i].states);
    }
    drop_rows(set);
    free(set->directories);
    free(set->scratch);
    free(set->masks);
    free(set->classes);
    free(set->marks);
    free(set->tokens);
    free(set->ends);
    free(set);
}

/* Reading patterns. */

static int put_state(rdc_patterns *set, uint32_t token, uint16_t marks)
{
    size_t room = set->states_room;
    if (make_room(&set->tokens, &room, set->states + 1, sizeof *set->tokens) ||
        make_room(&set->marks, &set->states_room, set->states + 1, sizeof *set->marks))
        return -1;
    set->tokens[set->states] = token;
    set->marks[set->states++] = marks;
    return 0;
}

static int in_range(unsigned c, unsigned low, unsigned high)
{
    return c >= low && c <= high;
}

/* POSIX classes of the C locale: paths are bytes, and both sides must read a pattern alike. */
static int is_named(const char *name, size_t size, unsigned c, int *known)
{
    const int lower = in_range(c, 'a', 'z'), upper = in_range(c, 'A', 'Z'), digit = in_range(c, '0', '9');
    const int alnum = lower || upper || digit, graph = in_range(c, 33, 126);
    const struct {
        const char *name;
        int holds;
    } all[] = {
        {"alnum", alnum},
        {"alpha", lower || upper},
        {"blank", c == ' ' || c == '\t'},
        {"cntrl", c < 32 || c == 127},
        {"digit", digit},
        {"graph", graph},
        {"lower", lower},
        {"print", in_range(c, 32, 126)},
        {"punct", graph && !alnum},
        {"space", c == ' ' || in_range(c, '\t', '\r')},
        {"upper", upper},
        {"xdigit", digit || in_range(c, 'a', 'f') || in_range(c, 'A', 'F')},
    };
    *known = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strlen(all[i].name) == size && !memcmp(all[i].name, name, size)) {
            *known = 1;
            return all[i].holds;
        }
    return 0;
}

static void put_range(byte_class *members, unsigned low, unsigned high)
{
    for (unsigned c = low; c <= high; c++)
        members->bits[c >> 6] |= UINT64_C(1) << (c & 63);
}

static int put_named(byte_class *members, const char *name, size_t size)
{
    int known = 0;
    for (unsigned c = 0; c < 256; c++)
        if (is_named(name, size, c, &known))
            put_range(members, c, c);
    return known ? 0 : -1;
}

/* Reads the class that begins behind `[` at `at`. Returns the offset after it, or 0 for an invalid one. */
static size_t read_class(const uint8_t *text, size_t size, size_t at, byte_class *members)
{
    const int negated = at < size && (text[at] == '!' || text[at] == '^');
    int low = -1;
    memset(members, 0, sizeof *members);
    at += (size_t)negated;
    for (int first = 1; first || at >= size || text[at] != ']'; first = 0) {
        if (at >= size)
            return 0;
        if (text[at] == '[' && at + 1 < size && text[at + 1] == ':' && (at + 2 >= size || text[at + 2] != ']')) {
            const uint8_t *end = at + 2 < size ? memchr(text + at + 2, ']', size - at - 2) : NULL;
            if (!end)
                return 0;
            const size_t name = at + 2, stop = (size_t)(end - text);
            if (stop - 1 >= name && text[stop - 1] == ':') {
                if (put_named(members, (const char *)text + name, stop - 1 - name))
                    return 0;
                low = -1;
                at = stop + 1;
                continue;
            }
        }
        const int is_range = low >= 0 && text[at] == '-' && at + 1 < size && text[at + 1] != ']';
        at += (size_t)is_range;
        if (text[at] == '\\' && ++at >= size)
            return 0;
        if (is_range) {
            put_range(members, (unsigned)low, text[at]);
            low = -1;
        } else {
            low = text[at];
            put_range(members, text[at], text[at]);
        }
        at++;
    }
    if (negated)
        for (int i = 0; i < 4; i++)
            members->bits[i] = ~members->bits[i];
    /* A class never matches '/', whether it names '/' or is negated. */
    members->bits['/' >> 6] &= ~(UINT64_C(1) << ('/' & 63));
    return at + 1;
}

static int put_class(rdc_patterns *set, const byte_class *members)
{
    if (set->classes_count >= UINT32_MAX - CLASSES - 1 ||
        make_room(&set->classes, &set->classes_room, set->classes_count + 1, sizeof *members))
        return -1;
    set->classes[set->classes_count] = *members;
    return put_state(set, (uint32_t)(CLASSES + set->classes_count++), 0);
}

/* Whether the two stars at `at` are a whole component. */
static int is_component(const uint8_t *text, size_t size, size_t at, size_t stars)
{
    return stars == 2 && (!at || text[at - 1] == '/') && (at + 2 == size || text[at + 2] == '/');
}

/* Adds the states of a pattern behind its first one. Returns 1 for an invalid pattern, -1 for lack of memory. */
static int put_states(rdc_patterns *set, const uint8_t *text, size_t size, unsigned kind)
{
    size_t at = 0;
    while (at < size) {
        int failed = 0;
        uint16_t *const mark = set->marks + set->states - 1;
        if (kind & RDC_PATTERN_LITERAL || !memchr("*?[\\", text[at], 4)) {
            failed = put_state(set, text[at++], 0);
        } else if (text[at] == '*') {
            size_t stars = 1;
            while (at + stars < size && text[at + stars] == '*')
                stars++;
            if (!(kind & RDC_PATTERN_COMPONENTS)) {
                *mark |= stars > 1 ? LOOPS : LOOPS_IN_NAME;
            } else if (!is_component(text, size, at, stars) || (!at && size == stars)) {
                *mark |= LOOPS_IN_NAME;
            } else if (at + stars == size) {
                /* At the end it stands for at least one component. */
                failed = put_state(set, ANY_BYTE, LOOPS);
            } else if (!at) {
                *mark |= ANYWHERE;
                stars++; /* with its '/' */
            } else if (*mark & (SKIPPED_TO | ANYWHERE)) {
                stars++; /* as many directories as the one before it */
            } else {
                /* The '/' before it leads to a state of its own, which the one behind `**` follows. */
                *mark |= LOOPS;
                failed = put_state(set, '/', SKIPPED_TO);
                stars++;
            }
            at += stars;
        } else if (text[at] == '?') {
            failed = put_state(set, NOT_SLASH, 0);
            at++;
        } else if (text[at] == '\\') {
            if (at + 1 == size)
                return 1;
            failed = put_state(set, text[at + 1], 0);
            at += 2;
        } else {
            byte_class members;
            const size_t end = read_class(text, size, at + 1, &members);
            /* A '/' in a class counts as one more component, which the class does not match. */
            if (!end || (kind & RDC_PATTERN_TAIL && memchr(text + at, '/', end - at)))
                return 1;
            at = end;
            failed = put_class(set, &members);
        }
        if (failed)
            return -1;
    }
    return 0;
}

int rdc_patterns_add(rdc_patterns *set, const uint8_t *text, size_t size, unsigned kind)
{
    const size_t first = set->states, classes = set->classes_count;
    uint16_t begins = BEGINS;
    /* A tail has as many '/' as its pattern: beginning behind any of them, it ends with the path only there. */
    if (kind & (RDC_PATTERN_ANYWHERE | RDC_PATTERN_TAIL))
        begins |= ANYWHERE;
    if (kind & RDC_PATTERN_ABSOLUTE)
        begins |= ABSOLUTE;
    if (make_room(&set->ends, &set->ends_room, set->count + 1, sizeof *set->ends) ||
        put_state(set, NO_TOKEN, begins))
        return -1;
    int found = put_states(set, text, size, kind);
    if (found < 0)
        return -1;
    if (found) { /* it matches nothing: its last state is never reached */
        set->states = first + 1;
        set->marks[first] = begins;
        set->classes_count = classes;
        if (put_state(set, NO_BYTE, 0))
            return -1;
    }
    uint16_t last = DECIDES;
    if (kind & RDC_PATTERN_NEGATED) {
        last |= NEGATED;
        set->negates = 1;
    }
    if (!(kind & RDC_PATTERN_DIRECTORY))
        last |= MATCHES_FILE;
    last |= kind & RDC_PATTERN_INSIDE ? MATCHES_INSIDE : MATCHES_FOLDER;
    set->marks[set->states - 1] |= last;
    set->ends[set->count++] = set->states - 1;
    return 0;
}

/* The automaton. */

static int takes(const rdc_patterns *set, uint32_t token, unsigned byte)
{
    if (token < CLASSES)
        return token == byte;
    return token != NO_TOKEN && (set->classes[token - CLASSES].bits[byte >> 6] >> (byte & 63) & 1);
}

/* The states whose token takes a byte, or NULL for lack of memory. */
static const uint64_t *row_of(rdc_patterns *set, unsigned byte)
{
    if (!set->rows[byte]) {
        /* Rows are made when their byte is met. A larger set makes some of them again: it is slower, never wrong. */
        if ((set->rows_count + 1) * set->words * sizeof *set->masks > ROWS_BYTES)
            drop_rows(set);
        uint64_t *row = calloc(set->words, sizeof *row);
        if (!row)
            return NULL;
        for (size_t i = 0; i < set->states; i++)
            row[i >> 6] |= (uint64_t)takes(set, set->tokens[i], byte) << (i & 63);
        set->rows[byte] = row;
        set->rows_count++;
    }
    return set->rows[byte];
}

/* Takes the states over one byte, from `from` to `to`. `inject`: those that begin behind a '/'. */
static int step(rdc_patterns *set, unsigned byte, const uint64_t *restrict from, uint64_t *restrict to,
                const uint64_t *restrict inject)
{
    const uint64_t *restrict row = row_of(set, byte);
    const uint64_t *restrict loops = mask(set, byte == '/' ? LOOP_SLASH : LOOP);
    const size_t words = set->words;
    if (!row)
        return -1;
    to[0] = (from[0] << 1 & row[0]) | (from[0] & loops[0]);
    for (size_t i = 1; i < words; i++)
        to[i] = ((from[i] << 1 | from[i - 1] >> 63) & row[i]) | (from[i] & loops[i]);
    if (byte == '/') {
        const uint64_t *restrict skip = mask(set, SKIP);
        to[0] |= (from[0] << 2 & skip[0]) | inject[0];
        for (size_t i = 1; i < words; i++)
            to[i] |= ((from[i] << 2 | from[i - 1] >> 62) & skip[i]) | inject[i];
    }
    return 0;
}

/* Takes states over a text, with two buffers in turn. Returns the one that has the result, or NULL. */
static uint64_t *run(rdc_patterns *set, const uint8_t *text, size_t size, const uint64_t *from,
                     const uint64_t *inject)
{
    uint64_t *to = set->scratch, *other = set->scratch + set->words;
    memmove(to, from, set->words * sizeof *to); /* they may be in the first buffer */
    for (size_t i = 0; i < size; i++) {
        uint64_t *swapped = to;
        if (step(set, text[i], to, other, inject))
            return NULL;
        to = other;
        other = swapped;
    }
    return to;
}

static void put_bit(rdc_patterns *set, int which, size_t state)
{
    set->masks[(size_t)which * set->words + (state >> 6)] |= UINT64_C(1) << (state & 63);
}

int rdc_patterns_seal(rdc_patterns *set, const uint8_t *prefix, size_t size)
{
    set->words = set->states / 64 + 1;
    set->masks = calloc(MASKS * set->words, sizeof *set->masks);
    set->scratch = calloc(2 * set->words, sizeof *set->scratch);
    uint64_t *absolute = calloc(2 * set->words, sizeof *absolute);
    if (!set->masks || !set->scratch || !absolute) {
        free(absolute);
        return -1;
    }
    uint64_t *const begin = absolute, *const inject = absolute + set->words;
    for (size_t i = 0; i < set->states; i++) {
        const unsigned marks = set->marks[i];
        if (marks & (LOOPS | LOOPS_IN_NAME))
            put_bit(set, LOOP, i);
        if (marks & LOOPS)
            put_bit(set, LOOP_SLASH, i);
        if (marks & SKIPPED_TO)
            put_bit(set, SKIP, i);
        if (marks & ANYWHERE)
            put_bit(set, INJECT, i);
        if (marks & MATCHES_FILE)
            put_bit(set, FILE_MASK, i);
        if (marks & MATCHES_FOLDER)
            put_bit(set, FOLDER_MASK, i);
        if (marks & MATCHES_INSIDE)
            put_bit(set, INSIDE_MASK, i);
        if (marks & NEGATED)
            put_bit(set, NEGATED_MASK, i);
        if (marks & DECIDES)
            put_bit(set, LAST, i);
        if (marks & BEGINS && !(marks & ABSOLUTE))
            put_bit(set, FIRST, i);
        if (marks & ABSOLUTE) {
            begin[i >> 6] |= UINT64_C(1) << (i & 63);
            if (marks & ANYWHERE)
                inject[i >> 6] |= UINT64_C(1) << (i & 63);
        }
    }
    const uint64_t *after = run(set, prefix, size, begin, inject);
    for (size_t i = 0; after && i < set->words; i++)
        set->masks[FIRST * set->words + i] |= after[i];
    free(absolute);
    free(set->marks);
    set->marks = NULL;
    const size_t most = REMEMBERED_BYTES / (set->words * sizeof *set->scratch);
    set->directories_most = most > REMEMBERED_MOST    ? REMEMBERED_MOST
                            : most < REMEMBERED_LEAST ? REMEMBERED_LEAST
                                                      : most;
    return after ? 0 : -1;
}

/* Directories. */

static int is_below(const directory *above, const uint8_t *path, size_t size)
{
    return above->size <= size && (above->size == size || path[above->size] == '/') &&
           !memcmp(above->path, path, above->size);
}

/* The directory that was used longest ago, or a new one; NULL for lack of memory. */
static directory *place_for(rdc_patterns *set, const uint8_t *path, size_t size)
{
    directory *found = NULL;
    if (set->directories_count < set->directories_most) {
        if (!set->directories)
            set->directories = calloc(set->directories_most, sizeof *set->directories);
        if (!set->directories)
            return NULL;
        found = set->directories + set->directories_count;
        found->states = malloc(set->words * sizeof *found->states);
        if (!found->states)
            return NULL;
        set->directories_count++;
    } else {
        found = set->directories;
        for (size_t i = 1; i < set->directories_count; i++)
            if (set->directories[i].used < found->used)
                found = set->directories + i;
    }
    found->size = SIZE_MAX; /* it is nothing until it is whole */
    if (make_room(&found->path, &found->room, size, 1))
        return NULL;
    memcpy(found->path, path, size);
    return found;
}

static size_t slashes(const uint8_t *text, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += text[i] == '/';
    return count;
}

/* The states after "path/", or NULL for lack of memory. */
static const uint64_t *states_in(rdc_patterns *set, const uint8_t *path, size_t size)
{
    directory *best = NULL;
    if (set->last && set->last->size == size && !memcmp(set->last->path, path, size))
        return set->last->states;
    for (size_t i = 0; i < set->directories_count; i++)
        if (is_below(set->directories + i, path, size) && (!best || set->directories[i].size > best->size))
            best = set->directories + i;
    const uint64_t *states = best ? best->states : mask(set, FIRST);
    size_t at = best ? best->size + 1 : 0;
    if (best)
        best->used = ++set->clock;
    /* Those above it are remembered, too: a walk comes back to them. */
    size_t left = at < size ? slashes(path + at, size - at) + 1 : 0;
    while (at < size) {
        const uint8_t *end = memchr(path + at, '/', size - at);
        const size_t stop = end ? (size_t)(end - path) : size;
        uint64_t *reached = run(set, path + at, stop - at, states, mask(set, INJECT));
        uint64_t *whole = reached == set->scratch ? set->scratch + set->words : set->scratch;
        if (!reached || step(set, '/', reached, whole, mask(set, INJECT)))
            return NULL;
        states = whole;
        if (left-- <= set->directories_most) {
            best = place_for(set, path, stop);
            if (!best)
                return NULL;
            memcpy(best->states, whole, set->words * sizeof *whole);
            best->size = stop;
            best->used = ++set->clock;
            states = best->states;
        } else if (whole != set->scratch) {
            memcpy(set->scratch, whole, set->words * sizeof *whole);
            states = set->scratch;
        }
        at = stop + 1;
    }
    set->last = best;
    return states;
}

/* The pattern whose last state is `state`. */
static size_t pattern_of(const rdc_patterns *set, size_t state)
{
    size_t low = 0, high = set->count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (set->ends[middle - 1] < state)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int rdc_patterns_first(rdc_patterns *set, const uint8_t *path, size_t size, int is_directory, size_t *number)
{
    size_t name = size;
    while (name && path[name - 1] != '/')
        name--;
    const uint64_t *from = name ? states_in(set, path, name - 1) : mask(set, FIRST);
    if (!from)
        return -1;
    const uint64_t *states = run(set, path + name, size - name, from, mask(set, INJECT));
    if (!states)
        return -1;
    uint64_t *inside = states == set->scratch ? set->scratch + set->words : set->scratch;
    if (is_directory && step(set, '/', states, inside, mask(set, INJECT)))
        return -1;
    const uint64_t *plain = mask(set, is_directory ? FOLDER_MASK : FILE_MASK), *within = mask(set, INSIDE_MASK);
    const uint64_t *negated = mask(set, NEGATED_MASK), *last = mask(set, LAST);
    for (size_t i = 0; i < set->words; i++) {
        uint64_t found = states[i] & plain[i];
        if (is_directory)
            found |= inside[i] & within[i];
        found = (found ^ negated[i]) & last[i];
        if (found) {
            *number = pattern_of(set, 64 * i + (size_t)__builtin_ctzll(found));
            return 0;
        }
    }
    *number = SIZE_MAX;
    return 0;
}

size_t rdc_patterns_bytes(const rdc_patterns *set)
{
    size_t bytes = sizeof *set + set->ends_room * sizeof *set->ends + set->states_room * sizeof *set->tokens +
                   set->classes_room * sizeof *set->classes +
                   set->words * (MASKS + 2 + set->rows_count + set->directories_count) * sizeof *set->masks;
    for (size_t i = 0; i < set->directories_count; i++)
        bytes += sizeof *set->directories + set->directories[i].room;
    return bytes;
}
