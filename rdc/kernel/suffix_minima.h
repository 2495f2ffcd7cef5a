/*
 * suffix_minima.h - which of many ranks are below all ranks after them.
 *
 * Looking from the end, minima of ranks in no order get rarer and rarer, and branches on them would be predicted well. But
 * hostile ranks begin a new minimum wherever their author wants one. So there is no branch on a rank: all ranks cost the
 * same. Each comparison waits for the minimum before; two halves side by side wait half as long.
 */
#ifndef RDC_SUFFIX_MINIMA_H
#define RDC_SUFFIX_MINIMA_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "form.h"

#if defined(__SIZEOF_INT128__)

__extension__ typedef unsigned __int128 rdc_rank;

static inline rdc_rank rdc_rank_of(unsigned lead, uint64_t low)
{
    return (rdc_rank)lead << 64 | low;
}

static inline int rdc_rank_below(rdc_rank a, rdc_rank b)
{
    return a < b;
}

#else

typedef struct rdc_rank {
    uint64_t lead, low;
} rdc_rank;

static inline rdc_rank rdc_rank_of(unsigned lead, uint64_t low)
{
    return (rdc_rank){lead, low};
}

static inline int rdc_rank_below(rdc_rank a, rdc_rank b)
{
    return (a.lead < b.lead) | ((a.lead == b.lead) & (a.low < b.low));
}

#endif

/* Where a list of minima stands. */
typedef struct rdc_descent {
    rdc_rank best; /* the smallest so far */
    size_t kept;   /* how many are listed */
} rdc_descent;

/* Goes on with the rank of k, written behind the list and counted only if it belongs to it. */
static inline void rdc_descend(rdc_descent *d, uint16_t *keep, size_t k, unsigned lead, uint64_t low)
{
    const rdc_rank rank = rdc_rank_of(lead, low);
    const int below = rdc_rank_below(rank, d->best);
    keep[d->kept] = (uint16_t)k;
    d->kept += (size_t)below;
    d->best = below ? rank : d->best;
}

/* Lists, descending, the k < n <= RDC_BLOCK whose rank is below all later ones; returns how many. keep has room for n. */
static inline size_t rdc_suffix_minima(const uint8_t *lead, const uint64_t *low, size_t n, uint16_t *keep)
{
    const size_t half = n / 2;
    uint16_t keep_first[RDC_BLOCK / 2];
    rdc_descent first = {rdc_rank_of(256, 0), 0}, second = first;

    if (n % 2)
        rdc_descend(&second, keep, half, lead[n - 1], low[n - 1]);
    for (size_t k = half; k-- > 0;) {
        rdc_descend(&second, keep, k, lead[half + k], low[half + k]);
        rdc_descend(&first, keep_first, k, lead[k], low[k]);
    }
    for (size_t k = 0; k < second.kept; k++)
        keep[k] = (uint16_t)(keep[k] + half);
    /* Of those of the first half the last are the smallest. */
    size_t below = 0;
    for (size_t step = 8; step > 0; step = step == 8) /* eights, then ones */
        while (first.kept - below >= step) {
            const size_t k = keep_first[first.kept - below - step];
            if (!rdc_rank_below(rdc_rank_of(lead[k], low[k]), second.best))
                break;
            below += step;
        }
    memcpy(keep + second.kept, keep_first + first.kept - below, below * sizeof *keep);
    return second.kept + below;
}

#endif
