/*
 * traits.c - twelve min-wise samples of a stream's features, six bits each.
 *
 * PRF_t(x) = x * m[t / 4] XOR (t % 4) << 62. Four traits share a product y; trait t wants the y nearest, by XOR,
 * to the start of quarter t % 4. Once all four have a sample from their own quarter (the two highest bits of
 * PRF_t are 0), a y can only improve the trait whose quarter it lies in: three products and three comparisons a
 * feature instead of twelve of each. Samples only ever get smaller, so once in their quarters they stay there.
 */
#include "cut/traits.h"

#define QUARTER_SHIFT 62

void rdc_samples_clear(rdc_samples *s)
{
    for (int t = 0; t < RDC_TRAIT_COUNT; t++)
        s->smallest[t] = UINT64_MAX;
    s->any = s->in_quarters = 0;
    s->reach = UINT64_MAX;
    /* Odd. With randomized memory layout, the author of a stream cannot know it. */
    s->salt = (uint64_t)(uintptr_t)s * RDC_GOLDEN | 1;
    for (uint64_t slot = 0; slot < RDC_SEEN; slot++)
        s->seen[slot] = 0;
    s->seen[0] = UINT64_C(1) << 63; /* the feature 0 has slot 0, this one slot 128: none is where it belongs */
}

/* Returns whether this feature was examined recently. A stream with few features repeats them, and most of
 * those are below `reach`, or samples never settle. With predictable slots an attacker could alternate two
 * features of one slot, and each would be examined every time. */
static inline int seen(rdc_samples *s, uint64_t feature)
{
    uint64_t *slot = &s->seen[feature * s->salt >> 56];
    if (*slot == feature)
        return 1;
    *slot = feature;
    return 0;
}

/* Updates the derived fields after a change of the samples. */
static void look_again(rdc_samples *s)
{
    uint64_t largest = 0;
    for (int t = 0; t < RDC_TRAIT_COUNT; t++)
        if (s->smallest[t] > largest)
            largest = s->smallest[t];
    s->in_quarters = !(largest >> QUARTER_SHIFT);
    s->reach = s->in_quarters ? largest << 2 | 3 : UINT64_MAX;
}

static void add_unsettled(rdc_samples *s, uint64_t feature)
{
    int improved = 0;
    for (int g = 0; g < RDC_TRAIT_COUNT / 4; g++) {
        const uint64_t y = feature * rdc_trait_multiplier[g];
        for (uint64_t quarter = 0; quarter < 4; quarter++) {
            const uint64_t image = y ^ quarter << QUARTER_SHIFT;
            uint64_t *smallest = &s->smallest[4 * g + (int)quarter];
            improved |= image < *smallest;
            *smallest = image < *smallest ? image : *smallest;
        }
    }
    if (improved)
        look_again(s);
}

/* Adds a feature to samples in their quarters: each product only concerns the trait of its quarter. */
static void improve(rdc_samples *s, uint64_t feature)
{
    int improved = 0;

    for (int g = 0; g < RDC_TRAIT_COUNT / 4; g++) {
        uint64_t y = feature * rdc_trait_multiplier[g];
        uint64_t *smallest = &s->smallest[4 * g + (y >> QUARTER_SHIFT)];
        uint64_t image = y & ((UINT64_C(1) << QUARTER_SHIFT) - 1);
        improved |= image < *smallest;
        *smallest = image < *smallest ? image : *smallest;
    }
    if (improved)
        look_again(s);
}

static inline void add_near(rdc_samples *s, uint64_t feature)
{
    if (seen(s, feature))
        return;
    if (s->in_quarters)
        improve(s, feature);
    else
        add_unsettled(s, feature);
}

void rdc_samples_add_near(rdc_samples *s, const uint64_t *low, const uint16_t *at, size_t count)
{
    const uint64_t salt = s->salt;

    s->any |= count > 0;
    for (size_t k = 0; k < count; k++) {
        const uint64_t feature = low[at[k] - 1];
        if (s->seen[feature * salt >> 56] != feature)
            add_near(s, feature);
    }
}

void rdc_samples_add(rdc_samples *s, const uint64_t *feature, size_t count)
{
    const uint64_t m0 = 4 * rdc_trait_multiplier[0], m1 = 4 * rdc_trait_multiplier[1],
                   m2 = 4 * rdc_trait_multiplier[2];

    s->any |= count > 0;
    /* Most features improve nothing; branches that are hardly ever taken are the cheapest test. An image
     * without its two highest bits is a product times 4. */
    for (size_t k = 0; k < count; k++) {
        const uint64_t x = feature[k], reach = s->reach;
        if (__builtin_expect(x * m0 < reach, 0) || __builtin_expect(x * m1 < reach, 0) ||
            __builtin_expect(x * m2 < reach, 0))
            add_near(s, x);
    }
}

void rdc_samples_merge(rdc_samples *s, const rdc_samples *other)
{
    for (int t = 0; t < RDC_TRAIT_COUNT; t++)
        if (other->smallest[t] < s->smallest[t])
            s->smallest[t] = other->smallest[t];
    s->any |= other->any;
    look_again(s);
}

/* MurmurHash3's 64-bit finaliser (Appleby). */
static uint64_t trait_mix(uint64_t x)
{
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

int rdc_samples_traits(const rdc_samples *s, uint8_t *out)
{
    if (!s->any)
        return 0;
    for (int i = 0; i < RDC_TRAIT_BYTES; i++)
        out[i] = 0;
    for (int t = 0; t < RDC_TRAIT_COUNT; t++) {
        unsigned six = (unsigned)(trait_mix(s->smallest[t] + (uint64_t)t * RDC_GOLDEN) >> 58);
        unsigned bit = 6 * (unsigned)t;
        out[bit / 8] |= (uint8_t)(six << bit % 8);
        if (bit % 8 > 2)
            out[bit / 8 + 1] |= (uint8_t)(six >> (8 - bit % 8));
    }
    return RDC_TRAIT_BYTES;
}
