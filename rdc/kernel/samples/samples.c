/*
 * samples.c - min-wise samples of one set at a time.
 *
 * It computes what tests/reference/samples.py defines: products modulo 2^64 and 2^32, and minima, in which order does not
 * count. So any split of a set's features and any variant give the same samples.
 */
#include "samples/samples.h"

#include <stdlib.h>
#include <string.h>

#include "mix.h"

int rdc_family_start(rdc_family *family, const rdc_sampling *variant, uint64_t seed, size_t count)
{
    const size_t lanes = (count + RDC_SAMPLE_LANES - 1) / RDC_SAMPLE_LANES * RDC_SAMPLE_LANES;
    *family = (rdc_family){.variant = variant, .count = count, .lanes = lanes};
    family->key = rdc_mix(seed);
    family->factor = rdc_mix(seed ^ family->key) | 1;
    family->factors = calloc(4 * lanes + 2 * RDC_SAMPLE_LANES + RDC_RANKS_AT_ONCE, sizeof *family->factors);
    family->slots = malloc((RDC_SLOTS_AT_ONCE + 8) * sizeof *family->slots);
    if (!family->factors || !family->slots)
        return -1;
    family->chosen = family->factors + lanes;
    family->least = family->chosen + lanes + RDC_SAMPLE_LANES;
    family->other = family->least + lanes + RDC_SAMPLE_LANES;
    family->high = family->other + lanes;
    for (size_t j = 0; j < count; j++)
        family->factors[j] = (uint32_t)(rdc_mix(family->factor + j) >> 32) | 1;
    return 0;
}

void rdc_family_end(rdc_family *family)
{
    free(family->factors);
    free(family->slots);
}

/* Lowers family->least, of the functions with these factors, over all features. */
static void lower(rdc_family *family, const uint64_t *features, size_t size, const uint32_t *factors, size_t lanes)
{
    memset(family->least, 0xff, lanes * sizeof *family->least);
    for (size_t at = 0; at < size; at += RDC_RANKS_AT_ONCE) {
        const size_t some = size - at < RDC_RANKS_AT_ONCE ? size - at : RDC_RANKS_AT_ONCE;
        family->variant->high_ranks(features + at, some, family->key, family->factor, family->high);
        family->variant->minima(family->high, some, factors, lanes, family->least);
    }
}

void rdc_minimum_samples(rdc_family *family, const uint64_t *features, size_t size, uint32_t *samples)
{
    lower(family, features, size, family->factors, family->lanes);
    memcpy(samples, family->least, family->count * sizeof *samples);
}

/* Lowers bins to the smaller ones of both. Returns the largest of them. */
static uint32_t join(uint32_t *bins, const uint32_t *other, size_t count)
{
    uint32_t found = 0;
    for (size_t j = 0; j < count; j++) {
        bins[j] = other[j] < bins[j] ? other[j] : bins[j];
        found = bins[j] > found ? bins[j] : found;
    }
    return found;
}

/* Without branches: which feature is the smallest of its bin cannot be predicted. */
static inline void lower_bin(uint32_t *bins, uint64_t slot)
{
    uint32_t *bin = bins + (slot >> 32);
    const uint32_t value = (uint32_t)slot;
    *bin = value < *bin ? value : *bin;
}

/* Puts the values of all features into 2^wide bins. Once every bin has a value, most features are above all of
 * them and need no more than a comparison. Features take turns at two sets of bins, so that two features of one
 * bin rarely wait for each other. */
static void part_by_shift(rdc_family *family, const uint64_t *features, size_t size, unsigned wide, uint32_t *bins)
{
    uint32_t limit = RDC_NO_SAMPLE, *const other = family->other;
    size_t next = RDC_SLOTS_AT_ONCE;
    memset(other, 0xff, family->count * sizeof *other);
    for (size_t at = 0; at < size; at += RDC_SLOTS_AT_ONCE) {
        const size_t some = size - at < RDC_SLOTS_AT_ONCE ? size - at : RDC_SLOTS_AT_ONCE;
        const size_t found = family->variant->slots(features + at, some, family->key, family->factor, wide, limit,
                                                     family->slots);
        size_t i = 0;
        for (; i + 4 <= found; i += 4) {
            lower_bin(bins, family->slots[i]);
            lower_bin(other, family->slots[i + 1]);
            lower_bin(bins, family->slots[i + 2]);
            lower_bin(other, family->slots[i + 3]);
        }
        for (; i < found; i++)
            lower_bin(bins, family->slots[i]);
        /* The limit falls as 1 / at, so it is worth a look after each third more. */
        if (at + some >= next && at + some < size) {
            limit = join(bins, other, family->count);
            next += next / 3;
        }
    }
    join(bins, other, family->count);
}

static void part(rdc_family *family, const uint64_t *features, size_t size, uint32_t *bins)
{
    const uint64_t count = family->count;
    memset(bins, 0xff, count * sizeof *bins);
    if (count > 1 && !(count & (count - 1))) {
        part_by_shift(family, features, size, (unsigned)__builtin_ctzll(count), bins);
        return;
    }
    for (size_t i = 0; i < size; i++) {
        const unsigned __int128 slot =
            (unsigned __int128)rdc_sample_rank(features[i], family->key, family->factor) * count;
        uint32_t *bin = bins + (size_t)(slot >> 64);
        const uint32_t value = (uint32_t)((uint64_t)slot >> 33);
        *bin = value < *bin ? value : *bin;
    }
}

void rdc_partition_samples(rdc_family *family, const uint64_t *features, size_t size, int fill, uint32_t *samples)
{
    part(family, features, size, samples);
    if (!fill || !size)
        return;
    if (size <= family->count / 4) {
        /* Almost all bins are empty, and to compute all functions is less work than to choose. */
        lower(family, features, size, family->factors, family->lanes);
        for (size_t j = 0; j < family->count; j++)
            samples[j] = samples[j] == RDC_NO_SAMPLE ? rdc_own_sample(family->least[j]) : samples[j];
        return;
    }
    /* The functions of the empty bins stand side by side, so that vectors are full. */
    const size_t empty = family->variant->collect(samples, family->factors, family->count, family->chosen);
    if (!empty)
        return;
    const size_t lanes = (empty + RDC_SAMPLE_LANES - 1) / RDC_SAMPLE_LANES * RDC_SAMPLE_LANES;
    lower(family, features, size, family->chosen, lanes);
    family->variant->spread(family->least, family->count, samples);
}
