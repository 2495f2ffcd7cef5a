/* code_blanks.h - x86 machine code without the targets that it names by their distance, and these by themselves. */
#ifndef RDC_CODE_BLANKS_H
#define RDC_CODE_BLANKS_H

#include <stddef.h>
#include <stdint.h>

/* Takes the form for a kernel of this name; whether it finds what the plain one does. */
int rdc_choose_code(const char *kernel);

/* Writes FF for each byte of a field and 00 for all others to `mask`, as long as the code. */
void rdc_target_mask(const uint8_t *code, size_t size, uint8_t *mask);

/* Overwrites the fields with `blank`; how many there were. */
size_t rdc_blank_targets(uint8_t *code, size_t size, uint8_t blank);

/* A bit for each byte of a mask, the lowest of a byte first, the last one's rest 0. */
void rdc_pack_mask(const uint8_t *mask, size_t size, uint8_t *bits);

/* How many are set in so many bytes of bits. */
size_t rdc_count_bits(const uint8_t *bits, size_t length);

/* What `mask` selects of code at `offset` of a file, distances as places; `taken` has room for rdc_nonzero_bytes(), of which it
 * returns how many these are. */
size_t rdc_take_targets(const uint8_t *code, const uint8_t *mask, size_t size, uint64_t offset, uint8_t *taken);

/* Bytes of a file, and how many of them were put there. */
typedef struct {
    uint8_t *bytes;
    uint64_t start;
    size_t size, put;
} rdc_content;

/* Undoes that where `content` has bytes of the piece, of whose mask `bits` has `length` bytes: how many of `taken`,
 * where `left` are, are the piece's, or SIZE_MAX for more than that. Neither ends past 2^64. */
size_t rdc_put_targets(const uint8_t *bits, size_t length, uint64_t offset, const uint8_t *taken, size_t left,
                       rdc_content *content);

/* Overwrites with `blank` what `mask` selects. They do not overlap. */
void rdc_hide(uint8_t *restrict content, const uint8_t *restrict mask, size_t size, uint8_t blank);

#endif
