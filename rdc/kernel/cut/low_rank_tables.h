/*
 * low_rank_tables.h - low() by tables: one window afresh, and neighbouring ones by sliding.
 *
 * A fresh window costs 64 look-ups, or ten products; sliding costs two look-ups a position, but each waits for the one
 * before. Four chains side by side do not wait.
 */
#ifndef RDC_LOWS_H
#define RDC_LOWS_H

#include "cut/variant.h"

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
    *rest = *rest >> 8 ^ rdc_low_leaving[p[-RDC_LOW_WINDOW]] ^ rdc_low_slice[7][f & 0xff];
    return f;
}

/* What slide() must do. `window` is how the variant computes one window; with `mixed` each value is mixed as soon as it is
 * there, else all in the end, which compilers do in vector instructions where the variant has those. */
__attribute__((always_inline)) static inline void rdc_slide_over(const uint8_t *p, size_t n, uint64_t *low,
                                                                 uint64_t (*window)(const uint8_t *), int mixed)
{
    /* Four names, so that compilers keep the chains in registers. */
    const size_t quarter = n / 4;
    const uint8_t *const p0 = p + 1, *const p1 = p0 + quarter, *const p2 = p1 + quarter, *const p3 = p2 + quarter;
    uint64_t *const low1 = low + quarter, *const low2 = low1 + quarter, *const low3 = low2 + quarter;
    uint64_t rest0 = window(p0) ^ rdc_load64(p0 - 8), rest1 = window(p1) ^ rdc_load64(p1 - 8);
    uint64_t rest2 = window(p2) ^ rdc_load64(p2 - 8), rest3 = window(p3) ^ rdc_load64(p3 - 8);

    for (size_t i = 0; i < quarter; i++) {
        const uint64_t f0 = rdc_slide(&rest0, p0 + i), f1 = rdc_slide(&rest1, p1 + i);
        const uint64_t f2 = rdc_slide(&rest2, p2 + i), f3 = rdc_slide(&rest3, p3 + i);
        low[i] = mixed ? rdc_mix(f0) : f0;
        low1[i] = mixed ? rdc_mix(f1) : f1;
        low2[i] = mixed ? rdc_mix(f2) : f2;
        low3[i] = mixed ? rdc_mix(f3) : f3;
    }
    for (size_t i = quarter; i < n - 3 * quarter; i++) {
        const uint64_t f3 = rdc_slide(&rest3, p3 + i);
        low3[i] = mixed ? rdc_mix(f3) : f3;
    }
    if (!mixed)
        for (size_t i = 0; i < n; i++)
            low[i] = rdc_mix(low[i]);
}

/* What lows() must do: fresh windows, as those of a list lie far apart, or are few. */
__attribute__((always_inline)) static inline void rdc_lows(const uint8_t *p, const uint16_t *at, size_t count,
                                                           uint64_t *low, uint64_t (*window)(const uint8_t *))
{
    for (size_t k = 0; k < count; k++)
        low[k] = rdc_mix(window(p + at[k]));
}

#endif
