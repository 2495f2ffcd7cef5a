/* columns.h - digest inputs and packed columns, as the bindings call them. */
#ifndef RDC_COLUMNS_H
#define RDC_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

/* manifest_nodes.c: the input of manifest node digests (rdc/tree/MANIFEST.md), gathered from columns. */

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

/* root_messages.c: the input of the root digests of short streams. */

/* Streams one after another: `counts` items of one level each, with consecutive lengths and digests (32 bytes). */
typedef struct {
    const uint64_t *sizes;
    const uint32_t *counts;
    const uint64_t *lengths;
    const uint8_t *digests;
    size_t streams;
} rdc_short_streams;

/* Upper limit of what rdc_root_messages writes, for messages that begin with `head` bytes. */
size_t rdc_root_messages_most(const rdc_short_streams *s, size_t head);

/* Writes the message of each stream whose items, which lie on `level`, are one node: at most `most` runs of equal
 * digests. It has `head`, the size, the level, and per run the digest, the length and the number of items, column
 * after column (rdc/signature/FORMAT.md). bytes[i] is its length, 0 for other streams. Returns the bytes of all
 * messages. */
size_t rdc_root_messages(const rdc_short_streams *s, const uint8_t *head, size_t head_bytes, uint8_t level, size_t most,
                         uint8_t *out, uint64_t *bytes);

/* node_messages.c: the input of the digests of nodes, for many streams at once. */

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

/* frame_columns.c: the rows of a pack's directory. */

/* The columns of a directory (rdc/store/PACKS.md), little-endian: `frames` rows each, and `chunks` lengths. `bases` and
 * `stored` are what the rows have to add up to. */
typedef struct {
    const uint8_t *kinds, *stored_sizes, *sizes, *counts, *generations, *depths, *base_counts, *lengths;
    size_t frames, chunks;
    uint64_t bases, stored;
} rdc_frame_columns;

/* The most bytes of a frame, decoded and stored, its greatest depth, and the most bases of it. */
typedef struct {
    uint32_t size, depth, bases;
} rdc_frame_bounds;

/* Returns whether a reader may take them. Nothing is read beyond any column. */
int rdc_frames_are_sound(const rdc_frame_columns *columns, const rdc_frame_bounds *most);

/* varints.c: columns of unsigned LEB128 integers, of up to 63 bits. */

#define RDC_VARINT_BYTES 9 /* at most, of seven bits each */

/* Writes `count` numbers of 64 bits below 2^63, which may be unaligned, with room for RDC_VARINT_BYTES
 * each. Returns the bytes written, or -1 for a larger number. */
int64_t rdc_pack_varints(const uint8_t *numbers, size_t count, uint8_t *out);

/* Reads `count` numbers from `data` on. Returns the bytes read, or -1 for missing bytes, larger numbers,
 * or needless zero groups. */
int64_t rdc_unpack_varints(const uint8_t *data, size_t size, size_t count, uint64_t *out);

/* word_differences.c: replaces rows of number tables by differences, and back. */

/* Converts a part of `size` bytes at `offset` of a file, in place. `stride` is a positive multiple of 4. */
void rdc_difference_words(uint8_t *part, size_t size, uint64_t offset, size_t stride);
void rdc_sum_words(uint8_t *part, size_t size, uint64_t offset, size_t stride);

size_t rdc_nonzero_bytes(const uint8_t *bytes, size_t size);

#endif
