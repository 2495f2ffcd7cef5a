/* ranges.h - rows that name ranges of a file: matches with a base, and packed pairs of offset and length. */
#ifndef RDC_RANGES_H
#define RDC_RANGES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* An offset in the base that is not known. */
#define RDC_UNPLACED UINT64_MAX

/* `length` bytes of a file from `offset` on, of which nothing is known but what lies before and behind them. */
typedef struct {
    uint64_t offset, length;
    uint64_t before; /* where the base goes on from what precedes the run, or RDC_UNPLACED */
    uint64_t behind; /* where in the base what follows the run begins, or RDC_UNPLACED */
} rdc_run;

/* `length` bytes of the file at `offset` that the base has at `base_offset`. */
typedef struct {
    uint64_t offset, base_offset, length;
} rdc_match;

/* Where a part of a content belongs. The parts lie in the content one behind another, and fill it. */
typedef struct {
    uint64_t offset; /* of its first byte, where it belongs */
    uint64_t length; /* in bytes */
} rdc_range;

/* Range `i`; `packed` need not be aligned. */
static inline rdc_range rdc_range_of(const uint8_t *packed, size_t i)
{
    rdc_range range;
    memcpy(&range, packed + sizeof range * i, sizeof range);
    return range;
}

/* Whether `bytes` of packed ranges are whole ones, whose parts fill a content of `size`. No sum overflows:
 * each length is compared with what is left. */
static inline int rdc_ranges_fill(const uint8_t *packed, size_t bytes, size_t size)
{
    size_t left = size;
    if (bytes % sizeof(rdc_range))
        return 0;
    for (size_t i = 0; i < bytes / sizeof(rdc_range); i++) {
        const uint64_t length = rdc_range_of(packed, i).length;
        if (length > left)
            return 0;
        left -= (size_t)length;
    }
    return left == 0;
}

#endif
