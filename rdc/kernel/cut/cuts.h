/* cuts.h - cut points and traits of one byte stream, fed in spans, and of many short ones at once. */
#ifndef RDC_CUTS_H
#define RDC_CUTS_H

#include <stddef.h>
#include <stdint.h>

#include "cut/ends.h"
#include "cut/variant.h"
#include "cut/minima.h"
#include "cut/traits.h"

/* One stream. Callers use only `length` and `ends`. */
typedef struct rdc_cutter {
    const rdc_variant *variant;
    uint64_t min, max;
    uint64_t length; /* bytes fed */
    uint64_t cut;    /* the last cut decided; length - cut <= max between calls */
    rdc_ends ends;   /* cuts decided and not yet taken: the caller sets ends.count to 0 */
    rdc_minima minima;
    int plain;            /* no traits are asked for, and no features kept */
    rdc_samples features; /* lead(i) == 0 */
    rdc_samples few;      /* 0 < lead(i) < RDC_LEAD_FEW, complete for streams below RDC_FEW_FEATURES_BELOW */
    uint8_t last[RDC_LOW_WINDOW];
} rdc_cutter;

/* Starts a stream. The caller has checked 64 <= min < max <= 32 min. */
void rdc_cutter_start(rdc_cutter *c, const rdc_variant *variant, uint64_t min, uint64_t max);

/* Takes a span; cuts are appended to c->ends. Returns -1 without memory: the stream is then lost. */
int rdc_cutter_feed(rdc_cutter *c, const uint8_t *data, size_t length);

/* Takes a whole stream at once, in place of rdc_cutter_feed and for a plain cutter only. Positions that no
 * window contains are skipped. Returns as rdc_cutter_feed does. */
int rdc_cutter_whole(rdc_cutter *c, const uint8_t *data, size_t length);

/* Writes the traits of the stream so far and returns their length, RDC_TRAIT_BYTES or 0. */
int rdc_cutter_traits(const rdc_cutter *c, uint8_t *out);

/* Frees the memory of the stream. A second call does nothing. */
void rdc_cutter_end(rdc_cutter *c);

/*
 * Like one rdc_cutter per stream, for `count` streams one after another in `data`, of sizes[i] bytes each. counts[i] is
 * the number of chunks of a stream, `lengths` gets the length of each chunk, and `traits` has RDC_TRAIT_BYTES per
 * stream: zeros for a stream without features, and for all with `plain`, which samples none. Returns -1 without memory.
 */
int rdc_cut_many(const rdc_variant *variant, uint64_t min, uint64_t max, const uint8_t *data, const uint64_t *sizes,
                 size_t count, int plain, uint32_t *counts, rdc_ends *lengths, uint8_t *traits);

#endif
