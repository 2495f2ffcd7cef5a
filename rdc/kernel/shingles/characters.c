/* characters.c - the tables of characters, from the columns of rdc/kernel/unicode.bin. */
#include "shingles/characters.h"

#include <stdlib.h>
#include <string.h>

uint8_t rdc_character_blocks[RDC_CODES / RDC_CODES_A_BLOCK];
uint32_t rdc_character_entries[RDC_BLOCKS * RDC_CODES_A_BLOCK], rdc_character_foldings[RDC_FOLDINGS];

/* Kinds and combining classes, of ranges that follow one another. */
static int read_ranges(const uint64_t *lengths, const uint64_t *properties, size_t ranges, uint32_t *entries)
{
    uint64_t code = 0;
    for (size_t i = 0; i < ranges; i++) {
        if (lengths[i] > RDC_CODES - code || properties[i] >> 10)
            return -1;
        const uint32_t entry = (uint32_t)((properties[i] & 3) << 29 | properties[i] >> 2 << 21);
        for (const uint64_t end = code + lengths[i]; code < end; code++)
            entries[code] = entry;
    }
    return code == RDC_CODES ? 0 : -1;
}

/* What characters fold to. No part of a folding folds again, so a part's entry is still its own. */
static int read_foldings(const uint64_t *steps, size_t foldings, const uint64_t *more, const uint64_t *end, uint32_t *entries)
{
    const uint64_t *counts = steps + foldings, *firsts = counts + foldings;
    uint64_t code = 0, first = 0;
    uint32_t used = 0;
    for (size_t i = 0; i < foldings; i++) {
        code += steps[i];
        first += firsts[i] >> 1 ^ (0 - (firsts[i] & 1)); /* zigzag: the signs alternate */
        if (code >= RDC_CODES || counts[i] > RDC_FOLDINGS - used || (counts[i] && counts[i] - 1 > (uint64_t)(end - more)))
            return -1;
        const uint32_t start = used;
        for (uint64_t part = first; used < start + counts[i]; used++) {
            if (used > start)
                part = *more++;
            if (part >= RDC_CODES || entries[part] & RDC_FOLDS)
                return -1;
            rdc_character_foldings[used] = (uint32_t)part | entries[part];
        }
        if (used > start)
            rdc_character_foldings[used - 1] |= RDC_LAST;
        entries[code] = used > start ? RDC_FOLDS | start : RDC_IGNORED;
    }
    return more == end ? 0 : -1;
}

/* Equal blocks are one: most of them are whole scripts or empty. */
static int share_blocks(const uint32_t *entries)
{
    const size_t size = RDC_CODES_A_BLOCK * sizeof *entries;
    size_t used = 0, equal = 0;
    for (size_t block = 0; block < sizeof rdc_character_blocks; block++, entries += RDC_CODES_A_BLOCK) {
        if (!block || memcmp(entries - RDC_CODES_A_BLOCK, entries, size)) /* nearly all equal the one before */
            equal = used;
        while (equal && memcmp(rdc_character_entries + (equal - 1) * RDC_CODES_A_BLOCK, entries, size))
            equal--;
        if (!equal) {
            if (used == RDC_BLOCKS)
                return -1;
            memcpy(rdc_character_entries + used * RDC_CODES_A_BLOCK, entries, size);
            equal = ++used;
        }
        rdc_character_blocks[block] = (uint8_t)(equal - 1);
    }
    return 0;
}

int rdc_read_characters(const uint64_t *numbers, size_t count)
{
    if (count < 2 || numbers[0] > count || numbers[1] > count || 2 + 2 * numbers[0] + 3 * numbers[1] > count)
        return -1;
    const size_t ranges = numbers[0], foldings = numbers[1];
    const uint64_t *lengths = numbers + 2, *steps = lengths + 2 * ranges;
    uint32_t *entries = malloc(RDC_CODES * sizeof *entries);
    int failed = !entries || read_ranges(lengths, lengths + ranges, ranges, entries) ||
                 read_foldings(steps, foldings, steps + 3 * foldings, numbers + count, entries);
    if (!failed) {
        for (uint32_t code = RDC_FIRST_SYLLABLE; code <= RDC_LAST_SYLLABLE; code++)
            entries[code] = RDC_SYLLABLE;
        failed = share_blocks(entries);
    }
    free(entries);
    return failed ? -1 : 0;
}
