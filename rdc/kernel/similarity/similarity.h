/* similarity.h - files by their traits, and pairs of similar ones, as the binding calls them. */
#ifndef RDC_SIMILARITY_H
#define RDC_SIMILARITY_H

#include <stddef.h>
#include <stdint.h>

#include "similarity/lanes.h"

/* index.c: files by key with their traits and sizes, and the most similar ones to a given file. */

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

/* pairs.c: all pairs of similar files in an index, a bounded part at a time. */

/* Up to this many files of equal traits are all paired. Of a larger class only the smallest key is. */
#define RDC_CLASS_FILES 16

/* Ways to choose two of twelve traits. */
#define RDC_JOINS_MAX (RDC_TRAIT_COUNT * (RDC_TRAIT_COUNT - 1) / 2)

typedef struct rdc_pair {
    uint64_t a, b; /* keys, a < b */
    unsigned matches;
} rdc_pair;

typedef struct rdc_class {
    uint64_t low; /* traits, the first eight bytes */
    uint32_t first, files; /* of key[] */
    uint8_t high; /* the ninth */
} rdc_class;

typedef struct rdc_pairs {
    uint64_t *key;      /* by traits, then by key */
    rdc_class *class;   /* distinct traits, ascending */
    uint32_t *order;    /* classes by the join's two traits, then ascending */
    rdc_planes *planes; /* of the bucket */
    rdc_pair *pair;     /* found in the last step */
    size_t files, classes, groups, found, room;
    size_t window; /* following classes in a bucket that a class is compared with */
    unsigned least;
    uint32_t *above; /* with `spanning`: a forest of classes per number of matches; roots point to
                      * themselves */
    uint8_t join[RDC_JOINS_MAX][2]; /* pairs of traits */
    unsigned joins;
    /* where it is */
    unsigned at_join;           /* joins: done; UINT_MAX: inside the classes */
    size_t begin, end, at, lane; /* bucket in order[], class in it, the next class to compare it with */
    /* what was left out */
    uint64_t flooded; /* files represented by the first file of their class */
    uint64_t skipped; /* comparisons past the window */
} rdc_pairs;

/* Starts a search over a copy of what it needs. `spanning` leaves out pairs whose files are already
 * connected by pairs of as many matches. The rest has the groups of all pairs, for every number of
 * matches, and is at most 12 pairs per file. Returns -1 without memory; rdc_pairs_end must be called even
 * then. */
int rdc_pairs_start(rdc_pairs *pairs, const rdc_index *index, unsigned least, size_t window, int spanning);

/* Works for some milliseconds. pair[0 .. found) are new ones, maybe none. Returns whether there is more,
 * -1 without memory. */
int rdc_pairs_step(rdc_pairs *pairs);

void rdc_pairs_end(rdc_pairs *pairs);

/* strongest_pairs.c selects the pairs that agree in most traits. */

/* Keys of files that take part are below it. */
#define RDC_PAIR_KEYS (UINT64_C(1) << 30)

#define RDC_SKETCH_BYTES 32

/* A sketch for each key below `count`, all 0 if it is unknown. Pairs of known sketches that agree in fewer than `least`
 * bytes do not take part. Without sketches `count` is 0. */
typedef struct rdc_sketches {
    const uint8_t *bytes;
    size_t count;
    unsigned least;
} rdc_sketches;

/* Pairs as numbers: differing traits << 60 | smaller key << 30 | larger key. Ascending order is strongest
 * first, then by key. */
typedef struct rdc_strongest {
    uint64_t *pair; /* the first `count` of 2 * most */
    size_t count, most;
    uint64_t last;     /* no larger pair is among the first `most` so far */
    uint64_t left_out; /* pairs */
    rdc_sketches sketches;
} rdc_strongest;

/* -1 without memory. `most` > 0. */
int rdc_strongest_start(rdc_strongest *strongest, size_t most, const rdc_sketches *sketches);

/* Returns -1 if a key is RDC_PAIR_KEYS or more, or has no sketch where there are any; the result is invalid then. */
int rdc_strongest_add(rdc_strongest *strongest, const rdc_pair *pair, size_t count);

/* Sorts them: pair[0 .. count), at most `most`. */
void rdc_strongest_finish(rdc_strongest *strongest);

void rdc_strongest_end(rdc_strongest *strongest);

#endif
