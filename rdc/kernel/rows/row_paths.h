/* row_paths.h - joins paths of manifest rows from its columns. */
#ifndef RDC_ROW_PATHS_H
#define RDC_ROW_PATHS_H

#include <stddef.h>
#include <stdint.h>

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

#endif
