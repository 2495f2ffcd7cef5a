/* block_match.h - keyed fingerprints of fixed blocks, and the search for them at every offset of a base. */
#ifndef RDC_BLOCK_MATCH_H
#define RDC_BLOCK_MATCH_H

#include <stddef.h>
#include <stdint.h>

/* Offset of a block that is nowhere in the base. */
#define RDC_NOWHERE UINT64_MAX

/* The fingerprints, `width` (1 to 8) bytes each, of the blocks of `size` >= 1 bytes of data; a last shorter block has
 * its own. The key has 16 bytes. */
void rdc_block_fingerprints(const uint8_t *key, const uint8_t *data, size_t length, size_t size, unsigned width,
                            uint8_t *out);

/* For each of `count` fingerprints of consecutive blocks of exactly `size` bytes the offset in base where it fits: as far
 * behind the block found last as it is in the file where that fits, else the first, else RDC_NOWHERE. 0, or -1 for want of
 * memory. Time: linear in length + count * size; for the offsets that pass a filter at worst a binary search among the
 * fingerprints. */
int rdc_match_blocks(const uint8_t *key, const uint8_t *base, size_t length, size_t size, unsigned width,
                     const uint8_t *fingerprints, size_t count, uint64_t *out);

#endif
