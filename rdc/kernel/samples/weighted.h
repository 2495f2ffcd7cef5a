/* weighted.h - samples of weighted sets; rdc/kernel/samples/weighted_reference.py defines them. */
#ifndef RDC_SAMPLES_WEIGHTED_H
#define RDC_SAMPLES_WEIGHTED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

/* The best feature of each function so far. */
typedef struct {
    double *least;   /* its a */
    double *steps;   /* its t */
    uint64_t *names; /* the feature */
} rdc_winners;

/* The functions that a seed stands for, and room for one set. */
typedef struct {
    size_t count;
    uint64_t *keys;
    rdc_winners winners;
} rdc_weighing;

typedef void rdc_weigh(uint64_t feature, double weight, const uint64_t *keys, size_t lanes, rdc_winners *winners);

/* Returns -1 without memory. rdc_weighing_end() after either result. */
int rdc_weighing_start(rdc_weighing *weighing, uint64_t seed, size_t count);
void rdc_weighing_end(rdc_weighing *weighing);

/* Writes weighing->count samples of one set. All weights are finite and not negative. */
void rdc_weighted_samples(rdc_weighing *weighing, rdc_weigh *weigh, const uint64_t *features, const double *weights,
                          size_t size, uint32_t *samples);

static inline double rdc_double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A number below 2^32 as a double, by the bits of 2^52 + bits: vectors of AVX2 cannot convert 64 bits. */
static inline double rdc_exactly(uint64_t bits)
{
    return rdc_double_of(UINT64_C(0x4330000000000000) | bits) - 0x1p52;
}

static inline double rdc_uniform(uint64_t bits)
{
    return (rdc_exactly(bits) + 0.5) * 0x1p-32;
}

/* The largest whole number that is at most x, for |x| < 2^51. */
static inline double rdc_floor(double x)
{
    const double nearest = (x + 0x1.8p52) - 0x1.8p52;
    return nearest - rdc_exactly(nearest > x);
}

/* ln(x / 2^shift) for a normal x. */
static inline double rdc_logarithm(double x, double shift)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    /* The exponent of m 2^e with m from the root of 1/2, whose bits are subtracted. */
    const uint64_t above = bits - UINT64_C(0x3fe6a09e667f3bcd) + (UINT64_C(1023) << 52);
    const uint64_t biased = above >> 52;
    const double m = rdc_double_of(bits - (biased << 52) + (UINT64_C(1023) << 52));
    const double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 1.0 / 21;
    p = p * z + 1.0 / 19;
    p = p * z + 1.0 / 17;
    p = p * z + 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    p = p * z + 1.0;
    return (rdc_exactly(biased) - (1023.0 + shift)) * 0.6931471805599453 + 2.0 * s * p;
}

#endif
