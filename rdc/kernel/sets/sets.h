/* sets.h - resemblances and pairs, as the bindings call them; tests/reference defines them. */
#ifndef RDC_SETS_H
#define RDC_SETS_H

#include <stddef.h>
#include <stdint.h>

/* alike.c: pairs within groups whose samples mostly agree. */

/* Documents in groups, and what all documents have. */
typedef struct {
    const uint8_t *samples; /* `width` of each document */
    const uint32_t *labels; /* one of each document */
    const uint32_t *members; /* the documents of one group after another */
    const uint32_t *counts; /* members of each group */
    size_t groups, width;
} rdc_alike_groups;

/* The label of a document that is in no pair. */
#define RDC_ALIKE_SKIP UINT32_MAX

/* Called with a pair of members, in their order, and the number of equal samples. Nonzero ends it. */
typedef int rdc_alike_found(void *context, uint32_t one, uint32_t other, size_t equal);

/* Finds the pairs of each group with different labels and at least `least` equal samples, of which the first one is a
 * member at the positions `first` to before `stop`. Returns what `found` returned last. */
int rdc_alike_pairs(const rdc_alike_groups *groups, size_t least, size_t first, size_t stop, rdc_alike_found *found,
                    void *context);

/* Writes for each group how many pairs have different labels. `room` has as many numbers as the largest group. */
void rdc_label_pairs(const rdc_alike_groups *groups, uint32_t *room, uint64_t *found);

/* overlaps.c: the resemblance of sets of 32-bit numbers. */

/* Sorts numbers and drops repeated ones. `room` has as many. Returns how many different ones there are. */
size_t rdc_sorted_set(uint32_t *numbers, size_t count, uint32_t *room);

/* The Jaccard resemblance of two sorted sets, or 0 if it is below the threshold. */
double rdc_resemblance(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count, double threshold);

/* pairs.c: pairs of numbers as 64-bit ones: the first in the upper half. */

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

/* windows.c: the windows of a content as numbers. */

#define RDC_WINDOW 32 /* bytes */
#define RDC_SKETCH 32 /* bins, a byte each */

/* Writes the hashes of the windows that are at most `last`, in order, repeated ones too. `hashes` has room for one a byte.
 * Returns their number. */
size_t rdc_window_hashes(const uint8_t *data, size_t size, uint64_t last, uint64_t *hashes);

/* Writes RDC_SKETCH bytes: all 0 without a window. */
void rdc_window_sketch(const uint8_t *data, size_t size, uint8_t *sketch);

/* How many numbers two ascending columns of different numbers have in common. */
size_t rdc_shared_numbers(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count);

#endif
