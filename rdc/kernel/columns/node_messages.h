/* node_messages.h - the input of the digests of nodes, for many streams at once. */
#ifndef RDC_NODE_MESSAGES_H
#define RDC_NODE_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#include "columns/root_messages.h"

typedef struct {
    uint8_t *messages; /* room for rdc_node_messages_most bytes */
    uint64_t *bytes;   /* of each node's message; room for rdc_nodes_most */
    uint64_t *lengths; /* bytes that each node covers; room for rdc_nodes_most */
    uint32_t *counts;  /* nodes of each stream */
    size_t written, nodes;
} rdc_node_messages_out;

/* Upper limits of what rdc_node_messages writes. */
size_t rdc_nodes_most(const rdc_short_streams *s, uint64_t min);
size_t rdc_node_messages_most(const rdc_short_streams *s);

/* Joins the items of each stream, which lie on `level`, to runs, groups these by winnowing (1 <= min < max), and writes
 * the message of each group. It has the level, and per run the digest, the length and the number of items, column after
 * column (rdc/signature/FORMAT.md). `sizes` is not read. Returns -1 without memory. */
int rdc_node_messages(const rdc_short_streams *s, uint8_t level, uint64_t min, uint64_t max, rdc_node_messages_out *out);

#endif
