/* winnow.h - winnowing over any 64-bit ranks: the cuts between records of a signature level. */
#ifndef RDC_WINNOW_H
#define RDC_WINNOW_H

#include <stddef.h>
#include <stdint.h>

#include "cut/ends.h"
#include "cut/minima.h"

typedef struct rdc_winnower {
    uint64_t min, max;
    uint64_t count; /* records fed */
    uint64_t cut;
    rdc_ends ends; /* as in rdc_cutter */
    rdc_minima minima;
} rdc_winnower;

/* Starts a stream of records. The caller has checked 1 <= min < max. */
void rdc_winnower_start(rdc_winnower *w, uint64_t min, uint64_t max);

/* Takes `count` ranks in, 8 bytes each, little-endian; cuts go to w->ends. Returns -1 without memory. */
int rdc_winnower_feed(rdc_winnower *w, const uint8_t *ranks, size_t count);

void rdc_winnower_end(rdc_winnower *w);

#endif
