/*
 * samples.c - samples of random sets by all variants, in blocks of exactly their size: a sanitizer sees a byte read or written
 * past an end.
 *
 *     samples SEED COUNT    COUNT rounds; whatever differs is printed and ends it with 1
 *
 * What a sample is, is compared with its definition in Python; here all variants must find the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "samples/samples.h"
#include "streams.h"

static const rdc_sampling *const variants[] = {
    &rdc_sampling_plain,
#if defined(__x86_64__)
    &rdc_sampling_avx2,
#elif defined(__aarch64__)
    &rdc_sampling_neon,
#endif
};
#define VARIANTS (sizeof variants / sizeof *variants)

static void *exactly(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory) {
        fputs("samples: no memory\n", stderr);
        exit(2);
    }
    return memory;
}

/* Sampled by `variant`; `how` 0: independent functions, 1: bins, 2: filled bins. */
static uint32_t *sampled(const rdc_sampling *variant, uint64_t seed, size_t count, const uint64_t *set, size_t size, int how)
{
    rdc_family family;
    uint32_t *samples = exactly(count * sizeof *samples);
    if (rdc_family_start(&family, variant, seed, count))
        exit(2);
    if (how)
        rdc_partition_samples(&family, set, size, how == 2, samples);
    else
        rdc_minimum_samples(&family, set, size, samples);
    rdc_family_end(&family);
    return samples;
}

static int samples_agree(generator *g)
{
    const uint64_t seed = draw(g);
    const size_t count = below(g, 2) ? (size_t)1 << below(g, 10) : 1 + below(g, 300);
    const size_t size = below(g, 4) ? below(g, 400) : below(g, 9000);
    const uint64_t kinds = below(g, 3) ? 0 : 1 + below(g, 40);
    uint64_t *set = exactly(size * sizeof *set);
    int agree = 1;
    for (size_t i = 0; i < size; i++)
        set[i] = kinds ? below(g, kinds) : draw(g);
    for (int how = 0; how < 3; how++) {
        uint32_t *wanted = sampled(variants[0], seed, count, set, size, how);
        for (size_t v = 1; v < VARIANTS; v++) {
            if (!variants[v]->usable())
                continue;
            uint32_t *found = sampled(variants[v], seed, count, set, size, how);
            if (memcmp(found, wanted, count * sizeof *found)) {
                printf("%s: %zu samples of %zu features, way %d\n", variants[v]->name, count, size, how);
                agree = 0;
            }
            free(found);
        }
        free(wanted);
    }
    free(set);
    return agree;
}

/* As bbit_pack() of rdc.similarity does. */
static void pack(const uint32_t *samples, size_t sets, size_t count, unsigned bits, uint64_t *packed, size_t size)
{
    const size_t words = (count + 63) / 64;
    memset(packed, 0, size * sizeof *packed);
    for (size_t set = 0; set < sets; set++)
        for (size_t j = 0; j < count; j++)
            for (unsigned plane = 0; plane < bits; plane++) {
                const uint64_t reduced = samples[set * count + j] * UINT32_C(0x9e3779b1) >> (32 - bits);
                const size_t at = (set / RDC_SET_BLOCK * words + j / 64) * bits + plane;
                packed[at * RDC_SET_BLOCK + set % RDC_SET_BLOCK] |= (reduced >> plane & 1) << j % 64;
            }
}

static int comparisons_agree(generator *g)
{
    const size_t count = 1 + below(g, 200), words = (count + 63) / 64, sets = 1 + below(g, 40);
    const unsigned bits = 1 + (unsigned)below(g, 8);
    const size_t blocks = (sets + RDC_SET_BLOCK - 1) / RDC_SET_BLOCK, size = blocks * RDC_SET_BLOCK * words * bits;
    uint32_t *samples = exactly(sets * count * sizeof *samples);
    uint64_t *packed = exactly(size * sizeof *packed), *query = exactly(words * bits * sizeof *query);
    uint32_t *wanted = exactly(blocks * RDC_SET_BLOCK * sizeof *wanted), *found = exactly(blocks * RDC_SET_BLOCK * sizeof *found);
    int agree = 1;
    for (size_t i = 0; i < sets * count; i++)
        samples[i] = (uint32_t)below(g, 3);
    pack(samples, sets, count, bits, packed, size);
    for (size_t i = 0; i < words * bits; i++)
        query[i] = packed[i * RDC_SET_BLOCK];
    variants[0]->differences(query, packed, blocks, words, bits, wanted);
    for (size_t set = 0; set < sets; set++) {
        uint32_t differ = 0;
        for (size_t j = 0; j < count; j++)
            differ += samples[j] * 0x9e3779b1u >> (32 - bits) != samples[set * count + j] * 0x9e3779b1u >> (32 - bits);
        agree = agree && wanted[set] == differ;
    }
    for (size_t v = 1; v < VARIANTS; v++) {
        if (!variants[v]->usable())
            continue;
        variants[v]->differences(query, packed, blocks, words, bits, found);
        if (memcmp(found, wanted, blocks * RDC_SET_BLOCK * sizeof *found)) {
            printf("%s: %zu sets of %zu samples, %u bits\n", variants[v]->name, sets, count, bits);
            agree = 0;
        }
    }
    free(samples);
    free(packed);
    free(query);
    free(wanted);
    free(found);
    return agree;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    generator g = {strtoull(argv[1], NULL, 10)};
    const long rounds = strtol(argv[2], NULL, 10);
    for (long i = 0; i < rounds; i++)
        if (!samples_agree(&g) || !comparisons_agree(&g)) {
            printf("round %ld differs\n", i);
            return 1;
        }
    printf("%ld rounds from seed %s agree\n", rounds, argv[1]);
    return 0;
}
