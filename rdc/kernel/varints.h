/* varints.h - columns of unsigned LEB128 integers, of up to 63 bits. */
#ifndef RDC_VARINTS_H
#define RDC_VARINTS_H

#include <stddef.h>
#include <stdint.h>

#define RDC_VARINT_BYTES 9 /* at most, of seven bits each */

/* Writes `count` numbers of 64 bits below 2^63, which need not be aligned, with room for RDC_VARINT_BYTES each: how many
 * bytes, or -1 for a larger one. */
int64_t rdc_pack_varints(const uint8_t *numbers, size_t count, uint8_t *out);

/* Reads `count` from `data` on: of how many of its bytes, or -1 where it ends before, for larger numbers and for forms
 * with needless bytes. */
int64_t rdc_unpack_varints(const uint8_t *data, size_t size, size_t count, uint64_t *out);

#endif
