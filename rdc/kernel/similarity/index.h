/* index.h - files by key with their traits and sizes, and the most similar ones to a given file. */
#ifndef RDC_TRAIT_INDEX_H
#define RDC_TRAIT_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "similarity/lanes.h"

/* A row as bytes, little-endian: key u64 | size code u16 | traits. */
#define RDC_ROW_BYTES (8 + 2 + RDC_TRAIT_BYTES)

/* Matches one query can ask for. */
#define RDC_MATCHES_MAX 1024

/* Files in one index: slots fit 32 bits with room to spare. */
#define RDC_INDEX_FILES (1 << 26)

typedef struct rdc_row {
    uint64_t key;
    uint16_t size;
    uint8_t traits[RDC_TRAIT_BYTES];
} rdc_row;

typedef struct rdc_group rdc_group;

/* Zeroed but for `seed`, it is empty. */
typedef struct rdc_index {
    rdc_group **group;
    size_t count;   /* of files; slots 0 .. count - 1 are used */
    size_t groups;  /* allocated */
    size_t room;    /* of group[] */
    uint32_t *slot; /* hash table: slot + 1, or 0 */
    size_t buckets;  /* of the table: 0 or a power of two */
    uint64_t seed;  /* of the hash */
} rdc_index;

typedef struct rdc_similar {
    uint64_t key, distance; /* |key - the key asked with| */
    uint32_t rank;          /* (12 - matches) << 16 | |size code - the size code asked with|; smaller is better */
} rdc_similar;

/* One query and its best matches so far; `match` has room for `limit`. */
typedef struct rdc_query {
    rdc_row row;
    rdc_wanted wanted;
    rdc_similar *match;
    size_t count, limit;
    unsigned least; /* matches from which on a file may still count */
} rdc_query;

void rdc_index_end(rdc_index *index);

/* Bytes allocated. */
size_t rdc_index_memory(const rdc_index *index);

/* Adds a row; it replaces one of the same key. Returns -1 without memory, -2 when the index is full. */
int rdc_index_put(rdc_index *index, const rdc_row *row);

/* Both return whether the key is there. */
int rdc_index_get(const rdc_index *index, uint64_t key, rdc_row *row);
int rdc_index_remove(rdc_index *index, uint64_t key);

/* The row in a slot < count. */
void rdc_index_row(const rdc_index *index, size_t slot, rdc_row *row);

/* Answers several queries in one pass over the index. Afterwards each has its matches, the best first. */
void rdc_index_query(const rdc_index *index, rdc_query *query, size_t queries);

void rdc_query_start(rdc_query *query, const rdc_row *row, rdc_similar *match, size_t limit, unsigned least);

#endif
