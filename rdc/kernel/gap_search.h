/*
 * gap_search.h - the search for blocks of a file's gaps in windows of a base; rdc/kernel/pure_gaps.py defines it.
 */
#ifndef RDC_GAP_SEARCH_H
#define RDC_GAP_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#include "block_runs.h"

/* `length` bytes of a file from `start` on. */
typedef struct {
    uint64_t start, length;
} rdc_span;

/* What is looked for, and where. The key has 16 bytes; blocks have `size` >= 1 bytes and fingerprints of `width` (1 to
 * 8). What is not found is to be asked about in blocks of `smaller` bytes, if that is not 0. */
typedef struct {
    const uint8_t *key;
    size_t size, smaller;
    unsigned width;
} rdc_gap_question;

/* One gap with its window: `length` bytes of the base from `start` on. `ranges` and `pieces` are in order; pieces lie
 * within the window; offsets and starts are up to 2^63. `fingerprints` are those of the `blocks` blocks that the ranges
 * are cut into. */
typedef struct {
    const uint8_t *window;
    uint64_t start;
    size_t length;
    const rdc_span *ranges;
    size_t range_count;
    const rdc_piece *pieces;
    size_t piece_count;
    const uint8_t *fingerprints;
    size_t blocks;
} rdc_gap;

/* Memory for gaps of up to so many blocks and pieces. */
typedef struct rdc_gap_scratch rdc_gap_scratch;

rdc_gap_scratch *rdc_gap_scratch_new(size_t blocks, size_t pieces); /* NULL for want of memory */
void rdc_gap_scratch_free(rdc_gap_scratch *scratch);

/* Writes the gap's pieces, old and new, to `pieces`, which has room for as many as it has pieces and blocks, and the
 * ranges to ask about next to `ranges`, which has room for as many as it has blocks. 0, or -1 for want of memory. Time:
 * a search of the window for all blocks, one of a few KiB for the last block of each range, and once more that of the
 * window for all blocks out of order together. */
int rdc_search_gap(const rdc_gap_question *question, const rdc_gap *gap, rdc_gap_scratch *scratch, rdc_piece *pieces,
                   size_t *piece_count, rdc_span *ranges, size_t *range_count);

#endif
