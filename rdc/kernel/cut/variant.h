/* variant.h - what a kernel variant must provide: the hashing of one block, and nothing of the stream.
 *
 * cuts.c is written once over these functions. scalar.c has them in scalar C. The other variants compute
 * the same functions with vector instructions. */
#ifndef RDC_VARIANT_H
#define RDC_VARIANT_H

#include <stddef.h>
#include <stdint.h>
#include "platform.h"
#include "mix.h"
#include "cut/tables.h"
#include "cut/traits.h"

/* Positions per call at most. The leads, in bytes, stay in the first-level cache, and a position fits 16
 * bits. */
#define RDC_BLOCK 4096

/* Room for a list. A list is abandoned after the 64 positions that make it too long, and eight positions
 * are written at a time. */
#define RDC_POSITIONS (RDC_BLOCK / 8 + 64 + 8)

/* Position i lies after byte p[i - 1]. In every call at least RDC_LOW_WINDOW bytes before p are readable, and
 * nothing from p + n on. */
typedef struct rdc_variant {
    const char *name;

    /* Of n positions at most n / sparse are listed and hashed one by one, sparse >= 8. With more, low()
     * slides over all n. A fresh window costs as much as four to fifteen slid positions, so a list at this
     * limit is much the cheaper way. The limit is low because data can be made to need both: the longest
     * lists, and then a slide over all positions. Random data has one position in 256, in the first bytes
     * of a stream one in 64. */
    unsigned sparse;

    /* Returns whether this CPU has the instructions. */
    int (*usable)(void);

    /* For 1 <= i <= n <= RDC_BLOCK: lead[i - 1] = lead(i). Lists in at[], ascending, the i with lead(i) < below, which
     * is 0, 1, 2 or 4; returns how many, or if they are more than n / sparse, any number above that, and the list is
     * worthless. at has room for RDC_POSITIONS. lead has room for n rounded up to 64 bytes. */
    size_t (*scan)(const uint8_t *p, size_t n, unsigned below, uint8_t *lead, uint16_t *at);

    /* low[k] = low(at[k]) for 0 <= k < count. */
    void (*lows)(const uint8_t *p, const uint16_t *at, size_t count, uint64_t *low);

    /* low[i - 1] = low(i) for 1 <= i <= n. */
    void (*slide)(const uint8_t *p, size_t n, uint64_t *low);

    /* Lists, ascending, the i with lead[i - 1] <= lead[j] for all j >= i; returns how many, or any number above
     * n / sparse as scan does. at has room for RDC_POSITIONS. */
    size_t (*stairs)(const uint8_t *lead, size_t n, uint16_t *at);

    /* Lists, ascending, the i with lead(i) 0 whose feature low[i - 1] samples of this reach may take in (see traits.h), and
     * those with a lead of 1 to RDC_LEAD_FEW - 1 that samples of the reach `few` may; returns how many. at has room for n. */
    size_t (*contenders)(uint64_t reach, uint64_t few, const uint8_t *lead, const uint64_t *low, size_t n, uint16_t *at);
} rdc_variant;

static inline size_t rdc_few(const rdc_variant *variant, size_t n)
{
    return n / variant->sparse;
}

extern const rdc_variant rdc_plain;

/* Functions for variants that have nothing better. */
void rdc_slide_plain(const uint8_t *p, size_t n, uint64_t *low);
size_t rdc_contenders_plain(uint64_t reach, uint64_t few, const uint8_t *lead, const uint64_t *low, size_t n,
                            uint16_t *at);

/* Each is defined on its architecture only. */
extern const rdc_variant rdc_avx512, rdc_avx2, rdc_neon;

/* The compiled variants, fastest first, then NULL. rdc_plain is the last. */
extern const rdc_variant *const rdc_variants[];

/* Returns whether a usable variant agrees with the plain variant on one small block. */
int rdc_variant_agrees(const rdc_variant *variant);

#endif
