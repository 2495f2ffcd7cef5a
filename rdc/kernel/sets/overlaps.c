/* overlaps.c - sorts sets of 32-bit numbers, and compares two of them. */
#include "sets/sets.h"

#include <string.h>

#define FEW 48 /* numbers that insertion sorts faster than counting does */

static void insert(uint32_t *numbers, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const uint32_t one = numbers[i];
        size_t at = i;
        for (; at && numbers[at - 1] > one; at--)
            numbers[at] = numbers[at - 1];
        numbers[at] = one;
    }
}

/* Moves numbers to `to`, in the order of 8 of their bits. */
static void count_bits(const uint32_t *from, size_t count, unsigned shift, uint32_t *to)
{
    size_t starts[256] = {0}, start = 0;
    for (size_t i = 0; i < count; i++)
        starts[from[i] >> shift & 255]++;
    for (unsigned value = 0; value < 256; value++) {
        const size_t size = starts[value];
        starts[value] = start;
        start += size;
    }
    for (size_t i = 0; i < count; i++)
        to[starts[from[i] >> shift & 255]++] = from[i];
}

/* Sorts numbers that are nearly in order. Returns 0 if they are not: after a few steps for each. */
static int insert_few(uint32_t *numbers, size_t count)
{
    size_t steps = 4 * count;
    for (size_t i = 1; i < count; i++) {
        const uint32_t one = numbers[i];
        size_t at = i;
        for (; at && numbers[at - 1] > one && steps; at--, steps--)
            numbers[at] = numbers[at - 1];
        numbers[at] = one;
        if (!steps)
            return 0;
    }
    return 1;
}

/* Sorts by the upper half, which nearly always decides between hashes. Other numbers are counted byte by byte from the
 * lowest on, in linear time. */
static void sort_many(uint32_t *numbers, size_t count, uint32_t *room)
{
    count_bits(numbers, count, 16, room);
    count_bits(room, count, 24, numbers);
    if (insert_few(numbers, count))
        return;
    for (unsigned shift = 0; shift < 32; shift += 16) {
        count_bits(numbers, count, shift, room);
        count_bits(room, count, shift + 8, numbers);
    }
}

size_t rdc_sorted_set(uint32_t *numbers, size_t count, uint32_t *room)
{
    if (count <= FEW)
        insert(numbers, count);
    else
        sort_many(numbers, count, room);
    size_t different = 0;
    for (size_t i = 0; i < count; i++)
        if (!different || numbers[i] != numbers[different - 1])
            numbers[different++] = numbers[i];
    return different;
}

#define STEPS 32 /* of a merge before it asks whether enough elements are left */

static double resemblance(size_t shared, size_t both)
{
    return both ? (double)shared / (double)(both - shared) : 1;
}

/* The fewest common elements of two sets, of so many elements together, that resemble each other by the threshold.
 * Divisions decide, so rounding changes nothing. */
static size_t fewest_shared(size_t both, double threshold)
{
    size_t shared = (size_t)(threshold / (1 + threshold) * (double)both);
    while (shared && resemblance(shared - 1, both) >= threshold)
        shared--;
    while (shared <= both / 2 && resemblance(shared, both) < threshold)
        shared++;
    return shared;
}

static size_t has(const uint32_t *numbers, size_t count, uint32_t number)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += numbers[i] == number;
    return found;
}

double rdc_resemblance(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count, double threshold)
{
    const size_t both = a_count + b_count, fewest = fewest_shared(both, threshold);
    size_t a_first = 0, b_first = 0, shared = 0;
    for (;;) {
        const size_t a_left = a_count - a_first, b_left = b_count - b_first, left = a_left < b_left ? a_left : b_left;
        if (shared + left < fewest)
            return 0;
        if (left < 2) {
            shared += a_left == 1 ? has(b + b_first, b_left, a[a_first]) : b_left == 1 ? has(a + a_first, a_left, b[b_first]) : 0;
            return shared < fewest ? 0 : resemblance(shared, both);
        }
        /* From both ends at once: neither waits for the other. A step drops at most one element of each set there. */
        size_t steps = left / 2 < STEPS ? left / 2 : STEPS;
        for (; steps; steps--) {
            const uint32_t one = a[a_first], other = b[b_first];
            const uint32_t last = a[a_count - 1], other_last = b[b_count - 1];
            shared += (one == other) + (last == other_last);
            a_first += one <= other;
            b_first += other <= one;
            a_count -= last >= other_last;
            b_count -= other_last >= last;
        }
    }
}
