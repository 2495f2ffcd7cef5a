/* part_rows.c - what must hold for rows of a part before they are added.
 *
 * A part may be forged, so no sum may wrap. Each row is subtracted from what is left, which no number of rows
 * brings below 0. A product that does not fit 64 bits is more than what is left. */
#include "count/count.h"

static int is_ordered(const uint64_t *key, size_t n, uint64_t least, unsigned shift)
{
    int ordered = key[0] >= least && !(shift && key[n - 1] >> (64 - shift));
    for (size_t i = 1; i < n; i++)
        ordered &= key[i - 1] < key[i];
    return ordered;
}

rdc_rows_verdict rdc_judge_rows(const uint64_t *key, const uint64_t *size, const uint64_t *count, size_t n, uint64_t least,
                                unsigned shift, rdc_rows_left *left)
{
    uint64_t chunks = left->chunks, bytes = left->bytes, product;
    if (!is_ordered(key, n, least, shift))
        return RDC_ROWS_DISORDERED;
    for (size_t i = 0; i < n; i++) {
        if (!count[i] || count[i] > chunks || __builtin_mul_overflow(size[i], count[i], &product) || product > bytes)
            return RDC_ROWS_TOO_MANY;
        chunks -= count[i];
        bytes -= product;
    }
    *left = (rdc_rows_left){chunks, bytes};
    return RDC_ROWS_FINE;
}
