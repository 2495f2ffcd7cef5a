/* variant.h - what a variant of shingling must provide. tests/reference/shingles.py defines shingles. */
#ifndef RDC_SHINGLES_VARIANT_H
#define RDC_SHINGLES_VARIANT_H

#include <stddef.h>
#include <stdint.h>

#define RDC_TEXT_BLOCK 64

/* The bytes of a block of text: bit i is of byte i. */
typedef struct {
    uint64_t words; /* ASCII letters, digits and the underscore */
    uint64_t high;  /* no ASCII */
} rdc_text_masks;

typedef struct {
    const char *name;
    int (*usable)(void);

    /* Writes the masks of so many blocks, and their bytes with ASCII letters in lower case. */
    void (*classify)(const uint8_t *text, size_t blocks, uint8_t *lower, rdc_text_masks *masks);

    /* Writes where words begin and end, from byte `skip` of the first block on. A word that reaches the end of the
     * blocks has an end there. Returns the number of edges. Up to RDC_TEXT_BLOCK behind them
     * are overwritten. */
    size_t (*edges)(const rdc_text_masks *masks, size_t blocks, unsigned skip, uint16_t *edges);

    /* Writes the hashes of so many words. 16 bytes behind the last one's start may be read. */
    void (*hash_words)(const uint8_t *lower, const uint16_t *edges, size_t words, uint64_t *hashes);

    /* Writes sums[k + i] = sums[k + i - 1] * RDC_SHINGLE_BASE + hashes[i], and features[i], rdc_unit_step(0, x, 0) of x =
     * sums[k + i] - sums[i] * power. */
    void (*combine)(uint64_t *sums, size_t k, uint64_t power, const uint64_t *hashes, size_t count, uint64_t *features);
} rdc_shingling;

/* The first one where the architecture is x86, the second on ARM64. */
extern const rdc_shingling rdc_shingling_avx2, rdc_shingling_neon, rdc_shingling_plain;

#endif
