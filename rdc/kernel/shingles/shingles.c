/* shingles.c - runs of units as features.
 *
 * With S(n) the polynomial of the first n units, a shingle is S(n + k) - BASE^k * S(n), as all its terms before the
 * shingle cancel out. */
#include "shingles/shingles.h"

#include <string.h>

#include "shingles/unit_hash.h"

static int take_units(void *to, const uint64_t *hashes, size_t count)
{
    rdc_shingler *s = to;
    uint64_t none[RDC_SHINGLE_LIMIT];
    const size_t before = s->count < s->k - 1 ? s->k - 1 - (size_t)s->count : 0;
    const size_t early = before < count ? before : count; /* units that end no shingle */
    if (early)
        memcpy(s->first + s->count, hashes, early * sizeof *hashes);
    s->count += count;
    if (s->list->room - s->list->count < count - early && s->list->grow(s->list, count - early))
        return -1;
    s->units.variant->combine(s->sums, s->k, s->power, hashes, early, none);
    s->units.variant->combine(s->sums + early, s->k, s->power, hashes + early, count - early,
                              s->list->features + s->list->count);
    memmove(s->sums, s->sums + count, s->k * sizeof *s->sums);
    s->list->count += count - early;
    return 0;
}

void rdc_shingler_start(rdc_shingler *shingler, const rdc_shingling *variant, size_t k, int by_characters, int wrap,
                        rdc_feature_list *list)
{
    rdc_units_start(&shingler->units, variant, by_characters ? RDC_BY_CHARACTERS : RDC_BY_WORDS, take_units, shingler);
    shingler->list = list;
    shingler->k = k;
    shingler->wrap = wrap;
    shingler->power = 1;
    for (size_t i = 0; i < k; i++)
        shingler->power *= RDC_SHINGLE_BASE;
}

int rdc_shingle(rdc_shingler *shingler, const uint8_t *text, size_t size)
{
    shingler->count = 0;
    memset(shingler->sums, 0, shingler->k * sizeof *shingler->sums);
    if (rdc_units_of(&shingler->units, text, size))
        return -1;
    if (shingler->count >= shingler->k)
        return shingler->wrap ? take_units(shingler, shingler->first, shingler->k - 1) : 0;
    if (!shingler->count)
        return 0;
    if (shingler->list->count == shingler->list->room && shingler->list->grow(shingler->list, 1))
        return -1;
    shingler->list->features[shingler->list->count++] = rdc_unit_step(0, shingler->sums[shingler->k - 1], 0);
    return 0;
}
