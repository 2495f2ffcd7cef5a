/* manifest_nodes.c - the input of manifest node digests, gathered from columns.
 * tests/reference/nodes.py defines it.
 *
 * It passes once over the names, which have no fixed width. */
#include "columns/columns.h"

#include <string.h>

#define SYMLINK 2 /* Kind.SYMLINK of rdc/model/entries.py */

/* Returns the directory of a row: the last one that begins at or before it. */
static size_t directory_of(const rdc_named_rows *c, uint64_t row)
{
    size_t low = 0, high = c->directories;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (c->firsts[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Returns the offset behind the string at `at`, or 0 if it does not end within `size`; no string ends at
 * 0. */
static uint64_t past_string(const uint8_t *text, uint64_t at, size_t size)
{
    const uint8_t *end = at < size ? memchr(text + at, 0, size - at) : NULL;
    return end ? (uint64_t)(end - text) + 1 : 0;
}

/* NUL, the directory's path, NUL: these precede its names. */
static int find_head(const rdc_named_rows *c, size_t directory, rdc_node *node)
{
    const uint64_t end = c->texts[directory];
    if (end < 2 || end > c->text_size || c->text[end - 1])
        return -1;
    uint64_t at = end - 1;
    while (at && c->text[at - 1])
        at--;
    if (!at)
        return -1;
    node->head = at - 1;
    node->head_end = end;
    return 0;
}

int rdc_find_nodes(const rdc_named_rows *c, const uint64_t *ends, size_t count, rdc_row_position *position, rdc_node *nodes)
{
    uint64_t row = position->row, text = position->text, link = position->link;

    if (!count)
        return 0;
    if (!c->directories || c->firsts[0] || row >= c->rows || link > c->links_size)
        return -1;
    for (size_t i = 0; i < count; i++) {
        rdc_node *node = nodes + i;

        if (ends[i] <= row || ends[i] > c->rows)
            return -1;
        size_t directory = directory_of(c, row);
        if (c->firsts[directory] == row)
            text = c->texts[directory];
        if (find_head(c, directory, node))
            return -1;
        node->row = row;
        node->text = text;
        node->link = link;
        for (; row < ends[i]; row++) {
            if (directory + 1 < c->directories && c->firsts[directory + 1] == row)
                text = c->texts[++directory];
            if (!(text = past_string(c->text, text, c->text_size)))
                return -1;
            if (c->kinds[row] == SYMLINK && !(link = past_string(c->links, link, c->links_size)))
                return -1;
        }
        /* Columns that lie could lead backwards. */
        if (text < node->text)
            return -1;
        node->row_end = row;
        node->text_end = text;
        node->link_end = link;
    }
    *position = (rdc_row_position){row, text, link};
    return 0;
}

size_t rdc_node_size(const rdc_node *n)
{
    return (size_t)(4 + (n->head_end - n->head) + (n->text_end - n->text) + 1 + (n->row_end - n->row) +
                    (n->link_end - n->link));
}

static uint8_t *put(uint8_t *out, const uint8_t *column, uint64_t from, uint64_t to)
{
    if (to > from)
        memcpy(out, column + from, (size_t)(to - from));
    return out + (to - from);
}

uint8_t *rdc_put_node(const rdc_named_rows *c, const rdc_node *n, uint8_t *out)
{
    const uint64_t rows = n->row_end - n->row;
    for (unsigned k = 0; k < 4; k++)
        *out++ = (uint8_t)(rows >> 8 * k);
    out = put(out, c->text, n->head, n->head_end);
    out = put(out, c->text, n->text, n->text_end);
    *out++ = 0;
    out = put(out, c->kinds, n->row, n->row_end);
    return put(out, c->links, n->link, n->link_end);
}
