/* name_ranks.h - SipHash-2-4 of names: keyed ranks of a directory's entries. */
#ifndef RDC_NAME_RANKS_H
#define RDC_NAME_RANKS_H

#include <stddef.h>
#include <stdint.h>

/* Returns how many names a blob of `size` bytes holds, each followed by NUL. SIZE_MAX if it does not end
 * in NUL. */
size_t rdc_count_names(const uint8_t *names, size_t size);

/* Writes the SipHash-2-4 of each of `count` names (without NUL) as little-endian 64-bit numbers. The key
 * has 16 bytes. */
void rdc_name_ranks(const uint8_t *key, const uint8_t *names, size_t count, uint8_t *out);

#endif
