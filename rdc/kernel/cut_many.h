/* cut_many.h - cut points and traits of many short streams that lie one behind another. */
#ifndef RDC_CUT_MANY_H
#define RDC_CUT_MANY_H

#include <stddef.h>
#include <stdint.h>

#include "cuts.h"

/* Cuts `count` streams of sizes[i] bytes each: counts[i] is how many chunks a stream has, `lengths` gets the length of
 * each, and `traits` RDC_TRAIT_BYTES a stream, zeros where it has no feature; with `plain` no traits are looked for, and
 * all are zeros. Returns -1 without memory. */
int rdc_cut_many(const rdc_form *form, uint64_t min, uint64_t max, const uint8_t *data, const uint64_t *sizes,
                 size_t count, int plain, uint32_t *counts, rdc_ends *lengths, uint8_t *traits);

#endif
