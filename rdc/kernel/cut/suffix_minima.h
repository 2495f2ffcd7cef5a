/*
 * suffix_minima.h - which of many ranks are below all ranks after them.
 *
 * Looking from the end, minima of ranks in no order get rarer and rarer, those of periodic ones end: a branch over eight ranks
 * at a time is predicted well. But hostile ranks begin a new minimum wherever their author wants one. So that branch may go
 * the rare way a few times; what is left then is done without any branch on a rank, at a price that is the same for all.
 */
#ifndef RDC_SUFFIX_MINIMA_H
#define RDC_SUFFIX_MINIMA_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cut/variant.h"

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

static inline unsigned rdc_rank_lead(rdc_rank a)
{
    return (unsigned)(a >> 64);
}

static inline uint64_t rdc_rank_low(rdc_rank a)
{
    return (uint64_t)a;
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

static inline unsigned rdc_rank_lead(rdc_rank a)
{
    return (unsigned)a.lead;
}

static inline uint64_t rdc_rank_low(rdc_rank a)
{
    return a.low;
}

#endif

/* How often the branch may go the rare way. The last k of n ranks in no order hold the minimum of all with probability k / n,
 * so each time takes the list about e times as far: this many do for some hundred groups of eight, and cost hostile ranks
 * little beside those. */
#define RDC_CHANCES 6

/* Where a list of minima stands. */
typedef struct rdc_descent {
    rdc_rank best; /* the smallest so far */
    size_t listed;   /* how many are listed */
} rdc_descent;

/* Goes on with the rank of k, written behind the list and counted only if it belongs to it. */
static inline void rdc_descend(rdc_descent *d, uint16_t *keep, size_t k, unsigned lead, uint64_t low)
{
    const rdc_rank rank = rdc_rank_of(lead, low);
    const int below = rdc_rank_below(rank, d->best);
    keep[d->listed] = (uint16_t)k;
    d->listed += (size_t)below;
    d->best = below ? rank : d->best;
}

/* Whether none of the ranks of eight leads and lows can be below `best`: no lead is below its lead, no low below its low. */
static inline int rdc_none_below(const uint8_t *lead, const uint64_t *low, rdc_rank best)
{
    const uint64_t best_low = rdc_rank_low(best);
    for (int j = 0; j < 8; j++)
        if (low[j] < best_low)
            return 0;
    return rdc_bytes_below(rdc_load64(lead), rdc_rank_lead(best)) == 0;
}

/* Lists, descending, the k < n <= RDC_BLOCK whose rank is below all later ones; returns how many. keep has room for n. */
static inline size_t rdc_suffix_minima(const uint8_t *lead, const uint64_t *low, size_t n, uint16_t *keep)
{
    uint16_t keep_first[RDC_BLOCK / 2];
    rdc_descent first = {rdc_rank_of(256, 0), 0}, second = first;

    /* From here on the ranks from n on are done. */
    for (int chances = RDC_CHANCES; n > 0;) {
        if (n >= 8 && second.listed > 0 && rdc_none_below(lead + n - 8, low + n - 8, second.best)) {
            n -= 8;
            continue;
        }
        if (chances-- == 0)
            break;
        for (size_t stop = n > 8 ? n - 8 : 0; n > stop; n--)
            rdc_descend(&second, keep, n - 1, lead[n - 1], low[n - 1]);
    }
    /* Each comparison waits for the minimum before; two halves side by side wait half as long. */
    const size_t half = n / 2, before = second.listed;
    if (n % 2)
        rdc_descend(&second, keep, half, lead[n - 1], low[n - 1]);
    for (size_t k = half; k-- > 0;) {
        rdc_descend(&second, keep, k, lead[half + k], low[half + k]);
        rdc_descend(&first, keep_first, k, lead[k], low[k]);
    }
    for (size_t k = before; k < second.listed; k++)
        keep[k] = (uint16_t)(keep[k] + half);
    /* Of those of the first half the last are the smallest. */
    size_t below = 0;
    for (size_t step = 8; step > 0; step = step == 8) /* eights, then ones */
        while (first.listed - below >= step) {
            const size_t k = keep_first[first.listed - below - step];
            if (!rdc_rank_below(rdc_rank_of(lead[k], low[k]), second.best))
                break;
            below += step;
        }
    memcpy(keep + second.listed, keep_first + first.listed - below, below * sizeof *keep);
    return second.listed + below;
}

#endif
