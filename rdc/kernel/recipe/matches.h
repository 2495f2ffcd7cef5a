/* matches.h - rows of matches, unmatched runs and copy instructions.
 *
 * tests/reference/recipe.py defines every function. Offsets and lengths end at RDC_END at most, so no sum of two
 * overflows. Functions return -1 for larger ones and for rows out of order. No function reads or writes
 * more than it says. */
#ifndef RDC_MATCHES_H
#define RDC_MATCHES_H

#include <stddef.h>
#include <stdint.h>

#include "ranges.h"

#define RDC_END (UINT64_MAX >> 1)

/* Instead of a base: the bytes are fetched. */
#define RDC_LITERAL UINT64_MAX

/* The next `count` runs are searched in bytes start to stop of the base; they have `blocks` blocks. */
typedef struct {
    uint64_t count, start, stop, blocks;
} rdc_span;

/* `length` bytes of the file at `offset` that `base` has at `base_offset`. */
typedef struct {
    uint64_t offset, base, base_offset, length;
} rdc_copy;

/* The next `length` bytes of a chunk: at `base_offset` of `base`, or of the literals. */
typedef struct {
    uint64_t base, base_offset, length;
} rdc_instruction;

/* The limits that cut a run to what is asked about; see tests/reference/recipe.py. */
typedef struct {
    uint64_t size, ends, far, tail;
} rdc_run_limits;

/* The next `count` ranges are read at once: `length` bytes from `start` on. */
typedef struct {
    uint64_t count, start, length;
} rdc_read;

/* Returns whether `length` bytes from `start` on end at RDC_END at most. */
static inline int rdc_fits(uint64_t start, uint64_t length)
{
    return start <= RDC_END && length <= RDC_END - start;
}

/* `out` has room for `count` reads. */
int64_t rdc_range_reads(const rdc_range *ranges, size_t count, uint64_t close, uint64_t most, rdc_read *out);

/* `out` has room for `length` bytes. Returns the number of bytes copied. */
int64_t rdc_take_ranges(const rdc_range *ranges, size_t count, uint64_t start, const uint8_t *data, size_t length,
                        uint8_t *out);

/* Writes up to `reach` bytes before and after each of these ascending ranges of a file of `size` bytes;
 * the rows contain no byte of the ranges. `out` has room for 2 * count. */
int64_t rdc_around_ranges(const rdc_range *ranges, size_t count, uint64_t reach, uint64_t size, rdc_range *out);

/* Copies `base_offsets`; an unplaced entry gets that of `more` plus `shift`. `out` has room for `count`. */
int64_t rdc_fill_offsets(const uint64_t *base_offsets, const uint64_t *more, size_t count, uint64_t shift, uint64_t *out);

/* `out` has room for `count` matches. */
int64_t rdc_block_matches(uint64_t offset, uint64_t size, const uint64_t *base_offsets, size_t count, rdc_match *out);

/* `out` has room for both. */
int64_t rdc_join_matches(const rdc_match *first, size_t firsts, const rdc_match *second, size_t seconds, rdc_match *out);

/* `out` has room for 2 (count + 1) runs or for most + 1, whichever is less. */
int64_t rdc_unmatched_runs(const rdc_match *matches, size_t count, uint64_t start, uint64_t end, uint64_t before,
                      uint64_t behind, const rdc_run_limits *limits, uint64_t most, rdc_run *out);

/* `out` has room for `count` spans. */
int64_t rdc_run_spans(const rdc_run *runs, size_t count, uint64_t size, uint64_t reach, uint64_t close, uint64_t most,
                      rdc_span *out);

/* Returns the number of copy instructions. `out` has room for as many, or is NULL to count only. */
int64_t rdc_instructions_of_range(const rdc_copy *copies, size_t count, uint64_t offset, uint64_t length, rdc_instruction *out);

/* Number of copy instructions of a range, and their bytes to fetch. */
typedef struct {
    uint64_t instructions, fetched;
} rdc_instruction_totals;

/* Like rdc_instructions_of_range, for ranges one after another. `totals` has room for each range; it is
 * NULL if `out` is. */
int64_t rdc_instructions_of_ranges(const rdc_copy *copies, size_t count, const rdc_range *ranges, size_t number, rdc_instruction *out,
                        rdc_instruction_totals *totals);

/* `out` has room for `count` copies, or ranges. */
int64_t rdc_copies_of(const rdc_instruction *instructions, size_t count, uint64_t offset, rdc_copy *out);
int64_t rdc_fetched_ranges(const rdc_instruction *instructions, size_t count, uint64_t offset, rdc_range *out);

/* What each read is extended by: bytes before it, and bytes behind it up to the end of its base. `sizes`
 * has the sizes of the first `bases` bases. */
typedef struct {
    uint64_t back, ahead;
    const uint64_t *sizes;
    uint64_t bases;
} rdc_surroundings;

/* Plans reads. `reads` (base, offset, length) and `sources` (a copy instruction's bytes in the data read,
 * or RDC_LITERAL) have room for `count` rows each. Sets *literals to the bytes of literals. Returns the
 * number of reads; -2 without memory. */
int64_t rdc_plan_reads(const rdc_instruction *instructions, size_t count, uint64_t close, const rdc_surroundings *around,
                       rdc_instruction *reads, rdc_range *sources, uint64_t *literals);

/* Returns how many bytes `sources` make of `copied` bytes and exactly `literals` bytes, or -1. */
int64_t rdc_assembled_bytes(const rdc_range *sources, size_t count, uint64_t copied, uint64_t literals);

/* Builds the bytes. The caller gives `out` the room that rdc_assembled_bytes returned. */
void rdc_assemble(const rdc_range *sources, size_t count, const uint8_t *copied, const uint8_t *literals, uint8_t *out);

/* Returns how many bytes `sources` make with zeros for literals, or -1. */
int64_t rdc_image_bytes(const rdc_range *sources, size_t count, uint64_t copied);

/* Builds these bytes, and one bit for each from the bits of the bytes copied. */
void rdc_assemble_with_bits(const rdc_range *sources, size_t count, const uint8_t *copied, const uint8_t *bits, size_t size,
                    uint8_t *out, uint8_t *out_bits);

#endif
