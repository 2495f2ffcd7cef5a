/* row_paths.h - paths of rows of a manifest, put together from its columns. */
#ifndef RDC_ROW_PATHS_H
#define RDC_ROW_PATHS_H

#include <stddef.h>
#include <stdint.h>

/* The columns of rdc/tree/manifest.py that paths are in; numbers in this machine's order. */
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

/* A row, and where its name lies in the text: the row after the last one asked for, so that of a large directory names are
 * passed over once by all who ask for its rows in order. Zeros to begin with. */
typedef struct {
    uint64_t row, text;
} rdc_reached_row;

/*
 * Finds the paths of `count` rows, which increase; *reached is what an earlier call left. Returns 0, or -1 where rows or columns do not fit together: nothing is
 * read beyond any of them. Which rows exist the caller knows: one past the end may take what follows for its name.
 */
int rdc_find_paths(const rdc_path_columns *columns, const uint64_t *rows, size_t count, rdc_reached_row *reached,
                   rdc_row_path *paths);

/* Bytes of a path and of the NUL after it. */
size_t rdc_path_size(const rdc_row_path *path);

/* Writes these, and returns where they end. */
uint8_t *rdc_put_path(const rdc_row_path *path, uint8_t *out);

#endif
