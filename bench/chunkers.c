/* chunkers.c - the chunkers that bench/dedup.py compares with, their mean a continuous parameter. */
#include "cut/variant.h"

#define EXPORT __attribute__((visibility("default")))

static uint64_t fraction(double of)
{
    return (uint64_t)(18446744073709551615.0 / of);
}

/* FastCDC with normalised chunking (Xia and others, 2016): no cut below average / 4, a Gear hash with a rarer condition
 * (a quarter) before the average and a more frequent one (four times) after, a forced cut at 8 times the average. A
 * threshold stands for the mask, so that any average can be had. */
EXPORT size_t fastcdc_cuts(const uint8_t *p, size_t n, double average, uint64_t *end)
{
    uint64_t gear[256];
    size_t count = 0, at = 0;
    for (unsigned i = 0; i < 256; i++)
        gear[i] = rdc_mix(i);
    while (at < n) {
        size_t normal = at + (size_t)average, i = at + (size_t)(average / 4), stop = at + (size_t)(8 * average);
        uint64_t h = 0, rare = fraction(4 * average), frequent = fraction(average / 4);
        stop = stop < n ? stop : n;
        for (; i < stop; i++) {
            h = (h << 1) + gear[p[i]];
            if (h < (i < normal ? rare : frequent)) {
                i++;
                break;
            }
        }
        at = i < n ? i : n;
        end[count++] = at;
    }
    return count;
}

/* Rabin with a mask, as in LBFS: a cut where the hash of the last 64 bytes is small, no cut below average / 4, a forced
 * one at 8 times the average. */
EXPORT size_t rabin_cuts(const uint8_t *p, size_t n, double average, uint64_t *end)
{
    uint64_t limit = fraction(average);
    size_t count = 0, low = (size_t)(average / 4), high = (size_t)(8 * average), start = 0;
    uint64_t f = 0;
    for (size_t i = 0; i < n; i++) {
        f = f >> 8 ^ rdc_low_slice[7][f & 0xff] ^ (uint64_t)p[i] << 56;
        if (i >= RDC_LOW_WINDOW)
            f ^= rdc_low_leaving[p[i - RDC_LOW_WINDOW]];
        size_t length = i + 1 - start;
        if ((length >= low && rdc_mix(f) < limit) || length >= high || i + 1 == n) {
            start = i + 1;
            end[count++] = start;
        }
    }
    return count;
}
