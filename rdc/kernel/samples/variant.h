/* variant.h - what a variant of sampling must provide. tests/reference/samples.py defines all of it. */
#ifndef RDC_SAMPLES_VARIANT_H
#define RDC_SAMPLES_VARIANT_H

#include <stddef.h>
#include <stdint.h>

/* Lanes that every variant may read and write at a time; columns of factors are padded to it. */
#define RDC_SAMPLE_LANES 16

/* Sets that stand side by side in packed samples. */
#define RDC_SET_BLOCK 8

typedef struct {
    const char *name;
    int (*usable)(void);

    /* Writes the upper halves of the ranks of `count` features. */
    void (*high_ranks)(const uint64_t *features, size_t count, uint64_t key, uint64_t factor, uint32_t *high);

    /* Writes the slots of those of `count` features whose value is below `limit`: (bin << 32) + value, for
     * 2^wide bins, wide from 1 to 16. Returns their number. Up to 8 slots behind them are overwritten. */
    size_t (*slots)(const uint64_t *features, size_t count, uint64_t key, uint64_t factor, unsigned wide,
                    uint32_t limit, uint64_t *slots);

    /* Lowers samples[j] to the smallest of high[i] * factors[j] modulo 2^32, for each j below `lanes`, a
     * multiple of RDC_SAMPLE_LANES. */
    void (*minima)(const uint32_t *high, size_t count, const uint32_t *factors, size_t lanes, uint32_t *samples);

    /* Writes the factors of the empty bins among `count` side by side. Returns their number. Up to
     * RDC_SAMPLE_LANES numbers behind them are overwritten. */
    size_t (*collect)(const uint32_t *samples, const uint32_t *factors, size_t count, uint32_t *chosen);

    /* Gives the empty bins among `count` their samples from `least`, in order. Up to RDC_SAMPLE_LANES numbers
     * behind them are read. */
    void (*spread)(const uint32_t *least, size_t count, uint32_t *samples);

    /* Writes for each set of `blocks` blocks in how many samples it differs from the query, a u64 per word and
     * plane. */
    void (*differences)(const uint64_t *query, const uint64_t *packed, size_t blocks, size_t words, unsigned bits,
                        uint32_t *out);
} rdc_sampling;

/* The first one where the architecture is x86, the second on ARM64. */
extern const rdc_sampling rdc_sampling_avx2, rdc_sampling_neon, rdc_sampling_plain;

static inline uint64_t rdc_sample_rank(uint64_t feature, uint64_t key, uint64_t factor)
{
    return (feature ^ feature >> 32 ^ key) * factor;
}

static inline void rdc_high_ranks(const uint64_t *features, size_t count, uint64_t key, uint64_t factor, uint32_t *high)
{
    for (size_t i = 0; i < count; i++)
        high[i] = (uint32_t)(rdc_sample_rank(features[i], key, factor) >> 32);
}

#define RDC_NO_SAMPLE UINT32_MAX

static inline size_t rdc_slots(const uint64_t *features, size_t count, uint64_t key, uint64_t factor, unsigned wide,
                               uint32_t limit, uint64_t *slots)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t rank = rdc_sample_rank(features[i], key, factor);
        const uint64_t value = rank << wide >> 33;
        slots[found] = rank >> (64 - wide) << 32 | value;
        found += value < limit;
    }
    return found;
}

/* The sample of an empty bin whose own function has this minimum. */
static inline uint32_t rdc_own_sample(uint32_t least)
{
    return UINT32_C(1) << 31 | least >> 1;
}

/* Without branches: which bins are empty cannot be predicted. */
static inline size_t rdc_collect(const uint32_t *samples, const uint32_t *factors, size_t count, uint32_t *chosen)
{
    size_t empty = 0;
    for (size_t j = 0; j < count; j++) {
        chosen[empty] = factors[j];
        empty += samples[j] == RDC_NO_SAMPLE;
    }
    return empty;
}

static inline void rdc_spread(const uint32_t *least, size_t count, uint32_t *samples)
{
    for (size_t j = 0, at = 0; j < count; j++) {
        const int empty = samples[j] == RDC_NO_SAMPLE;
        samples[j] = empty ? rdc_own_sample(least[at]) : samples[j];
        at += (size_t)empty;
    }
}

#endif
