/* x86.h - the displacements of x86 code, as the bindings call them. */
#ifndef RDC_X86_H
#define RDC_X86_H

#include <stddef.h>
#include <stdint.h>

#include "bits.h"

/* branches.c makes them absolute, and relative again. */

typedef enum { RDC_ABSOLUTE, RDC_RELATIVE } rdc_direction;

/* Rewrites `size` bytes at `offset` of a file in place. RDC_RELATIVE undoes RDC_ABSOLUTE on the same part,
 * for any content. Returns the number of rewritten fields. */
size_t rdc_move_displacements(uint8_t *code, size_t size, uint64_t offset, rdc_direction direction);

/* masking.c masks them, and takes them out or puts them back. */

/* Chooses the variant of this name. Returns whether it agrees with the plain variant. */
int rdc_choose_code(const char *kernel);

/* Appends one bit per byte of code, set for bytes of fields. */
void rdc_displacement_bits(const uint8_t *code, size_t size, rdc_bits *bits);

/* Overwrites the fields with `filler`. Returns the number of fields. */
size_t rdc_mask_displacements(uint8_t *code, size_t size, uint8_t filler);

/* How many of so many bits are set. */
size_t rdc_count_bits(const uint8_t *bits, size_t size);

/* Copies what `bits` selects from `size` bytes of code at `offset` of a file to `taken`, with
 * displacements made absolute. Overwrites these bytes with `filler`. `taken` has room for
 * rdc_count_bits(), which is returned. */
size_t rdc_take_displacements(uint8_t *code, const uint8_t *bits, size_t size, uint64_t offset, uint8_t filler, uint8_t *taken);

/* Bytes of a file, and how many of them were written. */
typedef struct {
    uint8_t *bytes;
    uint64_t start;
    size_t size, put;
} rdc_content;

/* Undoes rdc_take_displacements for the bytes of the part that lie in `content`. The part has `size` bits;
 * `left` bytes remain in `taken`. Returns how many of them belong to the part, or SIZE_MAX if that is more
 * than `left`. Neither ends past 2^64. */
size_t rdc_put_displacements(const uint8_t *bits, size_t size, uint64_t offset, const uint8_t *taken, size_t left,
                       rdc_content *content);

/* Overwrites the bytes that the bits select with `filler`. */
void rdc_overwrite_marked(uint8_t *content, const uint8_t *bits, size_t size, uint8_t filler);

#endif
