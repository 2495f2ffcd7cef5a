/* alike.h - pairs within groups whose samples mostly agree; tests/reference/alike.py defines them. */
#ifndef RDC_ALIKE_H
#define RDC_ALIKE_H

#include <stddef.h>
#include <stdint.h>

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

#endif
