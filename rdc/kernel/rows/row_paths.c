/* row_paths.c - joins paths of manifest rows from its columns.
 *
 * Rows ascend, so the names of a directory are scanned once, even across calls whose rows follow each
 * other. The next directory is searched from the last one on. A position after a directory's first row and
 * not after the wanted row is in that directory. */
#include "rows/rows.h"

#include <string.h>

/* Returns the last directory from `from` on whose first row is not after `row`. The first row of `from` is
 * not. */
static size_t directory_of(const rdc_path_columns *c, size_t from, uint64_t row)
{
    size_t step = 1, end;
    while (from + step < c->directories && c->firsts[from + step] <= row) {
        from += step;
        step *= 2;
    }
    end = from + step < c->directories ? from + step : c->directories;
    while (end - from > 1) {
        const size_t middle = from + (end - from) / 2;
        if (c->firsts[middle] <= row)
            from = middle;
        else
            end = middle;
    }
    return from;
}

/* The directory's own path: NUL, path, NUL precede its names. */
static int find_above(const rdc_path_columns *c, size_t directory, rdc_row_path *path)
{
    const uint64_t names = c->texts[directory];
    if (names > c->text_size || names < 2 || c->text[names - 1])
        return -1;
    size_t begin = (size_t)names - 1;
    while (begin && c->text[begin - 1])
        begin--;
    if (!begin)
        return -1;
    path->above = c->text + begin;
    path->above_size = (size_t)names - 1 - begin;
    return 0;
}

int rdc_find_paths(const rdc_path_columns *c, const uint64_t *rows, size_t count, rdc_reached_row *cursor,
                   rdc_row_path *paths)
{
    const uint8_t *const end = c->text + c->text_size, *at = c->text;
    size_t directory = 0;
    uint64_t reached = 0;

    if (count && (!c->directories || c->firsts[0]))
        return -1;
    for (size_t i = 0; i < count; i++) {
        const size_t own = directory_of(c, directory, rows[i]);
        if (i && rows[i] < reached)
            return -1;
        if (!i || own != directory) {
            if (find_above(c, own, paths + i))
                return -1;
            directory = own;
            reached = c->firsts[own];
            at = c->text + c->texts[own];
            if (cursor->row > reached && cursor->row <= rows[i] && cursor->text > c->texts[own] &&
                cursor->text <= c->text_size) {
                reached = cursor->row;
                at = c->text + cursor->text;
            }
        } else {
            paths[i] = paths[i - 1];
        }
        for (;; reached++) {
            const uint8_t *const stop = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
            if (!stop)
                return -1;
            const uint8_t *const name = at;
            at = stop + 1;
            if (reached == rows[i]) {
                paths[i].name = name;
                paths[i].name_size = (size_t)(stop - name);
                break;
            }
        }
        reached++;
    }
    if (count)
        *cursor = (rdc_reached_row){reached, (uint64_t)(at - c->text)};
    return 0;
}

size_t rdc_path_size(const rdc_row_path *path)
{
    return path->above_size + (path->above_size > 0) + path->name_size + 1;
}

uint8_t *rdc_put_path(const rdc_row_path *path, uint8_t *out)
{
    if (path->above_size) {
        memcpy(out, path->above, path->above_size);
        out += path->above_size;
        *out++ = '/';
    }
    memcpy(out, path->name, path->name_size);
    out += path->name_size;
    *out++ = 0;
    return out;
}
