/* word_differences.h - replaces rows of number tables by differences, and back. */
#ifndef RDC_WORD_DIFFERENCES_H
#define RDC_WORD_DIFFERENCES_H

#include <stddef.h>
#include <stdint.h>

/* Converts a part of `size` bytes at `offset` of a file, in place. `stride` is a positive multiple of 4. */
void rdc_difference_words(uint8_t *part, size_t size, uint64_t offset, size_t stride);
void rdc_sum_words(uint8_t *part, size_t size, uint64_t offset, size_t stride);

size_t rdc_nonzero_bytes(const uint8_t *bytes, size_t size);

#endif
