/* mix.h - a one-to-one mix of 64-bit numbers, which orders window fingerprints and spreads keys of tables. */
#ifndef RDC_MIX_H
#define RDC_MIX_H

#include <stdint.h>

#include "cut/tables.h"

/* low() from the 64-bit window fingerprint: SplitMix64 (Steele, Lea, Flood 2014), one-to-one; 0 does not stay 0. */
static inline uint64_t rdc_mix(uint64_t x)
{
    x += RDC_GOLDEN;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

#endif
