/* equal_rows.h - finds rows of a column whose values occur more than once. */
#ifndef RDC_EQUAL_ROWS_H
#define RDC_EQUAL_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* `column` has `count` rows (at most 2^32 - 1) of `width` bytes. Writes to `rows`, with room for `count`,
 * the rows whose value occurs more than once, by value (compared as bytes), then by row. Writes to
 * `sizes`, with the same room, the number of rows per value. Sets *found and *groups to the numbers
 * written. Returns 0, or -1 without memory: it needs 32 bytes per row and 16 KiB. */
int rdc_equal_rows(const uint8_t *column, size_t count, size_t width, uint32_t *rows, uint32_t *sizes, size_t *found,
                   size_t *groups);

#endif
