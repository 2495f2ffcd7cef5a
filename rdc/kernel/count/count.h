/* count.h - the tables of a scan, as the binding calls them. */
#ifndef RDC_COUNT_H
#define RDC_COUNT_H

#include <stddef.h>
#include <stdint.h>

/* chunk_table.c counts how often each chunk was seen: 16 bytes per slot, ordered by key, exact or for a sample of
 * keys. */

#define RDC_TABLE_BINS 65

/* One chunk. A count of 0 is an empty slot; a size of UINT32_MAX means that size and count are in `wide`. */
typedef struct {
    uint64_t key;
    uint32_t count;
    uint32_t size;
} rdc_slot;

/* A chunk whose size or count does not fit a slot. */
typedef struct {
    uint64_t key, count, size;
} rdc_wide;

typedef struct {
    rdc_slot *slot;
    size_t homes;  /* slots that keys are spread over */
    size_t length; /* number of slots: homes, and behind them room for what the last homes push out */
    size_t used;
    rdc_wide *wide; /* sorted by key */
    size_t wides, wide_room;
    size_t limit;   /* limit in bytes; above it the sample is halved */
    unsigned shift; /* keys whose first `shift` bits are 0 are kept: one in 2^shift */
    uint64_t chunks, bytes; /* of all that was added, kept or not */
} rdc_table;

/* Statistics of the kept chunks. Bin b of a histogram holds the chunks whose value needs b bits: 2^(b-1)
 * to 2^b - 1. */
typedef struct {
    uint64_t unique_chunks, unique_bytes;
    double unique_squares; /* sum of size^2 */
    uint64_t groups, group_bytes; /* non-empty chunks seen at least twice, and the bytes of all but one of
                                   * each */
    uint64_t size_chunks[RDC_TABLE_BINS], size_bytes[RDC_TABLE_BINS];
    uint64_t copy_chunks[RDC_TABLE_BINS], copy_bytes[RDC_TABLE_BINS];
    uint64_t largest_size, largest_count;
} rdc_table_summary;

/* An empty table that may take `limit` bytes. */
void rdc_table_start(rdc_table *t, size_t limit);

/* Counts count[i] more, or one without `count`, of the chunk key[i] of size[i] bytes, for n chunks. Returns -1 without
 * memory; then some of them may be missing in all but `chunks` and `bytes`. Of several sizes of a chunk the largest stays. */
int rdc_table_add(rdc_table *t, const uint64_t *key, const uint64_t *size, const uint64_t *count, size_t n);

/* Keeps only keys whose first `shift` bits are 0. A smaller shift than before changes nothing. */
int rdc_table_sample(rdc_table *t, unsigned shift);

/* Returns the count of a key, 0 if absent. `size` may be NULL. */
uint64_t rdc_table_find(const rdc_table *t, uint64_t key, uint64_t *size);

/* Returns the next chunk in key order at or behind *position (start with 0), which is advanced. 0: no
 * more. */
int rdc_table_next(const rdc_table *t, size_t *position, rdc_wide *chunk);

void rdc_table_summarize(const rdc_table *t, rdc_table_summary *summary);

/* Bytes it takes now. */
size_t rdc_table_memory(const rdc_table *t);

void rdc_table_end(rdc_table *t);

/* wide_chunks.c: the chunks of a table whose size or count does not fit a slot, in the order of keys. */

/* The first of them whose key is not smaller, or the end. */
rdc_wide *rdc_find_wide(const rdc_table *t, uint64_t key);

/* Adds one. Returns -1 without memory. */
int rdc_add_wide(rdc_table *t, uint64_t key, uint64_t size, uint64_t count);

/* fold_chunks.c: coarser chunks from finer ones: groups of neighbours, cut by winnowing. */

#define RDC_FOLD_MAX 64

/* A stream being folded: the items since the last cut. */
typedef struct {
    uint64_t key[RDC_FOLD_MAX], size[RDC_FOLD_MAX];
    size_t count, min, max; /* 1 <= min < max <= RDC_FOLD_MAX */
} rdc_folder;

/* Takes the next `count` items and writes the groups they complete to out_key and out_size, which have
 * room for (waiting + count) / (min + 1) groups. Returns the number of groups. */
size_t rdc_folder_feed(rdc_folder *f, const uint64_t *key, const uint64_t *size, size_t count, uint64_t *out_key,
                       uint64_t *out_size);

/* Writes the rest of the stream as its last group. Returns 1, or 0 without a rest. The folder is as new. */
size_t rdc_folder_finish(rdc_folder *f, uint64_t *out_key, uint64_t *out_size);

/* Writes the indices into `key` of a pseudo-random sample of one key in 2^shift (shift <= 63). Returns
 * their number. */
size_t rdc_select_chunks(const uint64_t *key, size_t count, uint64_t salt, unsigned shift, uint64_t *index);

/* part_rows.c: what must hold for rows of a part before they are added; tests/reference/counts.py defines it. */

/* What a table of a part has left for the rows that follow. */
typedef struct {
    uint64_t chunks, bytes;
} rdc_rows_left;

typedef enum { RDC_ROWS_FINE, RDC_ROWS_DISORDERED, RDC_ROWS_TOO_MANY } rdc_rows_verdict;

/* Judges n >= 1 rows. Their keys ascend from `least` on, and their first `shift` bits (at most 63) are 0. Fine rows are
 * taken from `left`. */
rdc_rows_verdict rdc_judge_rows(const uint64_t *key, const uint64_t *size, const uint64_t *count, size_t n, uint64_t least,
                                unsigned shift, rdc_rows_left *left);

#endif
