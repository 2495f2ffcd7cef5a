/* code_blanks.h - x86 machine code without the targets that it names by their distance, and these by themselves. */
#ifndef RDC_CODE_BLANKS_H
#define RDC_CODE_BLANKS_H

#include <stddef.h>
#include <stdint.h>

/* Writes FF for each byte of a field and 00 for all others to `mask`, as long as the code. */
void rdc_target_mask(const uint8_t *code, size_t size, uint8_t *mask);

/* Overwrites the fields with `blank`; how many there were. */
size_t rdc_blank_targets(uint8_t *code, size_t size, uint8_t blank);

/* Bytes that are not 0. */
size_t rdc_masked(const uint8_t *mask, size_t size);

/* What `mask` selects of code at `offset` of a file, distances as places; `taken` has room for rdc_masked(). */
void rdc_take_targets(const uint8_t *code, const uint8_t *mask, size_t size, uint64_t offset, uint8_t *taken);

/* Undoes that: writes to `image`, which has zeros elsewhere, what `mask` selects. */
void rdc_place_targets(const uint8_t *mask, size_t size, uint64_t offset, const uint8_t *taken, uint8_t *image);

void rdc_overlay(uint8_t *content, const uint8_t *image, const uint8_t *mask, size_t size);

#endif
