/* manifest_nodes.h - the input of manifest node digests (rdc/tree/MANIFEST.md), gathered from columns. */
#ifndef RDC_MANIFEST_NODES_H
#define RDC_MANIFEST_NODES_H

#include <stddef.h>
#include <stdint.h>

/* The columns of rdc/tree/manifest.py that name entries, with native numbers. */
typedef struct {
    const uint8_t *text;
    size_t text_size;
    const uint64_t *texts, *firsts; /* where a directory's names begin in `text`, and its first row */
    size_t directories;
    const uint8_t *kinds;
    size_t rows;
    const uint8_t *links;
    size_t links_size;
} rdc_named_rows;

/* A row, and the offsets of its name and of the next link target. */
typedef struct {
    uint64_t row, text, link;
} rdc_row_position;

/* One node. Its head is the directory of its first row in `text`, NULs included. */
typedef struct {
    uint64_t head, head_end, text, text_end, row, row_end, link, link_end;
} rdc_node;

/* Finds `count` nodes. The first begins at *position, and node i ends before row ends[i]. *position becomes the
 * start of the next node. Returns 0, or -1 if columns, ends and position do not fit together. Nothing is read
 * beyond any of them. */
int rdc_find_nodes(const rdc_named_rows *columns, const uint64_t *ends, size_t count, rdc_row_position *position,
                   rdc_node *nodes);

/* Bytes that a node's names digest is over. */
size_t rdc_node_size(const rdc_node *node);

/* Writes them, and returns where they end. */
uint8_t *rdc_put_node(const rdc_named_rows *columns, const rdc_node *node, uint8_t *out);

#endif
