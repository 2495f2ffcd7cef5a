/*
 * recipe.c - rows of matches from a seed, sound ones and any, through every function, in blocks of exactly their size:
 * a sanitizer sees a byte read or written past an end.
 *
 *     matches SEED COUNT    COUNT rounds; whatever differs is printed and ends it with 1
 *
 * What the functions compute is compared with its definition from Python; here a chunk must come back from its copy instructions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipe/matches.h"
#include "streams.h"

#define BASE 3000

static void *exactly(size_t rows, size_t width)
{
    void *memory = malloc(rows ? rows * width : 1);
    if (!memory) {
        fputs("pieces: no memory\n", stderr);
        exit(2);
    }
    return memory;
}

/* Mostly small, else about where something overflows. */
static uint64_t any(generator *g)
{
    static const uint64_t edges[] = {RDC_END / 4, RDC_END / 2, RDC_END, UINT64_MAX - 2, UINT64_MAX / 2};
    return below(g, 4) ? below(g, 3000) : edges[below(g, 5)] + below(g, 5) - 2;
}

/* Columns of `width` numbers; sound ones are matches in order. */
static uint64_t *rows(generator *g, size_t count, size_t width, int sound)
{
    uint64_t *made = exactly(count, 8 * width), at = below(g, 50);
    for (size_t i = 0; i < count * width; i++)
        made[i] = any(g);
    for (size_t i = 0; sound && i < count; i++) {
        uint64_t *row = made + i * width;
        const uint64_t length = 1 + below(g, 60);
        at += below(g, 3) ? below(g, 80) : 0;
        row[0] = at;
        if (width > 3)
            row[1] = below(g, 2);
        if (width > 2)
            row[width - 2] = below(g, BASE - length);
        row[width - 1] = length;
        at += length;
    }
    return made;
}

static void regions(generator *g)
{
    const size_t count = below(g, 20), others = below(g, 20);
    const int sound = below(g, 3) != 0;
    uint64_t *base_offsets = rows(g, count, 1, 0), *more = rows(g, count, 1, 0);
    uint64_t *matches = rows(g, count, 3, sound), *found = rows(g, others, 3, sound), *runs = rows(g, count, 4, 0);
    const rdc_run_limits opening = {sound ? 1 + below(g, 70) : any(g), any(g), any(g), any(g)};
    const uint64_t most = below(g, 9), room = most + 1 < 2 * (count + 1) ? most + 1 : 2 * (count + 1);
    uint64_t *filled = exactly(count, 8);
    rdc_match *out = exactly(count, sizeof *out), *joined = exactly(count + others, sizeof *joined);
    rdc_run *opened = exactly(room, sizeof *opened);
    rdc_span *spans = exactly(count, sizeof *spans);

    rdc_fill_offsets(base_offsets, more, count, any(g), filled);
    rdc_block_matches(any(g), any(g), base_offsets, count, out);
    rdc_join_matches((rdc_match *)matches, count, (rdc_match *)found, others, joined);
    rdc_unmatched_runs((rdc_match *)matches, count, sound ? 0 : any(g), sound ? 20000 : any(g), any(g), any(g), &opening,
                  most, opened);
    rdc_run_spans((rdc_run *)runs, count, any(g), any(g), any(g), any(g), spans);
    free(base_offsets), free(more), free(matches), free(found), free(runs), free(filled), free(out), free(joined);
    free(opened), free(spans);
}

/* 1, but 0 where a chunk is not what its copies say. */
static int chunk(generator *g)
{
    const size_t count = below(g, 20);
    const int sound = below(g, 3) != 0;
    uint64_t *copies = rows(g, count, 4, sound);
    const uint64_t offset = sound ? below(g, 500) : any(g), length = sound ? below(g, 900) : any(g);
    const int64_t tiled = rdc_instructions_of_range((rdc_copy *)copies, count, offset, length, NULL);
    if (tiled < 0) {
        free(copies);
        return !sound;
    }
    rdc_instruction *instructions = exactly((size_t)tiled, sizeof *instructions), *reads = exactly((size_t)tiled, sizeof *reads);
    rdc_range *ranges = exactly((size_t)tiled, sizeof *ranges), *sources = exactly((size_t)tiled, sizeof *sources);
    uint64_t literals = 0, held = 0;
    const rdc_range twice[] = {{offset, length}, {offset, length}};
    rdc_instruction *both = exactly(2 * (size_t)tiled, sizeof *both);
    rdc_instruction_totals *counts = exactly(2, sizeof *counts);
    int agrees = rdc_instructions_of_range((rdc_copy *)copies, count, offset, length, instructions) == tiled &&
                 rdc_instructions_of_ranges((rdc_copy *)copies, count, twice, 2, NULL, NULL) == 2 * tiled &&
                 rdc_instructions_of_ranges((rdc_copy *)copies, count, twice, 2, both, counts) == 2 * tiled &&
                 counts[1].instructions == (uint64_t)tiled &&
                 !memcmp(both + tiled, instructions, (size_t)tiled * sizeof *instructions);
    free(both), free(counts);

    rdc_fetched_ranges(instructions, (size_t)tiled, offset, ranges);
    rdc_copy *again = exactly((size_t)tiled, sizeof *again);
    rdc_copies_of(instructions, (size_t)tiled, offset, again);
    free(again);
    const uint64_t sizes[] = {sound ? below(g, 900) : any(g), sound ? UINT64_C(1) << 40 : any(g)};
    const rdc_surroundings around = {below(g, 50), below(g, 50), sizes, below(g, 3)};
    const int64_t read = rdc_plan_reads(instructions, (size_t)tiled, below(g, 100), &around, reads, sources, &literals);
    agrees = agrees && (read >= 0 || !sound);
    if (sound && agrees) {
        for (int64_t i = 0; i < read; i++)
            held += reads[i].length;
        uint8_t *data = exactly(held, 1), *fetched = exactly(literals, 1), *at = data;
        for (int64_t i = 0; i < read; i++)
            for (uint64_t j = 0; j < reads[i].length; j++)
                *at++ = (uint8_t)(7 * (reads[i].base_offset + j) + reads[i].base);
        memset(fetched, 255, literals);
        const int64_t made = rdc_assembled_bytes(sources, (size_t)tiled, held, literals);
        agrees = made == (int64_t)length && rdc_assembled_bytes(sources, (size_t)tiled, held, literals + 1) < 0;
        uint8_t *out = exactly(length, 1), *expected = exactly(length, 1);
        memset(expected, 255, length);
        for (size_t i = 0; i < count; i++)
            for (uint64_t j = 0; j < copies[4 * i + 3]; j++)
                if (copies[4 * i] + j >= offset && copies[4 * i] + j - offset < length)
                    expected[copies[4 * i] + j - offset] = (uint8_t)(7 * (copies[4 * i + 2] + j) + copies[4 * i + 1]);
        if (agrees) {
            rdc_assemble(sources, (size_t)tiled, data, fetched, out);
            agrees = !memcmp(out, expected, length);
            uint8_t *bits = exactly(held / 8 + 1, 1), *out_bits = exactly(length / 8 + 1, 1);
            for (uint64_t i = 0; i < held; i++)
                bits[i / 8] = (uint8_t)((i % 8 ? bits[i / 8] : 0) | (data[i] & 1) << i % 8);
            rdc_assemble_with_bits(sources, (size_t)tiled, data, bits, held, out, out_bits);
            /* Literals are zeros, and have none. */
            for (uint64_t i = 0; i < length; i++)
                agrees = agrees && (out_bits[i / 8] >> i % 8 & 1) == (out[i] & 1);
            free(bits), free(out_bits);
        }
        free(data), free(fetched), free(out), free(expected);
    }
    free(copies), free(instructions), free(reads), free(ranges), free(sources);
    return agrees;
}

/* Sources of any rows are refused, or what they make is as long as was said. */
static int sources(generator *g)
{
    const size_t count = below(g, 8), held = below(g, 3000), literals = below(g, 3000);
    rdc_range *rows_ = (rdc_range *)rows(g, count, 2, 0);
    for (size_t i = 0; i < count; i++)
        if (!below(g, 3))
            rows_[i].offset = RDC_LITERAL;
    const int64_t made = rdc_assembled_bytes(rows_, count, held, literals);
    if (made >= 0) {
        uint8_t *data = exactly(held, 1), *fetched = exactly(literals, 1), *out = exactly((size_t)made, 1);
        memset(data, 1, held);
        memset(fetched, 2, literals);
        rdc_assemble(rows_, count, data, fetched, out);
        free(data), free(fetched), free(out);
    }
    free(rows_);
    return 1;
}

/* Ranges of any rows likewise. */
static void ranges(generator *g)
{
    const size_t count = below(g, 12), length = below(g, 3000);
    rdc_range *rows_ = (rdc_range *)rows(g, count, 2, (int)below(g, 2));
    rdc_read *reads = exactly(count, sizeof *reads);
    uint8_t *data = exactly(length, 1), *out = exactly(length, 1);
    memset(data, 1, length);
    rdc_range_reads(rows_, count, any(g), any(g), reads);
    rdc_take_ranges(rows_, count, below(g, 3) ? 0 : any(g), data, length, out);
    rdc_range *around = exactly(2 * count, sizeof *around);
    rdc_around_ranges(rows_, count, any(g), any(g), around);
    free(rows_), free(reads), free(data), free(out), free(around);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const uint64_t seed = strtoull(argv[1], NULL, 10);
    const long count = strtol(argv[2], NULL, 10);
    generator g = {seed};
    for (long i = 0; i < count; i++) {
        regions(&g);
        ranges(&g);
        if (!chunk(&g) || !sources(&g)) {
            fprintf(stderr, "pieces: round %ld differs\n", i);
            return 1;
        }
    }
    printf("%ld rounds from seed %s agree\n", count, argv[1]);
    return 0;
}
