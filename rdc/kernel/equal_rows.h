/* equal_rows.h - which rows of a column hold values that occur more than once. */
#ifndef RDC_EQUAL_ROWS_H
#define RDC_EQUAL_ROWS_H

#include <stddef.h>
#include <stdint.h>

/*
 * `column` has `count` rows (at most 2^32 - 1) of `width` bytes. Puts into `rows`, which has room for `count`, the rows
 * whose value occurs more than once, by value (as bytes compare), then by row; into `sizes`, with the same room, how
 * many rows each of these values has. *found and *groups say how much was put there. Returns 0, or -1 for lack of
 * memory: it needs 32 bytes a row.
 */
int rdc_equal_rows(const uint8_t *column, size_t count, size_t width, uint32_t *rows, uint32_t *sizes, size_t *found,
                   size_t *groups);

#endif
