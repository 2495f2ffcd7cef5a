/* chunk_table.h - how often each chunk was seen: 16 bytes a slot, ordered by key, exact or a sample by key. */
#ifndef RDC_CHUNK_TABLE_H
#define RDC_CHUNK_TABLE_H

#include <stddef.h>
#include <stdint.h>

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
    size_t length; /* slots there are: behind the homes lies what the last of them push out */
    size_t used;
    rdc_wide *wide; /* sorted by key */
    size_t wides, wide_room;
    size_t limit;   /* bytes it may take; past it the sample is halved */
    unsigned shift; /* keys are kept whose first `shift` bits are 0: one in 2^shift */
    uint64_t chunks, bytes; /* of all that was added, kept or not */
} rdc_table;

/* Figures of the kept chunks. Bin b of a histogram holds the chunks whose measure needs b bits: 2^(b-1) to 2^b - 1. */
typedef struct {
    uint64_t unique_chunks, unique_bytes;
    double unique_squares; /* sum of size^2 */
    uint64_t groups, group_bytes; /* chunks of some bytes seen twice or more, and the bytes of all but one of each */
    uint64_t size_chunks[RDC_TABLE_BINS], size_bytes[RDC_TABLE_BINS];
    uint64_t copy_chunks[RDC_TABLE_BINS], copy_bytes[RDC_TABLE_BINS];
    uint64_t largest_size, largest_count;
} rdc_table_summary;

/* An empty table that may take `limit` bytes. */
void rdc_table_start(rdc_table *t, size_t limit);

/* Counts `count` more of the chunk `key`, which is `size` bytes long. Returns -1 without memory, the table then is as
 * it was but for `chunks` and `bytes`. A size that contradicts the one before is the same chunk all the same. */
int rdc_table_add(rdc_table *t, uint64_t key, uint64_t size, uint64_t count);

/* Keeps only keys whose first `shift` bits are 0; a smaller shift than before changes nothing. */
int rdc_table_sample(rdc_table *t, unsigned shift);

/* The count of a key, 0 where it is not there; `size` may be NULL. */
uint64_t rdc_table_find(const rdc_table *t, uint64_t key, uint64_t *size);

/* The next chunk in order of keys at or behind *position (start with 0), which is moved behind it; 0: no more. */
int rdc_table_next(const rdc_table *t, size_t *position, rdc_wide *chunk);

void rdc_table_summarize(const rdc_table *t, rdc_table_summary *summary);

/* Bytes it takes now. */
size_t rdc_table_memory(const rdc_table *t);

void rdc_table_end(rdc_table *t);

#endif
