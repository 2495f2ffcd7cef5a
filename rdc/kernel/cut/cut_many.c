/* cut_many.c - cut points and traits of many short streams that lie one after another.
 *
 * A small file takes a microsecond here. In Python it would take several, all of them under the
 * interpreter's lock. */
#include "cut/cuts.h"

#include <string.h>

static int append_lengths(const rdc_cutter *cutter, rdc_ends *lengths)
{
    uint64_t start = 0;
    for (size_t i = 0; i < cutter->ends.count; i++) {
        if (rdc_ends_append(lengths, cutter->ends.end[i] - start))
            return -1;
        start = cutter->ends.end[i];
    }
    return cutter->length > start ? rdc_ends_append(lengths, cutter->length - start) : 0;
}

int rdc_cut_many(const rdc_variant *variant, uint64_t min, uint64_t max, const uint8_t *data, const uint64_t *sizes,
                 size_t count, int plain, uint32_t *counts, rdc_ends *lengths, uint8_t *traits)
{
    int failed = 0;

    memset(traits, 0, count * RDC_TRAIT_BYTES);
    for (size_t i = 0; i < count && !failed; i++) {
        const size_t before = lengths->count;
        if (plain && sizes[i] <= max) {
            failed = sizes[i] && rdc_ends_append(lengths, sizes[i]);
        } else {
            rdc_cutter cutter;
            rdc_cutter_start(&cutter, variant, min, max);
            cutter.plain = plain;
            failed = plain ? rdc_cutter_whole(&cutter, data, (size_t)sizes[i])
                           : rdc_cutter_feed(&cutter, data, (size_t)sizes[i]);
            failed = failed || append_lengths(&cutter, lengths);
            rdc_cutter_traits(&cutter, traits + i * RDC_TRAIT_BYTES);
            rdc_cutter_end(&cutter);
        }
        counts[i] = (uint32_t)(lengths->count - before);
        data += sizes[i];
    }
    return failed ? -1 : 0;
}
