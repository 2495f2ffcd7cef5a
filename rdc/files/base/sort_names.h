/* sort_names.h - sorts the names of a directory by their bytes. */
#ifndef RDC_SORT_NAMES_H
#define RDC_SORT_NAMES_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A name to sort: its first 8 bytes as a big-endian number, zeros behind a shorter one, decide most comparisons. */
typedef struct {
    uint64_t head;
    uint32_t at; /* in the blob of names */
    uint32_t row; /* of its facts */
} sort_entry;

/* Names hold no NUL: equal heads that end in one are equal names, and others go on after 8 bytes. */
static inline int compare(const uint8_t *names, const sort_entry *a, const sort_entry *b)
{
    if (a->head != b->head)
        return a->head < b->head ? -1 : 1;
    if (!(a->head & 0xff))
        return 0;
    return strcmp((const char *)names + a->at + 8, (const char *)names + b->at + 8);
}

/* Merges sorted runs of doubling length: n log n comparisons whatever the names, which may be chosen to hurt. */
static inline int sort_names(sort_entry **entries, size_t count, const uint8_t *names)
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

#endif
