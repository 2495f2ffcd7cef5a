/*
 * lows.h - low() by tables: one window afresh, and many neighbouring ones by sliding.
 *
 * Real data has one candidate in 256 bytes; hostile data can make every position one. Products and fresh windows cost
 * ten instructions and more a candidate; sliding costs two look-ups a byte, but each waits for the one before.
 * Four chains side by side do not wait.
 */
#ifndef RDC_LOWS_H
#define RDC_LOWS_H

#include "form.h"

/* Candidates are dense when sliding over all positions between them is cheaper than a window each. */
#define RDC_DENSE_COUNT 64
#define RDC_DENSE_GAP 3

/* The fingerprint of the 64 bytes before p: eight words, eight look-ups each. */
static inline uint64_t rdc_window_by_table(const uint8_t *p)
{
    uint64_t f = 0;
    for (int word = 0; word < RDC_LOW_WINDOW; word += 8) {
        uint64_t next = rdc_load64(p - RDC_LOW_WINDOW + word);
        for (int j = 0; j < 8; j++)
            next ^= rdc_low_slice[j][f >> 8 * j & 0xff];
        f = next;
    }
    return f;
}

/* From the window before p to the window before p + 1. */
static inline uint64_t rdc_slide(uint64_t f, const uint8_t *p)
{
    return f >> 8 ^ rdc_low_slice[7][f & 0xff] ^ (uint64_t)*p << 56 ^ rdc_low_leaving[p[-RDC_LOW_WINDOW]];
}

/* What lows() must do, where the positions are dense: returns whether it was done. `window` is how the form computes
 * one window. */
__attribute__((always_inline)) static inline int rdc_lows_if_dense(const uint8_t *p, const uint16_t *at, size_t count,
                                                                   uint64_t *low, uint64_t (*window)(const uint8_t *))
{
    uint64_t f[RDC_DENSE_GAP * RDC_BATCH], chain[4];
    size_t span, quarter;

    if (count < RDC_DENSE_COUNT || (span = (size_t)(at[count - 1] - at[0]) + 1) > RDC_DENSE_GAP * count)
        return 0;
    p += at[0];
    quarter = span / 4;
    for (size_t c = 0; c < 4; c++)
        f[c * quarter] = chain[c] = window(p + c * quarter);
    for (size_t i = 1; i < quarter; i++)
        for (size_t c = 0; c < 4; c++)
            f[c * quarter + i] = chain[c] = rdc_slide(chain[c], p + c * quarter + i - 1);
    for (size_t i = 4 * quarter; i < span; i++)
        f[i] = chain[3] = rdc_slide(chain[3], p + i - 1);
    if (span > count)
        for (size_t k = 0; k < count; k++)
            f[k] = f[at[k] - at[0]]; /* at[k] - at[0] >= k: nothing is overwritten before it is read */
    for (size_t k = 0; k < count; k++)
        low[k] = rdc_mix(f[k]);
    return 1;
}

#endif
