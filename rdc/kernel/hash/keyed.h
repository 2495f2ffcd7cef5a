/* keyed.h - SipHash-2-4: keyed short names of digests, and keyed ranks of a directory's entries. */
#ifndef RDC_KEYED_H
#define RDC_KEYED_H

#include <stddef.h>
#include <stdint.h>

/* Writes for each of `count` records of `stride` >= 32 bytes the first `width` (1 to 8) bytes of the
 * little-endian SipHash-2-4 of its first 32 bytes. The key has 16 bytes. */
void rdc_short_references(const uint8_t *key, const uint8_t *records, size_t count, size_t stride, unsigned width,
                          uint8_t *out);

/* Returns how many names a blob of `size` bytes holds, each followed by NUL. SIZE_MAX if it does not end
 * in NUL. */
size_t rdc_count_names(const uint8_t *names, size_t size);

/* Writes the SipHash-2-4 of each of `count` names (without NUL) as little-endian 64-bit numbers. The key
 * has 16 bytes. */
void rdc_name_ranks(const uint8_t *key, const uint8_t *names, size_t count, uint8_t *out);

/*
 * The same for all names of a manifest's text: for each directory NUL, its path, NUL, then names that each end with
 * NUL; no name is empty. The first 16 of the 32 bytes of a directory's digest are the key of its names. Writes nothing
 * where `out` is NULL. Returns the number of names; SIZE_MAX if the text is none, or has not `directories` directories.
 */
size_t rdc_text_ranks(const uint8_t *text, size_t size, const uint8_t *digests, size_t directories, uint8_t *out);

#endif
