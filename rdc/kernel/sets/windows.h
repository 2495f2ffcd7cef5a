/* windows.h - the windows of a content as numbers; tests/reference/windows.py defines them. */
#ifndef RDC_WINDOWS_H
#define RDC_WINDOWS_H

#include <stddef.h>
#include <stdint.h>

#define RDC_WINDOW 32 /* bytes */
#define RDC_SKETCH 32 /* bins, a byte each */

/* Writes the hashes of the windows that are at most `last`, in order, repeated ones too. `hashes` has room for one a byte.
 * Returns their number. */
size_t rdc_window_hashes(const uint8_t *data, size_t size, uint64_t last, uint64_t *hashes);

/* Writes RDC_SKETCH bytes: all 0 without a window. */
void rdc_window_sketch(const uint8_t *data, size_t size, uint8_t *sketch);

/* How many numbers two ascending columns of different numbers have in common. */
size_t rdc_shared_numbers(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count);

#endif
