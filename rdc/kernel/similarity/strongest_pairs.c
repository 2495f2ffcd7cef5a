/* strongest_pairs.c - selects the pairs that agree in most traits.
 *
 * Boilerplate makes half of all pairs similar: a hundred million among 15,000 files; a million of them are
 * examined. Twice as many pairs as wanted are kept unsorted. When they are full they are sorted and the
 * second half is dropped. From then on, pairs behind the last kept one are only counted. In random order,
 * each round takes about as many more pairs as all before it together. An adverse order causes a sort for
 * every `most` pairs. */
#include "similarity/similarity.h"

#include <stdlib.h>

static int ascending(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

int rdc_strongest_start(rdc_strongest *s, size_t most, const rdc_sketches *sketches)
{
    *s = (rdc_strongest){.most = most, .last = UINT64_MAX, .sketches = *sketches};
    if (most > SIZE_MAX / (2 * sizeof *s->pair))
        return -1;
    s->pair = malloc(2 * most * sizeof *s->pair);
    return s->pair ? 0 : -1;
}

static void drop(rdc_strongest *s)
{
    qsort(s->pair, s->count, sizeof *s->pair, ascending);
    if (s->count <= s->most)
        return;
    s->left_out += s->count - s->most;
    s->count = s->most;
    s->last = s->pair[s->most - 1];
}

static int known(const uint8_t *sketch)
{
    unsigned any = 0;
    for (unsigned i = 0; i < RDC_SKETCH_BYTES; i++)
        any |= sketch[i];
    return any != 0;
}

static int differ(const rdc_sketches *sketches, uint64_t a, uint64_t b)
{
    const uint8_t *one = sketches->bytes + RDC_SKETCH_BYTES * a, *other = sketches->bytes + RDC_SKETCH_BYTES * b;
    unsigned alike = 0;
    for (unsigned i = 0; i < RDC_SKETCH_BYTES; i++)
        alike += one[i] == other[i];
    return alike < sketches->least && known(one) && known(other);
}

int rdc_strongest_add(rdc_strongest *s, const rdc_pair *pair, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (pair[i].a >= RDC_PAIR_KEYS || pair[i].b >= RDC_PAIR_KEYS)
            return -1;
        if (s->sketches.count) {
            if (pair[i].b >= s->sketches.count)
                return -1;
            if (differ(&s->sketches, pair[i].a, pair[i].b))
                continue;
        }
        const uint64_t packed = (uint64_t)(RDC_TRAIT_COUNT - pair[i].matches) << 60 | pair[i].a << 30 | pair[i].b;
        if (packed > s->last) {
            s->left_out++;
            continue;
        }
        if (s->count == 2 * s->most)
            drop(s);
        s->pair[s->count++] = packed;
    }
    return 0;
}

void rdc_strongest_finish(rdc_strongest *s)
{
    drop(s);
}

void rdc_strongest_end(rdc_strongest *s)
{
    free(s->pair);
    *s = (rdc_strongest){0};
}
