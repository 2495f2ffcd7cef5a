/*
 * cut_many.c - cut points and traits of many short streams that lie one behind another.
 *
 * A small file costs a microsecond here, and several in Python around it, all of them under the interpreter's lock.
 */
#include "cut_many.h"

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

int rdc_cut_many(const rdc_form *form, uint64_t min, uint64_t max, const uint8_t *data, const uint64_t *sizes,
                 size_t count, int plain, uint32_t *counts, rdc_ends *lengths, uint8_t *traits)
{
    int failed = 0;
    for (size_t i = 0; i < count && !failed; i++) {
        const size_t before = lengths->count;
        rdc_cutter cutter;
        rdc_cutter_start(&cutter, form, min, max);
        cutter.plain = plain;
        failed = rdc_cutter_feed(&cutter, data, (size_t)sizes[i]) || append_lengths(&cutter, lengths);
        counts[i] = (uint32_t)(lengths->count - before);
        memset(traits, 0, RDC_TRAIT_BYTES);
        rdc_cutter_traits(&cutter, traits);
        rdc_cutter_end(&cutter);
        data += sizes[i];
        traits += RDC_TRAIT_BYTES;
    }
    return failed ? -1 : 0;
}
