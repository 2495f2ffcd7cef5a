/* equal_rows.c - finds rows of a column whose values occur more than once.
 *
 * Rows are divided by the highest bits of their values, and then each part is sorted: hashes leave few rows to a part.
 * A merge sort takes n log n comparisons for any values, even hostile ones, and keeps equal values in row
 * order. The first 8 bytes, compared as one number, decide nearly all comparisons of digests and all of
 * numbers. */
#include "rows/rows.h"

#include <stdlib.h>
#include <string.h>

#define RUN 16 /* rows sorted by insertion before runs are merged */

#define MOST_BITS 12 /* that divide rows: the counts stay in the nearest cache */

typedef struct {
    uint64_t head; /* the value's first 8 bytes, big-endian; zeros fill a shorter one */
    uint32_t row;
} entry;

typedef struct {
    const uint8_t *column;
    size_t width;
} values;

static uint64_t head_of(const uint8_t *value, size_t width)
{
    uint64_t head = 0;
    for (size_t i = 0; i < 8; i++)
        head = head << 8 | (i < width ? value[i] : 0);
    return head;
}

static int compare(const values *v, const entry *a, const entry *b)
{
    if (a->head != b->head)
        return a->head < b->head ? -1 : 1;
    if (v->width <= 8)
        return 0;
    return memcmp(v->column + a->row * v->width + 8, v->column + b->row * v->width + 8, v->width - 8);
}

static void insert_run(const values *v, entry *entries, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const entry one = entries[i];
        size_t at = i;
        for (; at && compare(v, entries + at - 1, &one) > 0; at--)
            entries[at] = entries[at - 1];
        entries[at] = one;
    }
}

/* Returns the one of both arrays that holds the sorted rows. */
static entry *sorted(const values *v, entry *from, entry *to, size_t count)
{
    for (size_t start = 0; start < count; start += RUN)
        insert_run(v, from + start, count - start < RUN ? count - start : RUN);
    for (size_t width = RUN; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            const size_t middle = count - start < width ? count : start + width;
            const size_t end = count - start < 2 * width ? count : start + 2 * width;
            size_t a = start, b = middle, out = start;
            while (a < middle && b < end)
                to[out++] = compare(v, from + a, from + b) <= 0 ? from[a++] : from[b++];
            memcpy(to + out, from + a, (middle - a) * sizeof *to);
            memcpy(to + out + (middle - a), from + b, (end - b) * sizeof *to);
        }
        entry *swapped = from;
        from = to;
        to = swapped;
    }
    return from;
}

/* Moves rows to `to`, divided by the highest bits of their heads, in row order within a part. Writes where each part
 * ends. */
static void divide(const entry *from, entry *to, size_t count, unsigned shift, uint32_t *ends, size_t parts)
{
    memset(ends, 0, parts * sizeof *ends);
    for (size_t i = 0; i < count; i++)
        ends[from[i].head >> shift]++;
    uint32_t start = 0;
    for (size_t part = 0; part < parts; part++) {
        const uint32_t size = ends[part];
        ends[part] = start;
        start += size;
    }
    for (size_t i = 0; i < count; i++)
        to[ends[from[i].head >> shift]++] = from[i];
}

/* Sorts all rows. `room` has as many, `ends` has 1 << MOST_BITS. Returns the one of both that holds
 * them. */
static entry *sorted_parts(const values *v, entry *entries, entry *room, size_t count, uint32_t *ends)
{
    unsigned bits = 0;
    while (bits < MOST_BITS && count >> bits > RUN)
        bits++;
    if (!bits)
        return sorted(v, entries, room, count);
    const size_t parts = (size_t)1 << bits;
    divide(entries, room, count, 64 - bits, ends, parts);
    for (size_t part = 0, start = 0; part < parts; start = ends[part++]) {
        entry *found = sorted(v, room + start, entries + start, ends[part] - start);
        if (found != room + start)
            memcpy(room + start, found, (ends[part] - start) * sizeof *found);
    }
    return room;
}

int rdc_equal_rows(const uint8_t *column, size_t count, size_t width, uint32_t *rows, uint32_t *sizes, size_t *found,
                   size_t *groups)
{
    const values v = {column, width};
    entry *entries = malloc((2 * count + 1) * sizeof *entries);
    uint32_t *ends = malloc(sizeof *ends << MOST_BITS);

    *found = *groups = 0;
    if (!entries || !ends) {
        free(entries);
        free(ends);
        return -1;
    }
    for (size_t i = 0; i < count; i++)
        entries[i] = (entry){head_of(column + i * width, width), (uint32_t)i};
    const entry *order = sorted_parts(&v, entries, entries + count, count, ends);
    for (size_t start = 0, end; start < count; start = end) {
        for (end = start + 1; end < count && !compare(&v, order + start, order + end);)
            end++;
        if (end - start < 2)
            continue;
        for (size_t i = start; i < end; i++)
            rows[(*found)++] = order[i].row;
        sizes[(*groups)++] = (uint32_t)(end - start);
    }
    free(entries);
    free(ends);
    return 0;
}
