/* rows.h - selection, paths and equal values of rows, as the bindings call them. */
#ifndef RDC_ROWS_H
#define RDC_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* equal_rows.c: finds rows of a column whose values occur more than once. */

/* `column` has `count` rows (at most 2^32 - 1) of `width` bytes. Writes to `rows`, with room for `count`,
 * the rows whose value occurs more than once, by value (compared as bytes), then by row. Writes to
 * `sizes`, with the same room, the number of rows per value. Sets *found and *groups to the numbers
 * written. Returns 0, or -1 without memory: it needs 32 bytes per row and 16 KiB. */
int rdc_equal_rows(const uint8_t *column, size_t count, size_t width, uint32_t *rows, uint32_t *sizes, size_t *found,
                   size_t *groups);

/* row_paths.c: joins paths of manifest rows from its columns. */

/* The columns of rdc/tree/manifest.py that contain paths, with native numbers. */
typedef struct {
    const uint8_t *text;
    size_t text_size;
    const uint64_t *texts, *firsts; /* where a directory's names begin in `text`, and its first row */
    size_t directories;
} rdc_path_columns;

/* One path: that of its directory, empty for the top, and the name, as they lie in the text. */
typedef struct {
    const uint8_t *above, *name;
    size_t above_size, name_size;
} rdc_row_path;

/* A row, and the offset of its name in the text: the row after the last one asked for. Callers that ask
 * for ascending rows of a large directory scan its names once. Zeros at first. */
typedef struct {
    uint64_t row, text;
} rdc_reached_row;

/* Finds the paths of `count` ascending rows. *reached is the position from an earlier call. Returns 0, or
 * -1 if rows or columns do not fit together; nothing is read beyond any of them. The caller must only ask
 * for existing rows: a row past the end may give a wrong name. */
int rdc_find_paths(const rdc_path_columns *columns, const uint64_t *rows, size_t count, rdc_reached_row *reached,
                   rdc_row_path *paths);

/* Bytes of a path and of the NUL after it. */
size_t rdc_path_size(const rdc_row_path *path);

/* Writes these, and returns where they end. */
uint8_t *rdc_put_path(const rdc_row_path *path, uint8_t *out);

/* select_rows.c: copies selected rows of a column. */

/* Returns whether all `chosen` are rows of a column of `count` rows. */
int rdc_rows_exist(const uint64_t *chosen, size_t chosen_count, size_t count);

/* Copies these rows of `column`, `width` bytes each, to `out`. */
void rdc_take_rows(const uint8_t *column, size_t width, const uint64_t *chosen, size_t chosen_count, uint8_t *out);

/* Sets these rows to `values`. If a row is named twice, the later value wins. */
void rdc_put_rows(uint8_t *column, size_t width, const uint64_t *chosen, size_t chosen_count, const uint8_t *values);

#endif
