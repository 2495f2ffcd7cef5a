/* samples.h - min-wise samples of sets of 64-bit features; tests/reference/samples.py defines them. */
#ifndef RDC_SAMPLES_H
#define RDC_SAMPLES_H

#include "samples/variant.h"

#define RDC_SAMPLE_COUNT_LIMIT 65536

/* The functions that a seed stands for, and room for what one set needs. */
typedef struct {
    const rdc_sampling *variant;
    uint64_t key, factor;
    size_t count;       /* samples a set */
    size_t lanes;       /* the same, padded */
    uint32_t *factors;  /* one a lane */
    uint32_t *chosen;   /* factors of the empty bins */
    uint32_t *least;    /* one a lane */
    uint32_t *other;    /* one a lane: the bins of every other feature */
    uint32_t *high;     /* upper halves of ranks, RDC_RANKS_AT_ONCE */
    uint64_t *slots;   /* RDC_SLOTS_AT_ONCE and room behind */
} rdc_family;

/* Features whose ranks are computed at a time: 8 KiB of them stay in the nearest cache. */
#define RDC_RANKS_AT_ONCE 2048

#define RDC_SLOTS_AT_ONCE 512

/* Returns -1 without memory. rdc_family_end() after either result. */
int rdc_family_start(rdc_family *family, const rdc_sampling *variant, uint64_t seed, size_t count);
void rdc_family_end(rdc_family *family);

/* Each writes family->count samples of one set. */
void rdc_minimum_samples(rdc_family *family, const uint64_t *features, size_t size, uint32_t *samples);
void rdc_partition_samples(rdc_family *family, const uint64_t *features, size_t size, int fill, uint32_t *samples);

#endif
