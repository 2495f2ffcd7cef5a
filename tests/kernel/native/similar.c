/*
 * similar.c - the index of traits against a plain list: random changes, queries and pairs from a seed.
 *
 *     similar SEED COUNT    COUNT rounds; whatever differs is printed and ends it with 1
 */
#include <stdio.h>
#include <stdlib.h>

#include "streams.h"
#include "similarity/similarity.h"

#define KEYS 3000

static rdc_row held[KEYS]; /* by key; size 0 where there is none */

static unsigned matches(const uint8_t *a, const uint8_t *b)
{
    unsigned equal = 0;
    for (unsigned t = 0; t < RDC_TRAIT_COUNT; t++) {
        unsigned same = 1;
        for (unsigned bit = 6 * t; bit < 6 * t + 6; bit++)
            same &= rdc_trait_bit(a, bit) == rdc_trait_bit(b, bit);
        equal += same;
    }
    return equal;
}

static rdc_row random_row(generator *g, unsigned kinds)
{
    rdc_row row = {below(g, KEYS), (uint16_t)(1 + below(g, 9)), {0}};
    for (unsigned t = 0; t < RDC_TRAIT_COUNT; t++) {
        unsigned sample = (unsigned)below(g, kinds);
        for (unsigned i = 0; i < 6; i++)
            row.traits[(6 * t + i) / 8] |= (uint8_t)((sample >> i & 1) << (6 * t + i) % 8);
    }
    return row;
}

static int fail(const char *what, uint64_t seed)
{
    fprintf(stderr, "similar: %s differs, seed %llu\n", what, (unsigned long long)seed);
    return 1;
}

/* Nobody who is left out may be better than somebody who is in, and all must be in order. */
static int check_query(const rdc_index *index, generator *g, unsigned kinds)
{
    rdc_similar found[40];
    rdc_query query;
    const rdc_row row = random_row(g, kinds);
    const size_t limit = 1 + below(g, 40);
    const unsigned least = 1 + (unsigned)below(g, 12);
    size_t good = 0, before = 0;

    rdc_query_start(&query, &row, found, limit, least);
    rdc_index_query(index, &query, 1);
    for (size_t k = 0; k < KEYS; k++)
        good += held[k].size && matches(held[k].traits, row.traits) >= least;
    if (query.count != (good < limit ? good : limit))
        return 1;
    for (size_t i = 0; i < query.count; i++) {
        const rdc_row *file = &held[found[i].key];
        if (RDC_TRAIT_COUNT - (found[i].rank >> 16) != matches(file->traits, row.traits))
            return 1;
        if (i && (found[i].rank < found[i - 1].rank ||
                  (found[i].rank == found[i - 1].rank && found[i].distance < found[i - 1].distance)))
            return 1;
    }
    if (!query.count)
        return 0;
    for (size_t k = 0; k < KEYS; k++) {
        unsigned same = held[k].size ? matches(held[k].traits, row.traits) : 0;
        unsigned apart = (unsigned)abs((int)held[k].size - (int)row.size);
        before += same >= least && ((RDC_TRAIT_COUNT - same) << 16 | apart) < found[query.count - 1].rank;
    }
    return before >= query.count;
}

static int check_pairs(const rdc_index *index, unsigned least)
{
    rdc_pairs pairs;
    size_t found = 0, wanted = 0;
    int more, wrong = rdc_pairs_start(&pairs, index, least, KEYS, 0);
    while (!wrong && ((more = rdc_pairs_step(&pairs)) > 0 || pairs.found)) {
        for (size_t i = 0; i < pairs.found; i++)
            wrong |= matches(held[pairs.pair[i].a].traits, held[pairs.pair[i].b].traits) != pairs.pair[i].matches;
        found += pairs.found;
        if (more <= 0)
            break;
    }
    for (size_t a = 0; a < KEYS; a++)
        for (size_t b = a + 1; b < KEYS; b++)
            wanted += held[a].size && held[b].size && matches(held[a].traits, held[b].traits) >= least;
    wrong |= pairs.skipped || (pairs.flooded ? found > wanted : found != wanted);
    rdc_pairs_end(&pairs);
    return wrong;
}

int main(int argc, char **argv)
{
    const uint64_t seed = argc > 2 ? strtoull(argv[1], NULL, 10) : 0;
    const unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    for (unsigned long round = 0; round < rounds; round++) {
        generator g = {(seed + round) << 32};
        rdc_index index = {.seed = seed};
        const unsigned kinds = 1 + (unsigned)below(&g, 6);
        const size_t steps = below(&g, 6000);
        memset(held, 0, sizeof held);
        for (size_t i = 0; i < steps; i++) {
            rdc_row row = random_row(&g, kinds);
            if (below(&g, 3)) {
                if (rdc_index_put(&index, &row))
                    return fail("put", seed + round);
                held[row.key] = row;
            } else {
                if (rdc_index_remove(&index, row.key) != (held[row.key].size != 0))
                    return fail("remove", seed + round);
                held[row.key].size = 0;
            }
        }
        for (uint64_t k = 0; k < KEYS; k++) {
            rdc_row row;
            if (rdc_index_get(&index, k, &row) != (held[k].size != 0))
                return fail("get", seed + round);
            if (held[k].size && (row.size != held[k].size || memcmp(row.traits, held[k].traits, RDC_TRAIT_BYTES)))
                return fail("row", seed + round);
        }
        for (int i = 0; i < 5; i++)
            if (check_query(&index, &g, kinds))
                return fail("query", seed + round);
        if (round % 8 == 0 && check_pairs(&index, 7 + (unsigned)below(&g, 6)))
            return fail("pairs", seed + round);
        rdc_index_end(&index);
    }
    printf("%lu rounds from seed %llu agree\n", rounds, (unsigned long long)seed);
    return 0;
}
