/* block_features.h - takes the features of one block into the samples of a stream; a part of cuts.c. */
#ifndef RDC_BLOCK_FEATURES_H
#define RDC_BLOCK_FEATURES_H

#include "cut/cuts.h"

/*
 * Adds the features with lead > 0 among the `count` positions at[] of a stream's beginning. Moves those with lead 0 to the
 * front of at[] and low[] and returns their number. `few` is not needed from position RDC_FEW_FEATURES_BELOW on.
 */
static inline size_t take_few(rdc_cutter *c, const uint8_t *lead, uint16_t *at, uint64_t *low, size_t count)
{
    uint64_t others[RDC_POSITIONS];
    size_t zeros = 0;

    for (size_t k = 0; k < count; k++) {
        const size_t zero = lead[at[k] - 1] == 0;
        others[k - zeros] = low[k];
        at[zeros] = at[k];
        low[zeros] = low[k];
        zeros += zero;
    }
    rdc_samples_add(&c->few, others, count - zeros);
    return zeros;
}

/* Adds the features among the n positions of a dense block. `early`: the block is at the beginning of the stream. */
static inline void take_features(rdc_cutter *c, const uint8_t *lead, const uint64_t *low, size_t n, int early)
{
    uint16_t at[RDC_BLOCK], others[RDC_BLOCK];
    size_t count = c->variant->contenders(c->features.reach, early ? c->few.reach : 0, lead, low, n, at), zeros = 0;

    for (size_t k = 0; early && k < count; k++) {
        const uint16_t i = at[k];
        others[k - zeros] = i;
        at[zeros] = i;
        zeros += lead[i - 1] == 0;
    }
    rdc_samples_add_near(&c->features, low, at, early ? zeros : count);
    rdc_samples_add_near(&c->few, low, others, early ? count - zeros : 0);
}

#endif
