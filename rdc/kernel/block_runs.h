/* block_runs.h - blocks that are looked for where their neighbours say. */
#ifndef RDC_BLOCK_RUNS_H
#define RDC_BLOCK_RUNS_H

#include <stddef.h>
#include <stdint.h>

/* A place in the base that is not known. */
#define RDC_UNPLACED UINT64_MAX

/* `length` bytes of a file from `offset` on, of which nothing is known but what lies before and behind them. */
typedef struct {
    uint64_t offset, length;
    uint64_t before; /* where the base goes on from what precedes the run, or RDC_UNPLACED */
    uint64_t behind; /* where in the base what follows the run begins, or RDC_UNPLACED */
} rdc_run;

/* `length` bytes of the file at `offset` that the base has at `place`. */
typedef struct {
    uint64_t offset, place, length;
} rdc_piece;

/* The blocks of `size` bytes that each run is cut into (the last may be shorter) have fingerprints of `width` (1 to 8)
 * bytes. Each is compared with the base where it would be if nothing had been put in or taken out since the piece found
 * last, or before the piece behind; failing that, if it is a whole one, with every offset up to `reach` bytes to either
 * side of these, the first that fits. The base's bytes from `origin` on are given. Writes what was found, neighbours
 * joined, to `out`, which has room for all blocks. Their number, or -1 for want of memory. Time: linear in the windows'
 * length, and 4 `reach` comparisons a block. */
int64_t rdc_match_runs(const uint8_t *key, const uint8_t *base, size_t base_length, uint64_t origin, size_t size,
                       unsigned width, size_t reach, const rdc_run *runs, size_t count, const uint8_t *fingerprints,
                       rdc_piece *out);

#endif
