/* pairs.h - all pairs of similar files in an index, a bounded part at a time. */
#ifndef RDC_TRAIT_PAIRS_H
#define RDC_TRAIT_PAIRS_H

#include <stddef.h>
#include <stdint.h>

#include "similarity/index.h"

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

#endif
