/* json_lines.h - the texts of lines that are JSON objects; tests/reference/lines.py defines them. */
#ifndef RDC_JSON_LINES_H
#define RDC_JSON_LINES_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of text that are looked at together. */
#define RDC_JSON_BLOCK 64

/* The lines of a block. A block that ends with a newline has an empty one behind it. */
size_t rdc_count_lines(const uint8_t *block, size_t size);

/* Writes the texts of all lines one after another, where each begins and where the last one ends, and for each line
 * whether it is left to Python. `texts` has room for the block and RDC_JSON_BLOCK bytes.
 * Returns the bytes of the texts. */
size_t rdc_json_texts(const uint8_t *block, size_t size, const uint8_t *field, size_t field_size, size_t most,
                      uint8_t *texts, int64_t *bounds, uint8_t *left);

#endif
