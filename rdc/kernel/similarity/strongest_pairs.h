/* strongest_pairs.h - selects the pairs that agree in most traits. */
#ifndef RDC_STRONGEST_PAIRS_H
#define RDC_STRONGEST_PAIRS_H

#include <stddef.h>
#include <stdint.h>

#include "similarity/pairs.h"

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
