/* pairs.h - pairs of numbers as 64-bit ones: the first in the upper half; tests/reference/pairs.py defines
 * them. */
#ifndef RDC_PAIRS_H
#define RDC_PAIRS_H

#include <stddef.h>
#include <stdint.h>

/* Writes the pairs of the members from `first` to before `stop` with the `window` that follow each in its group, or
 * only counts them if `pairs` is NULL. Returns their number. */
size_t rdc_neighbour_pairs(const uint32_t *members, const uint32_t *counts, size_t groups, size_t window, size_t first,
                           size_t stop, uint64_t *pairs);

/* Sorts pairs and drops repeated ones. `room` has as many. Returns how many different ones there are. */
size_t rdc_sorted_pairs(uint64_t *pairs, size_t count, uint64_t *room);

/* Writes the pairs of a column in order that another column in order lacks. Returns their number. */
size_t rdc_missing_pairs(const uint64_t *pairs, size_t count, const uint64_t *known, size_t known_count, uint64_t *missing);

/* Writes the different numbers in order, and for each number which of them it is. `count` is below 2^32; all of the
 * other columns have as many. Returns how many different ones there are. */
size_t rdc_ranked_numbers(const uint32_t *numbers, size_t count, uint64_t *pairs, uint64_t *room, uint32_t *different,
                          uint32_t *ranks);

#endif
