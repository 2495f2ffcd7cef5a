/* overlaps.h - the resemblance of sets of 32-bit numbers; tests/reference/overlaps.py defines it. */
#ifndef RDC_OVERLAPS_H
#define RDC_OVERLAPS_H

#include <stddef.h>
#include <stdint.h>

/* Sorts numbers and drops repeated ones. `room` has as many. Returns how many different ones there are. */
size_t rdc_sorted_set(uint32_t *numbers, size_t count, uint32_t *room);

/* The Jaccard resemblance of two sorted sets, or 0 if it is below the threshold. */
double rdc_resemblance(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count, double threshold);

#endif
