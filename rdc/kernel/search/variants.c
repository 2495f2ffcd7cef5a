/* variants.c - the variants of the block search, the one in use, and the comparison with the plain
 * variant. */
#include <string.h>

#include "mix.h"
#include "search/variant.h"

const rdc_block_variant *const rdc_block_variants[] = {
#if defined(__x86_64__)
    &rdc_blocks_gathering, &rdc_blocks_avx512, &rdc_blocks_avx2,
#elif defined(__aarch64__)
    &rdc_blocks_neon,
#endif
    &rdc_blocks_plain, NULL,
};

const rdc_block_variant *rdc_blocks = &rdc_blocks_plain;

/* Bytes and block size of the comparison: enough for every variant to use its vectors, in several batches
 * with a rest. */
#define CHECKED 1701
#define CHECKED_SIZE 21
#define OFFSETS (CHECKED - CHECKED_SIZE + 1)

static void keep_hits(void *search, const block_hit *hits, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((uint64_t *)search)[hits[i].offset] = hits[i].value;
}

/* Searches the values of some windows, through the bits alone or through the sieve as well. */
static int finds(const rdc_block_variant *variant, unsigned planes, const block_hash *hash, const uint8_t *data,
                 const uint64_t value[OFFSETS])
{
    enum { EVERY = 97 };
    uint8_t bits[256 + RDC_BEYOND] = {0};
    uint32_t again[64] = {0};
    uint64_t found[OFFSETS] = {0};
    block_filter filter = {8, bits, 255, again, UINT32_MAX, 32 - 6, planes, {{0}}};

    for (size_t i = 0; i < OFFSETS; i += EVERY)
        filter_add(&filter, value[i]);
    variant->scan(hash, data, CHECKED_SIZE, OFFSETS, &filter, keep_hits, found);
    for (size_t i = 0; i < OFFSETS; i++)
        if (found[i] != value[i] && (found[i] || i % EVERY == 0))
            return 0;
    return 1;
}

static int agrees(const rdc_block_variant *variant)
{
    static const uint8_t key[16] = {'a', ' ', 'k', 'e', 'y', ' ', 't', 'o', ' ', 'c', 'o', 'm', 'p', 'a', 'r', 'e'};
    uint8_t data[CHECKED];
    uint64_t value[OFFSETS];
    uint32_t low[OFFSETS];
    block_hash hash;

    for (size_t i = 0; i < CHECKED; i++)
        data[i] = (uint8_t)(rdc_mix(i / 8) >> 8 * (i % 8));
    block_hash_start(&hash, key, CHECKED_SIZE);
    variant->lows(&hash, data, CHECKED_SIZE, OFFSETS, low);
    for (size_t i = 0; i < OFFSETS; i++) {
        value[i] = rdc_blocks_plain.value(hash.key, data + i, CHECKED_SIZE);
        if (low[i] != (uint32_t)value[i] || (i % 64 == 0 && variant->find(low, OFFSETS, UINT32_MAX, low[i]) != i))
            return 0;
    }
    for (size_t length = 0; length < 70; length++)
        if (variant->value(hash.key, data, length) != rdc_blocks_plain.value(hash.key, data, length))
            return 0;
    return finds(variant, 0, &hash, data, value) && finds(variant, 4, &hash, data, value);
}

int rdc_choose_blocks(const char *kernel)
{
    static const char *const order[] = {"avx512", "avx2", "neon", "c"};
    const size_t count = sizeof order / sizeof *order;
    size_t first = 0;
    while (first < count && strcmp(order[first], kernel))
        first++;
    for (const rdc_block_variant *const *variant = rdc_block_variants; *variant; variant++)
        for (size_t row = first; row < count; row++)
            if (!strcmp(order[row], (*variant)->name) && (*variant)->usable()) {
                rdc_blocks = *variant;
                return agrees(*variant);
            }
    return 0;
}
