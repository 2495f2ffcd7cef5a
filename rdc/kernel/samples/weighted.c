/* weighted.c - samples of one weighted set at a time, as weighted_reference.py defines them. */
#include "samples/weighted.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "mix.h"
#include "samples/variant.h"

int rdc_weighing_start(rdc_weighing *weighing, uint64_t seed, size_t count)
{
    const uint64_t key = rdc_mix(seed), factor = rdc_mix(seed ^ key) | 1;
    uint64_t *room = calloc(4 * count, sizeof *room);
    *weighing = (rdc_weighing){.count = count, .keys = room};
    if (!room)
        return -1;
    weighing->winners.names = room + count;
    weighing->winners.least = (double *)(void *)(room + 2 * count);
    weighing->winners.steps = (double *)(void *)(room + 3 * count);
    for (size_t j = 0; j < count; j++)
        weighing->keys[j] = rdc_mix(factor + j);
    return 0;
}

void rdc_weighing_end(rdc_weighing *weighing)
{
    free(weighing->keys);
}

static double weight_logarithm(double weight)
{
    return weight < DBL_MIN ? rdc_logarithm(weight * 0x1p54, 54.0) : rdc_logarithm(weight, 0.0);
}

void rdc_weighted_samples(rdc_weighing *weighing, rdc_weigh *weigh, const uint64_t *features, const double *weights,
                          size_t size, uint32_t *samples)
{
    const size_t count = weighing->count;
    rdc_winners *const winners = &weighing->winners;
    for (size_t j = 0; j < count; j++)
        winners->least[j] = HUGE_VAL;
    for (size_t i = 0; i < size; i++)
        if (weights[i] > 0.0)
            weigh(features[i], weight_logarithm(weights[i]), weighing->keys, count, winners);
    for (size_t j = 0; j < count; j++) {
        const uint64_t step = (uint64_t)(int64_t)winners->steps[j];
        const uint32_t sample = (uint32_t)(rdc_mix(rdc_mix(winners->names[j] + weighing->keys[j]) + step) >> 32);
        samples[j] = winners->least[j] < HUGE_VAL ? sample : RDC_NO_SAMPLE;
    }
}
