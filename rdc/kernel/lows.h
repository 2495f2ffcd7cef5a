/*
 * lows.h - low() by tables: one window afresh, and many neighbouring ones by sliding.
 *
 * Real data has one candidate in 256 bytes; hostile data can make every position one. A fresh window costs ten products,
 * or 64 look-ups, a candidate; sliding costs two look-ups a byte, but each waits for the one before. Four chains side by
 * side do not wait.
 */
#ifndef RDC_LOWS_H
#define RDC_LOWS_H

#include "form.h"

/* What a fresh window costs, in positions slid over by four chains. */
#define RDC_SLIDES_A_PRODUCT 4
#define RDC_SLIDES_A_TABLE 16

/* Candidates from which on four fresh windows to start the chains with can pay. */
#define RDC_DENSE_COUNT 8

/* Positions slid over at a time: their fingerprints stay in the first-level cache, beside leads and tables. */
#define RDC_SLIDE_SPAN 1024

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

/* The fingerprint of the window before p. The last eight bytes are their own residue, so only the *rest of it slides:
 * from what belongs to p to what belongs to p + 1. */
static inline uint64_t rdc_slide(uint64_t *rest, const uint8_t *p)
{
    const uint64_t f = *rest ^ rdc_load64(p - 8);
    *rest = *rest >> 8 ^ rdc_low_slice[7][f & 0xff] ^ rdc_low_leaving[p[-RDC_LOW_WINDOW]];
    return f;
}

/* The fingerprints of the windows before p, ..., p + span - 1, where `mixed` already as low(). */
__attribute__((always_inline)) static inline void rdc_slide_over(const uint8_t *p, size_t span, uint64_t *f, int mixed,
                                                                 uint64_t (*window)(const uint8_t *))
{
    /* Four names, so that compilers keep the chains in registers. */
    const size_t quarter = span / 4;
    const uint8_t *const p1 = p + quarter, *const p2 = p1 + quarter, *const p3 = p2 + quarter;
    uint64_t *const f1 = f + quarter, *const f2 = f1 + quarter, *const f3 = f2 + quarter;
    uint64_t rest0 = window(p) ^ rdc_load64(p - 8), rest1 = window(p1) ^ rdc_load64(p1 - 8);
    uint64_t rest2 = window(p2) ^ rdc_load64(p2 - 8), rest3 = window(p3) ^ rdc_load64(p3 - 8);
    size_t i = 0;

    for (; i < quarter; i++) {
        const uint64_t v0 = rdc_slide(&rest0, p + i), v1 = rdc_slide(&rest1, p1 + i);
        const uint64_t v2 = rdc_slide(&rest2, p2 + i), v3 = rdc_slide(&rest3, p3 + i);
        f[i] = mixed ? rdc_mix(v0) : v0;
        f1[i] = mixed ? rdc_mix(v1) : v1;
        f2[i] = mixed ? rdc_mix(v2) : v2;
        f3[i] = mixed ? rdc_mix(v3) : v3;
    }
    for (; 3 * quarter + i < span; i++) {
        const uint64_t v3 = rdc_slide(&rest3, p3 + i);
        f3[i] = mixed ? rdc_mix(v3) : v3;
    }
}

/* How many of at[] lie within RDC_SLIDE_SPAN positions from the first one on. */
static inline size_t rdc_in_one_slide(const uint16_t *at, size_t count)
{
    const size_t end = (size_t)at[0] + RDC_SLIDE_SPAN;
    size_t most = count < RDC_SLIDE_SPAN ? count : RDC_SLIDE_SPAN, low = 1;

    if (at[most - 1] < end)
        return most;
    while (low < most) {
        size_t middle = (low + most) / 2;
        if (at[middle] < end)
            low = middle + 1;
        else
            most = middle;
    }
    return low;
}

/* What lows() must do. `window` is how the form computes one window, `slides` what that costs; with `scalar` it mixes
 * one value at a time, and while it slides: multiplications then fill the gaps that look-ups leave. */
__attribute__((always_inline)) static inline void rdc_lows(const uint8_t *p, const uint16_t *at, size_t count,
                                                           uint64_t *low, uint64_t (*window)(const uint8_t *),
                                                           size_t slides, int scalar)
{
    uint64_t f[RDC_SLIDE_SPAN];

    if (count < RDC_DENSE_COUNT || (size_t)(at[count - 1] - at[0]) >= slides * count) {
        for (size_t k = 0; k < count; k++)
            low[k] = rdc_mix(window(p + at[k]));
        return;
    }
    while (count > 0) {
        const size_t some = rdc_in_one_slide(at, count), first = at[0], span = at[some - 1] - first + 1;
        if (scalar && span == some) {
            rdc_slide_over(p + first, span, low, 1, window);
        } else if (scalar && span < some + some / 4) {
            rdc_slide_over(p + first, span, f, 1, window);
            for (size_t k = 0; k < some; k++)
                low[k] = f[at[k] - first];
        } else {
            rdc_slide_over(p + first, span, f, 0, window);
            for (size_t k = 0; k < some; k++)
                low[k] = rdc_mix(f[at[k] - first]);
        }
        at += some;
        low += some;
        count -= some;
    }
}

#endif
