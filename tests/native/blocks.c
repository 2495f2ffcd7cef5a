/*
 * blocks.c - the block search against looking at every offset one by one, on streams from a seed.
 *
 *     blocks SEED COUNT    COUNT rounds; whatever differs is printed and ends it with 1
 *
 * All that is handed over lies in blocks of exactly its size, so that a sanitizer sees a byte read past an end. The
 * values themselves are compared with their definition from Python.
 */
#include <stdio.h>
#include <stdlib.h>

#include "block_match.h"
#include "streams.h"

static uint8_t *exactly(size_t n)
{
    uint8_t *memory = malloc(n ? n : 1);
    if (!memory) {
        fputs("blocks: no memory\n", stderr);
        exit(2);
    }
    return memory;
}

static int same(const uint8_t *left, const uint8_t *right, size_t n)
{
    return !memcmp(left, right, n);
}

/* The definition, from the fingerprints at all offsets. `next`: as far behind the block found last as it is in the
 * file, or RDC_NOWHERE. */
static uint64_t expected(const uint8_t *at_offsets, size_t offsets, const uint8_t *wanted, unsigned width,
                         uint64_t next)
{
    if (next < offsets && same(at_offsets + next * width, wanted, width))
        return next;
    for (size_t offset = 0; offset < offsets; offset++)
        if (same(at_offsets + offset * width, wanted, width))
            return offset;
    return RDC_NOWHERE;
}

static int round_agrees(generator *g)
{
    const size_t size = 1 + below(g, below(g, 3) ? 64 : 1500), length = below(g, 6000);
    const size_t count = below(g, below(g, 8) ? 40 : 400), offsets = length < size ? 0 : length - size + 1;
    const unsigned width = 1 + (unsigned)below(g, 8);
    uint8_t *key = exactly(16), *base = exactly(length), *source = exactly(count * size);
    uint8_t *wanted = exactly(count * width), *at_offsets = exactly(offsets * width);
    uint64_t *found = (uint64_t *)(void *)exactly(8 * count), next = RDC_NOWHERE;
    int agrees = 1;

    for (int i = 0; i < 16; i++)
        key[i] = (uint8_t)draw(g);
    make_stream(g, (unsigned)below(g, STREAM_KINDS), base, length);
    make_stream(g, (unsigned)below(g, STREAM_KINDS), source, count * size);
    /* Stretches of the base, so that something is found, at any alignment. */
    for (size_t at = 0; offsets && at < count * size;) {
        const size_t from = below(g, length), most = length - from < count * size - at ? length - from : count * size - at;
        memcpy(source + at, base + from, most);
        at += most + below(g, 3 * size);
    }
    rdc_block_fingerprints(key, source, count * size, size, width, wanted);
    for (size_t offset = 0; offset < offsets; offset++)
        rdc_block_fingerprints(key, base + offset, size, size, width, at_offsets + offset * width);
    if (rdc_match_blocks(key, base, length, size, width, wanted, count, found))
        exit(2);
    for (size_t i = 0; i < count && agrees; i++) {
        const uint64_t place = expected(at_offsets, offsets, wanted + i * width, width, next);
        agrees = found[i] == place;
        if (place != RDC_NOWHERE)
            next = place;
        if (next != RDC_NOWHERE)
            next += size;
    }
    free(key), free(base), free(source), free(wanted), free(at_offsets), free(found);
    return agrees;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: blocks SEED COUNT\n", stderr);
        return 2;
    }
    const uint64_t seed = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    for (uint64_t i = 0; i < count; i++) {
        generator g = {(seed + i) << 32};
        if (!round_agrees(&g)) {
            fprintf(stderr, "the search differs in round %llu\n", (unsigned long long)(seed + i));
            return 1;
        }
    }
    printf("%llu rounds from seed %llu agree\n", (unsigned long long)count, (unsigned long long)seed);
    return 0;
}
