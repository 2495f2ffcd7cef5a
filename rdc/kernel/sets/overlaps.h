/* overlaps.h - common elements of sets of 32-bit numbers; rdc/kernel/sets/reference.py defines them. */
#ifndef RDC_OVERLAPS_H
#define RDC_OVERLAPS_H

#include <stddef.h>
#include <stdint.h>

/* Sorts numbers and drops repeated ones. `room` has as many. Returns how many different ones there are. */
size_t rdc_sorted_set(uint32_t *numbers, size_t count, uint32_t *room);

/* How many numbers two sorted sets have in common. */
size_t rdc_shared(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count);

#endif
