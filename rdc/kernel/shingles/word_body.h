/* word_body.h - words of classified text and their hashes. A variant defines:
 *
 *   FN         attributes of its functions
 *   NAME(f)    the name of its form of f
 *   LOWEST(x)  the number of the lowest bit that is set, anything if none is
 *
 * All loops are the same everywhere. They are compiled once a variant, because instructions for bits make half of
 * the speed. */

#include "platform.h"
#include "shingles/unit_hash.h"

FN size_t NAME(edges)(const rdc_text_masks *masks, size_t blocks, unsigned skip, uint16_t *edges)
{
    size_t found = 0;
    uint64_t before = 0, words = masks[0].words & UINT64_MAX << skip;
    for (size_t block = 0; block < blocks; block++) {
        if (block)
            words = masks[block].words;
        uint64_t turns = words ^ (words << 1 | before);
        const unsigned base = (unsigned)(RDC_TEXT_BLOCK * block);
        const size_t next = found + (size_t)__builtin_popcountll(turns);
        before = words >> 63;
        /* Eight at a time, whether there are as many or not: the next block overwrites the rest. */
        for (; found < next; found += 8)
            for (int i = 0; i < 8; i++, turns &= turns - 1)
                edges[found + (size_t)i] = (uint16_t)(base + (unsigned)LOWEST(turns));
        found = next;
    }
    if (before)
        edges[found++] = (uint16_t)(RDC_TEXT_BLOCK * blocks);
    return found;
}

FN void NAME(hash_words)(const uint8_t *lower, const uint16_t *edges, size_t words, uint64_t *hashes)
{
    for (size_t i = 0; i < words; i++, edges += 2) {
        const uint8_t *word = lower + edges[0];
        size_t size = (size_t)(edges[1] - edges[0]);
        uint64_t hash = 0;
        for (; size > 16; size -= 16, word += 16)
            hash = rdc_unit_step(hash, rdc_load64(word), rdc_load64(word + 8));
        hashes[i] = rdc_unit_step(hash, rdc_load64(word) & rdc_word_masks[size][0],
                                  rdc_load64(word + 8) & rdc_word_masks[size][1]);
    }
}

FN void NAME(combine)(uint64_t *sums, size_t k, uint64_t power, const uint64_t *hashes, size_t count, uint64_t *features)
{
    uint64_t total = sums[k - 1];
    size_t i = 0;
    /* Two units at a time: a product waits for one that is two units back. */
    for (; i + 2 <= count; i += 2) {
        const uint64_t both = hashes[i] * RDC_SHINGLE_BASE + hashes[i + 1];
        const uint64_t first = total * RDC_SHINGLE_BASE + hashes[i];
        total = total * (RDC_SHINGLE_BASE * RDC_SHINGLE_BASE) + both;
        sums[k + i] = first;
        features[i] = rdc_unit_step(0, first - sums[i] * power, 0);
        sums[k + i + 1] = total;
        features[i + 1] = rdc_unit_step(0, total - sums[i + 1] * power, 0);
    }
    for (; i < count; i++) {
        total = total * RDC_SHINGLE_BASE + hashes[i];
        sums[k + i] = total;
        features[i] = rdc_unit_step(0, total - sums[i] * power, 0);
    }
}
