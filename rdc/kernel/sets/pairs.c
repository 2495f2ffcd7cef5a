/* pairs.c - neighbours in groups as pairs, and pairs in order.
 *
 * Numbers are sorted by each byte from the lowest on. Bytes that all numbers share are left out: of positions, most
 * are zeros. */
#include "sets/sets.h"

#include <string.h>

typedef struct {
    size_t starts[8][256];
} byte_counts;

size_t rdc_neighbour_pairs(const uint32_t *members, const uint32_t *counts, size_t groups, size_t window, size_t first,
                           size_t stop, uint64_t *pairs)
{
    size_t found = 0, end = 0;
    for (size_t group = 0; group < groups && end < stop; group++) {
        size_t at = end;
        end += counts[group];
        if (at < first)
            at = first;
        for (; at < end && at < stop; at++) {
            const size_t others = end - at - 1 < window ? end - at - 1 : window;
            if (pairs)
                for (size_t i = 1; i <= others; i++)
                    pairs[found + i - 1] = (uint64_t)members[at] << 32 | members[at + i];
            found += others;
        }
    }
    return found;
}

size_t rdc_sorted_pairs(uint64_t *pairs, size_t count, uint64_t *room)
{
    byte_counts counts = {{{0}}};
    uint64_t *from = pairs, *to = room;
    for (size_t i = 0; i < count; i++)
        for (unsigned byte = 0; byte < 8; byte++)
            counts.starts[byte][pairs[i] >> 8 * byte & 255]++;
    for (unsigned byte = 0; byte < 8 && count; byte++) {
        size_t *starts = counts.starts[byte], start = 0;
        if (starts[pairs[0] >> 8 * byte & 255] == count)
            continue;
        for (unsigned value = 0; value < 256; value++) {
            const size_t size = starts[value];
            starts[value] = start;
            start += size;
        }
        for (size_t i = 0; i < count; i++)
            to[starts[from[i] >> 8 * byte & 255]++] = from[i];
        uint64_t *swapped = from;
        from = to;
        to = swapped;
    }
    size_t different = 0;
    for (size_t i = 0; i < count; i++)
        if (!different || from[i] != pairs[different - 1])
            pairs[different++] = from[i];
    return different;
}

size_t rdc_missing_pairs(const uint64_t *pairs, size_t count, const uint64_t *known, size_t known_count, uint64_t *missing)
{
    size_t found = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        while (at < known_count && known[at] < pairs[i])
            at++;
        if (at == known_count || known[at] != pairs[i])
            missing[found++] = pairs[i];
    }
    return found;
}

size_t rdc_ranked_numbers(const uint32_t *numbers, size_t count, uint64_t *pairs, uint64_t *room, uint32_t *different,
                          uint32_t *ranks)
{
    for (size_t i = 0; i < count; i++)
        pairs[i] = (uint64_t)numbers[i] << 32 | i;
    rdc_sorted_pairs(pairs, count, room);
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t number = (uint32_t)(pairs[i] >> 32);
        if (!found || number != different[found - 1])
            different[found++] = number;
        ranks[(uint32_t)pairs[i]] = (uint32_t)(found - 1);
    }
    return found;
}
