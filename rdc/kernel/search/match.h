/* match.h - keyed fingerprints of fixed blocks, and their search at every offset of a base. */
#ifndef RDC_BLOCK_MATCH_H
#define RDC_BLOCK_MATCH_H

#include <stddef.h>
#include <stdint.h>

/* Offset of a block that is not in the base. */
#define RDC_NOWHERE UINT64_MAX

/* Writes the fingerprints, `width` (1 to 8) bytes each, of the blocks of `size` >= 1 bytes of data. A last
 * shorter block has one too. The key has 16 bytes. */
void rdc_block_fingerprints(const uint8_t *key, const uint8_t *data, size_t length, size_t size, unsigned width,
                            uint8_t *out);

/* Writes for each of `count` fingerprints of consecutive blocks of exactly `size` bytes its offset in the
 * base. The offset that continues the last match wins if it fits. Otherwise it is the first that fits, or
 * RDC_NOWHERE. Returns 0, or -1 without memory.
 *
 * Time: linear in length + count * size, plus at worst a binary search per offset that passes the filter. */
int rdc_match_blocks(const uint8_t *key, const uint8_t *base, size_t length, size_t size, unsigned width,
                     const uint8_t *fingerprints, size_t count, uint64_t *out);

#endif
