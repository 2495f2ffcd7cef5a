/* shingles.h - features of texts; tests/reference/shingles.py defines them. */
#ifndef RDC_SHINGLES_H
#define RDC_SHINGLES_H

#include "shingles/units.h"

/* Features of texts, one after another. `grow` makes room for so many more, or returns -1. */
typedef struct rdc_feature_list {
    uint64_t *features;
    size_t count, room;
    int (*grow)(struct rdc_feature_list *list, size_t more);
} rdc_feature_list;

typedef struct {
    rdc_units units;
    rdc_feature_list *list;
    size_t k;
    int wrap;
    uint64_t power;                    /* RDC_SHINGLE_BASE^k */
    uint64_t count;                    /* units of the text so far */
    uint64_t first[RDC_SHINGLE_LIMIT]; /* units of the text, k - 1 of them */
    uint64_t sums[RDC_SHINGLE_LIMIT + RDC_UNITS_AT_ONCE]; /* the polynomial of all units, behind each of the last k */
} rdc_shingler;

/* k is at least 1 and at most RDC_SHINGLE_LIMIT. */
void rdc_shingler_start(rdc_shingler *shingler, const rdc_shingling *variant, size_t k, int by_characters, int wrap,
                        rdc_feature_list *list);

/* Appends the features of one text to the list. Returns -1 if it does not grow. */
int rdc_shingle(rdc_shingler *shingler, const uint8_t *text, size_t size);

#endif
