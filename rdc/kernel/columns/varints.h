/* varints.h - columns of unsigned LEB128 integers, of up to 63 bits. */
#ifndef RDC_VARINTS_H
#define RDC_VARINTS_H

#include <stddef.h>
#include <stdint.h>

#define RDC_VARINT_BYTES 9 /* at most, of seven bits each */

/* Writes `count` numbers of 64 bits below 2^63, which may be unaligned, with room for RDC_VARINT_BYTES
 * each. Returns the bytes written, or -1 for a larger number. */
int64_t rdc_pack_varints(const uint8_t *numbers, size_t count, uint8_t *out);

/* Reads `count` numbers from `data` on. Returns the bytes read, or -1 for missing bytes, larger numbers,
 * or needless zero groups. */
int64_t rdc_unpack_varints(const uint8_t *data, size_t size, size_t count, uint64_t *out);

#endif
