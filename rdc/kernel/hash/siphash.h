/* siphash.h - SipHash-2-4 of 32 bytes: keyed short names of digests. */
#ifndef RDC_SIPHASH_H
#define RDC_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* Writes for each of `count` records of `stride` >= 32 bytes the first `width` (1 to 8) bytes of the
 * little-endian SipHash-2-4 of its first 32 bytes. The key has 16 bytes. */
void rdc_short_references(const uint8_t *key, const uint8_t *records, size_t count, size_t stride, unsigned width,
                          uint8_t *out);

#endif
