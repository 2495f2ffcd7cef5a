/* cuts.h - cut points and traits of a byte stream, fed in spans. */
#ifndef RDC_CUTS_H
#define RDC_CUTS_H

#include <stddef.h>
#include <stdint.h>

#include "ends.h"
#include "form.h"
#include "minima.h"
#include "traits.h"

/* One stream. Whoever reads it leaves the fields alone, but for length and ends. */
typedef struct rdc_cutter {
    const rdc_form *form;
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

/* Starts a stream. The caller has checked 64 <= min < max <= 8 min. */
void rdc_cutter_start(rdc_cutter *c, const rdc_form *form, uint64_t min, uint64_t max);

/* Takes a span in; cuts go to c->ends. Returns -1 without memory: the stream is then lost. */
int rdc_cutter_feed(rdc_cutter *c, const uint8_t *data, size_t length);

/* Takes all of a stream in, in place of rdc_cutter_feed and for a plain cutter only: what can be in no window is passed
 * over. Returns as that does. */
int rdc_cutter_whole(rdc_cutter *c, const uint8_t *data, size_t length);

/* The traits of the stream so far; returns their length, RDC_TRAIT_BYTES or 0. */
int rdc_cutter_traits(const rdc_cutter *c, uint8_t *out);

/* Frees what the stream holds; nothing happens the second time. */
void rdc_cutter_end(rdc_cutter *c);

#endif
