/* code_blanks.h - x86 machine code without the targets that it names by their distance, and these by themselves. */
#ifndef RDC_CODE_BLANKS_H
#define RDC_CODE_BLANKS_H

#include <stddef.h>
#include <stdint.h>

#include "bits.h"

/* Takes the form for a kernel of this name; whether it finds what the plain one does. */
int rdc_choose_code(const char *kernel);

/* Appends a bit for each byte of code, set for those of fields. */
void rdc_target_bits(const uint8_t *code, size_t size, rdc_bits *bits);

/* Overwrites the fields with `blank`; how many there were. */
size_t rdc_blank_targets(uint8_t *code, size_t size, uint8_t blank);

/* How many of so many bits are set. */
size_t rdc_count_bits(const uint8_t *bits, size_t size);

/* What `bits` selects of `size` bytes of code at `offset` of a file, distances as places, and `blank` in its stead; `taken` has
 * room for rdc_count_bits(), which it returns. */
size_t rdc_take_targets(uint8_t *code, const uint8_t *bits, size_t size, uint64_t offset, uint8_t blank, uint8_t *taken);

/* Bytes of a file, and how many of them were put there. */
typedef struct {
    uint8_t *bytes;
    uint64_t start;
    size_t size, put;
} rdc_content;

/* Undoes that where `content` has bytes of the piece, of whose bits there are `size`: how many of `taken`, where `left` are,
 * are the piece's, or SIZE_MAX for more than that. Neither ends past 2^64. */
size_t rdc_put_targets(const uint8_t *bits, size_t size, uint64_t offset, const uint8_t *taken, size_t left,
                       rdc_content *content);

/* Overwrites with `blank` which of `size` bytes the bits select. */
void rdc_hide(uint8_t *content, const uint8_t *bits, size_t size, uint8_t blank);

#endif
