/* match_near.h - searches blocks near the offsets that their neighbours predict. */
#ifndef RDC_BLOCK_RUNS_H
#define RDC_BLOCK_RUNS_H

#include "ranges.h"

/* Searches the blocks of unmatched runs. Each run is cut into blocks of `size` bytes (the last may be
 * shorter) with fingerprints of `width` (1 to 8) bytes.
 *
 * Each block is compared at the offset that continues the last match, and at the one that precedes the
 * run's end. A whole block is then compared at every offset up to `reach` bytes from both; the first that
 * fits wins. `base` has the base's bytes from `origin` on. Writes the matches, neighbours joined, to
 * `out`, which has room for all blocks. Returns their number, or -1 without memory. Time: linear in the
 * length of the windows, and 4 `reach` comparisons per block. */
int64_t rdc_match_runs(const uint8_t *key, const uint8_t *base, size_t base_length, uint64_t origin, size_t size,
                       unsigned width, size_t reach, const rdc_run *runs, size_t count, const uint8_t *fingerprints,
                       rdc_match *out);

#endif
