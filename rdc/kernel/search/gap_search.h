/*
 * gap_search.h - the search for blocks of a file's gaps in windows of a base; rdc/plan/gap_search.py defines it.
 */
#ifndef RDC_GAP_SEARCH_H
#define RDC_GAP_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#include "search/match_near.h"

/* `length` bytes of a file from `start` on. */
typedef struct {
    uint64_t start, length;
} rdc_span;

/* The parameters of a search. The key has 16 bytes; blocks have `size` >= 1 bytes and fingerprints of
 * `width` (1 to 8) bytes. Unmatched ranges are to be asked about in blocks of `smaller` bytes, unless that
 * is 0. */
typedef struct {
    const uint8_t *key;
    size_t size, smaller;
    unsigned width;
} rdc_gap_question;

/* One gap with its window: `length` bytes of the base from `start` on. `ranges` and `matches` are in
 * order, and matches lie within the window. Offsets and starts are at most 2^63. `fingerprints` has those
 * of the `blocks` blocks in the ranges. */
typedef struct {
    const uint8_t *window;
    uint64_t start;
    size_t length;
    const rdc_span *ranges;
    size_t range_count;
    const rdc_match *matches;
    size_t match_count;
    const uint8_t *fingerprints;
    size_t blocks;
} rdc_gap;

/* Memory for gaps of up to so many blocks and matches. */
typedef struct rdc_gap_scratch rdc_gap_scratch;

rdc_gap_scratch *rdc_gap_scratch_new(size_t blocks, size_t matches); /* NULL for want of memory */
void rdc_gap_scratch_free(rdc_gap_scratch *scratch);

/* Writes the gap's matches, old and new, to `matches`, which has room for its matches and blocks together.
 * Writes the ranges to ask about next to `ranges`, which has room for its blocks. Returns 0, or -1 without
 * memory.
 *
 * Time: one search of the window for all blocks, one of a few KiB per range for its tail, and at most one
 * more search of the window for all blocks out of order together. */
int rdc_search_gap(const rdc_gap_question *question, const rdc_gap *gap, rdc_gap_scratch *scratch, rdc_match *matches,
                   size_t *match_count, rdc_span *ranges, size_t *range_count);

#endif
