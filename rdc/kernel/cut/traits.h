/* traits.h - twelve min-wise samples of a stream's features, six bits each. */
#ifndef RDC_TRAITS_H
#define RDC_TRAITS_H

#include <stddef.h>
#include <stdint.h>

#include "cut/tables.h"

#define RDC_SEEN 256

typedef struct rdc_samples {
    uint64_t smallest[RDC_TRAIT_COUNT]; /* of PRF_t over the features so far */
    uint64_t reach;                     /* 4 times the largest of them, and 3: no image from here on counts */
    int any;                            /* whether there was a feature */
    int in_quarters;                        /* whether each sample lies in its own quarter (see traits.c) */
    uint64_t salt;                      /* which slot of `seen` a feature has is hard to foresee: see traits.c */
    uint64_t seen[RDC_SEEN];            /* features looked at closely */
} rdc_samples;

void rdc_samples_clear(rdc_samples *s);

/* Takes features in: values of low(), hence mixed. */
void rdc_samples_add(rdc_samples *s, const uint64_t *feature, size_t count);

/* Takes the features low[at[k] - 1], 0 <= k < count. A caller may leave out features x with 4 m x >= reach
 * modulo 2^64 for all trait multipliers m. `reach` may be an earlier one of these samples; the result is
 * the same. */
void rdc_samples_add_near(rdc_samples *s, const uint64_t *low, const uint16_t *at, size_t count);

/* Takes the features of `other`. The samples of a union are the smaller of both samples. */
void rdc_samples_merge(rdc_samples *s, const rdc_samples *other);

/* Writes the packed little-endian traits, RDC_TRAIT_BYTES bytes. Returns the number of bytes: 0 without
 * features. */
int rdc_samples_traits(const rdc_samples *s, uint8_t *out);

#endif
