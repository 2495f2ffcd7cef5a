/* winnow.c - winnowing over any 64-bit ranks: the cuts between records of a signature level. */
#include "cut/winnow.h"

#include <string.h>

#include "cut/variant.h"

void rdc_winnower_start(rdc_winnower *w, uint64_t min, uint64_t max)
{
    memset(w, 0, sizeof *w);
    w->min = min;
    w->max = max;
}

int rdc_winnower_feed(rdc_winnower *w, const uint8_t *ranks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (w->count - w->cut == w->max) {
            /* The window's last position was pushed, so a front there is. */
            w->cut = rdc_minima_after(&w->minima, w->cut + w->min)->position;
            if (rdc_ends_append(&w->ends, w->cut))
                return -1;
        }
        w->count++;
        if (rdc_minima_push(&w->minima, w->count, 0, rdc_load64(ranks + 8 * i)))
            return -1;
    }
    return 0;
}

void rdc_winnower_end(rdc_winnower *w)
{
    free(w->minima.entry);
    free(w->ends.end);
    memset(&w->minima, 0, sizeof w->minima);
    memset(&w->ends, 0, sizeof w->ends);
}
