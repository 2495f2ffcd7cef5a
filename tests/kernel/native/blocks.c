/*
 * blocks.c - the block search against looking at every offset one by one, on streams from a seed, in every variant.
 *
 *     blocks SEED COUNT    COUNT rounds; whatever differs is printed and ends it with 1
 *
 * All that is handed over lies in blocks of exactly its size, so that a sanitizer sees a byte read past an end. The
 * values themselves are compared with their definition from Python.
 */
#include <stdio.h>
#include <stdlib.h>

#include "search/variant.h"
#include "search/match.h"
#include "search/match_near.h"
#include "streams.h"

static void *exactly(size_t n)
{
    void *memory = malloc(n ? n : 1);
    if (!memory) {
        fputs("blocks: no memory\n", stderr);
        exit(2);
    }
    return memory;
}

/* A base, the plain variant's values at all its offsets, and stretches of it as the blocks that are sought. */
typedef struct {
    uint8_t key[16], *base, *source, *wanted;
    size_t length, size, count, offsets;
    unsigned width;
    uint64_t *values, mask;
} world;

static world drawn_world(generator *g)
{
    /* Some bases are long enough for every lane of every variant, about the borders of its tiles too; a few for lanes that
     * keep their bytes turned. */
    const int longer = !below(g, 3), longest = !below(g, 20);
    world w = {.size = 1 + below(g, below(g, 3) || longer || longest ? 64 : 1500),
               .length = longest ? 33000 + below(g, 9000) : longer ? 1000 + below(g, 9000) : below(g, 6000),
               .count = below(g, below(g, 8) ? 80 : 400),
               .width = 1 + (unsigned)below(g, 8)};
    block_hash hash;

    w.mask = fingerprint_mask(w.width);
    w.offsets = w.length < w.size ? 0 : w.length - w.size + 1;
    w.base = exactly(w.length);
    w.source = exactly(w.count * w.size);
    w.wanted = exactly(w.count * w.width);
    w.values = exactly(8 * w.offsets);
    for (int i = 0; i < 16; i++)
        w.key[i] = (uint8_t)draw(g);
    make_stream(g, (unsigned)below(g, STREAM_KINDS), w.base, w.length);
    make_stream(g, (unsigned)below(g, STREAM_KINDS), w.source, w.count * w.size);
    /* Stretches of the base, so that something is found, at any alignment. */
    for (size_t at = 0; w.offsets && at < w.count * w.size;) {
        const size_t from = below(g, w.length), room = w.count * w.size - at;
        const size_t most = w.length - from < room ? w.length - from : room;
        memcpy(w.source + at, w.base + from, most);
        at += most + below(g, 3 * w.size);
    }
    block_hash_start(&hash, w.key, w.size);
    for (size_t offset = 0; offset < w.offsets; offset++)
        w.values[offset] = rdc_blocks_plain.value(hash.key, w.base + offset, w.size);
    for (size_t i = 0; i < w.count; i++) {
        const uint64_t value = rdc_blocks_plain.value(hash.key, w.source + i * w.size, w.size);
        for (unsigned j = 0; j < w.width; j++)
            w.wanted[i * w.width + j] = (uint8_t)(value >> 8 * j);
    }
    return w;
}

static void end_world(world *w)
{
    free(w->base), free(w->source), free(w->wanted), free(w->values);
}

/* The definition. `next`: as far behind the block found last as it is in the file, or RDC_NOWHERE. */
static uint64_t expected(const world *w, uint64_t value, uint64_t next)
{
    if (next < w->offsets && (w->values[next] & w->mask) == value)
        return next;
    for (size_t offset = 0; offset < w->offsets; offset++)
        if ((w->values[offset] & w->mask) == value)
            return offset;
    return RDC_NOWHERE;
}

static int blocks_agree(const world *w)
{
    uint64_t *found = exactly(8 * w->count), next = RDC_NOWHERE;
    uint8_t *made = exactly(w->count * w->width);
    int agrees = 1;
    rdc_block_fingerprints(w->key, w->source, w->count * w->size, w->size, w->width, made);
    agrees = !memcmp(made, w->wanted, w->count * w->width);
    if (rdc_match_blocks(w->key, w->base, w->length, w->size, w->width, w->wanted, w->count, found))
        exit(2);
    for (size_t i = 0; i < w->count && agrees; i++) {
        const uint64_t base_offset = expected(w, fingerprint_at(w->wanted + i * w->width, w->width), next);
        agrees = found[i] == base_offset;
        if (base_offset != RDC_NOWHERE)
            next = base_offset;
        if (next != RDC_NOWHERE)
            next += w->size;
    }
    free(found), free(made);
    return agrees;
}

static int lows_agree(const world *w)
{
    uint32_t *low = exactly(4 * w->offsets);
    block_hash hash;
    int agrees = 1;
    block_hash_start(&hash, w->key, w->size);
    if (w->offsets)
        rdc_blocks->lows(&hash, w->base, w->size, w->offsets, low);
    for (size_t offset = 0; offset < w->offsets; offset++)
        agrees &= low[offset] == (uint32_t)w->values[offset];
    free(low);
    return agrees;
}

static int fits(const world *w, const block_hash *hash, uint64_t origin, uint64_t base_offset, uint64_t length, uint64_t value)
{
    return base_offset >= origin && base_offset - origin <= w->length && length <= w->length - (base_offset - origin) &&
           (rdc_blocks_plain.value(hash->key, w->base + (base_offset - origin), length) & w->mask) == value;
}

/* A offset in the base near `near`, the first that fits. */
static uint64_t first_near(const world *w, const block_hash *hash, uint64_t origin, uint64_t near, uint64_t reach,
                           uint64_t value)
{
    for (uint64_t base_offset = near > reach ? near - reach : 0; base_offset <= near + reach; base_offset++)
        if (fits(w, hash, origin, base_offset, w->size, value))
            return base_offset;
    return RDC_UNPLACED;
}

static uint64_t drawn_offset(generator *g, uint64_t origin, uint64_t length)
{
    switch (below(g, 8)) {
    case 0: return RDC_UNPLACED;
    case 1: return UINT64_C(1) << 63;
    case 2: return below(g, 50);
    default: return origin + below(g, length + 200);
    }
}

/* Runs at any offsets in the base, some of them far outside; the blocks are those sought, in turn. */
static int runs_agree(const world *w, generator *g)
{
    const size_t most = 6, reach = below(g, 3) ? below(g, 60) : below(g, 2) ? 0 : below(g, 3000);
    const uint64_t origin = below(g, 3) ? below(g, 4000) : below(g, 2) ? UINT64_C(1) << 63 : 0;
    rdc_run *runs = exactly(most * sizeof *runs);
    uint8_t *prints = exactly(w->count * w->width);
    size_t count = 0, blocks = 0, found = 0;
    block_hash hash;
    int agrees = 1;

    block_hash_start(&hash, w->key, w->size);
    memcpy(prints, w->wanted, w->count * w->width);
    for (; count < most && blocks < w->count; count++) {
        const size_t own = 1 + below(g, w->count - blocks < 30 ? w->count - blocks : 30);
        const uint64_t rest = below(g, 3) ? 0 : below(g, w->size);
        const uint64_t length = own * w->size - rest, before = drawn_offset(g, origin, w->length);
        uint64_t behind = drawn_offset(g, origin, w->length);
        /* As where only a little was put in or taken out. */
        if (before != RDC_UNPLACED && below(g, 2))
            behind = before + length + below(g, 3 * reach + 2) - below(g, length < 3 * reach ? length : 3 * reach + 1);
        runs[count] = (rdc_run){below(g, 100000), length, before, behind};
        blocks += own;
        /* The last block of a run is as short as its rest. */
        const uint64_t value = rdc_blocks_plain.value(hash.key, w->source + (blocks - 1) * w->size, w->size - rest);
        for (unsigned j = 0; j < w->width; j++)
            prints[(blocks - 1) * w->width + j] = (uint8_t)(value >> 8 * j);
    }
    rdc_match *pieces = exactly(blocks * sizeof *pieces), last = {0, 0, 0};
    const int64_t given = rdc_match_runs(w->key, w->base, w->length, origin, w->size, w->width, reach, runs, count, prints,
                                         pieces);
    if (given < 0)
        exit(2);
    size_t row = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t shift = runs[i].before;
        for (uint64_t at = 0; at < runs[i].length; at += w->size, row++) {
            const uint64_t value = fingerprint_at(prints + row * w->width, w->width), left = runs[i].length - at;
            const uint64_t length = left < w->size ? left : w->size, ahead = runs[i].before + at;
            const uint64_t back = runs[i].behind != RDC_UNPLACED && runs[i].behind >= left ? runs[i].behind - left : RDC_UNPLACED;
            uint64_t base_offset = RDC_UNPLACED;
            if (shift != RDC_UNPLACED && fits(w, &hash, origin, shift + at, length, value))
                base_offset = shift + at;
            else if (back != RDC_UNPLACED && fits(w, &hash, origin, back, length, value))
                base_offset = back;
            else if (length == w->size && reach) {
                if (runs[i].before != RDC_UNPLACED)
                    base_offset = first_near(w, &hash, origin, ahead, reach, value);
                if (base_offset == RDC_UNPLACED && back != RDC_UNPLACED)
                    base_offset = first_near(w, &hash, origin, back, reach, value);
            }
            if (base_offset == RDC_UNPLACED)
                continue;
            shift = base_offset - at;
            if (last.length && last.offset + last.length == runs[i].offset + at && last.base_offset + last.length == base_offset) {
                last.length += length;
                continue;
            }
            if (last.length)
                agrees &= found < (size_t)given && !memcmp(&pieces[found], &last, sizeof last), found++;
            last = (rdc_match){runs[i].offset + at, base_offset, length};
        }
    }
    if (last.length)
        agrees &= found < (size_t)given && !memcmp(&pieces[found], &last, sizeof last), found++;
    agrees &= found == (size_t)given;
    free(runs), free(prints), free(pieces);
    return agrees;
}

static int round_agrees(generator *g, const char **part)
{
    world w = drawn_world(g);
    const generator runs = {draw(g)};
    const char *name = ""; /* of the variant before */
    int agrees = 1;
    for (const rdc_block_variant *const *variant = rdc_block_variants; *variant && agrees; variant++) {
        generator same = runs;
        if (!(*variant)->usable())
            continue;
        *part = (*variant)->name;
        /* A name stands for the first usable variant that has it; others that have it too are not chosen. */
        if (!rdc_choose_blocks((*variant)->name) || (rdc_blocks != *variant && strcmp(rdc_blocks->name, name)))
            agrees = 0;
        rdc_blocks = *variant;
        name = rdc_blocks->name;
        agrees = agrees && blocks_agree(&w) && lows_agree(&w) && runs_agree(&w, &same);
    }
    end_world(&w);
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
        const char *part = "";
        if (!round_agrees(&g, &part)) {
            fprintf(stderr, "the search differs in round %llu, form %s\n", (unsigned long long)(seed + i), part);
            return 1;
        }
    }
    printf("%llu rounds from seed %llu agree\n", (unsigned long long)count, (unsigned long long)seed);
    return 0;
}
