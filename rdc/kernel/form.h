/*
 * form.h - what a kernel form must provide: the hashing of one block, and nothing of the stream.
 *
 * cuts.c is written once over these functions. plain.c has them in scalar C; the others are the same functions of
 * their arguments in vector instructions.
 */
#ifndef RDC_FORM_H
#define RDC_FORM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tables.h"
#include "traits.h"

/* Positions in one call at most: the leads, in bytes, stay in the first-level cache, and a position fits 16 bits. */
#define RDC_BLOCK 4096

/* Room for a list: it is left off after the 64 positions that make it too long, and they are written eight at a time. */
#define RDC_PLACES (RDC_BLOCK / 8 + 64 + 8)

/* Position i lies after byte p[i - 1]. In every call at least RDC_LOW_WINDOW bytes before p are readable, and
 * nothing from p + n on. */
typedef struct rdc_form {
    const char *name;

    /* Of n positions at most n / sparse are listed and hashed one by one, sparse >= 8. Of more of them, low() is slid over all
     * n: a fresh window costs what four to fifteen slid positions cost, so at this limit the list is much the cheaper way. It
     * is this low because data can be made to need both ways: lists as long as they get, and then all positions slid over.
     * Random data has one position in 256, in a stream's first bytes one in 64. */
    unsigned sparse;

    /* Whether this CPU has the instructions. */
    int (*usable)(void);

    /* For 1 <= i <= n <= RDC_BLOCK: lead[i - 1] = lead(i). Lists in at[], ascending, the i with lead(i) < below, which
     * is 0, 1, 2 or 4; returns how many, or if they are more than n / sparse, any number above that, and the list is
     * worthless. at has room for RDC_PLACES. lead has room for n rounded up to 64 bytes. */
    size_t (*scan)(const uint8_t *p, size_t n, unsigned below, uint8_t *lead, uint16_t *at);

    /* low[k] = low(at[k]) for 0 <= k < count. */
    void (*lows)(const uint8_t *p, const uint16_t *at, size_t count, uint64_t *low);

    /* low[i - 1] = low(i) for 1 <= i <= n. */
    void (*slide)(const uint8_t *p, size_t n, uint64_t *low);

    /* Lists, ascending, the i with lead[i - 1] <= lead[j] for all j >= i; returns how many, or any number above
     * n / sparse as scan does. at has room for RDC_PLACES. */
    size_t (*stairs)(const uint8_t *lead, size_t n, uint16_t *at);

    /* Lists, ascending, the i with lead(i) 0 whose feature low[i - 1] samples of this reach may take in (see traits.h), and
     * those with a lead of 1 to RDC_LEAD_FEW - 1 that samples of the reach `few` may; returns how many. at has room for n. */
    size_t (*contenders)(uint64_t reach, uint64_t few, const uint8_t *lead, const uint64_t *low, size_t n, uint16_t *at);
} rdc_form;

static inline size_t rdc_few(const rdc_form *form, size_t n)
{
    return n / form->sparse;
}

extern const rdc_form rdc_plain;

/* What most forms have nothing better than. */
void rdc_slide_plain(const uint8_t *p, size_t n, uint64_t *low);
size_t rdc_contenders_plain(uint64_t reach, uint64_t few, const uint8_t *lead, const uint64_t *low, size_t n,
                            uint16_t *at);

/* Each where its architecture is. */
extern const rdc_form rdc_avx512, rdc_avx2, rdc_ssse3, rdc_neon;

/* The forms compiled in, fastest first, then NULL; rdc_plain is the last. */
extern const rdc_form *const rdc_forms[];

/* Tests define RDC_ASSUME_OLD to run what a form does on CPUs without the extensions it merely likes. */
#ifdef RDC_ASSUME_OLD
#define RDC_NEWER 0
#else
#define RDC_NEWER 1
#endif

/* Whether a form that this CPU can run gives what the plain form gives, on one small block. */
int rdc_form_agrees(const rdc_form *form);

/* low() from the 64-bit window fingerprint: SplitMix64 (Steele, Lea, Flood 2014), one-to-one; 0 does not stay 0. */
static inline uint64_t rdc_mix(uint64_t x)
{
    x += RDC_GOLDEN;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Eight bytes, little-endian. */
static inline uint64_t rdc_load64(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

/* The highest bits of those bytes of x that are below limit <= 255. */
static inline uint64_t rdc_bytes_below(uint64_t x, unsigned limit)
{
    const uint64_t high = UINT64_C(0x8080808080808080), s = UINT64_C(0x0101010101010101) * limit;
    /* In a byte's highest bit: whether its other bits are at least those of limit. Bytes do not borrow from each other. */
    const uint64_t at_least = (x | high) - (s & ~high);
    return ((~x & s) | (~(x ^ s) & ~at_least)) & high;
}

static inline void rdc_store64(uint8_t *p, uint64_t x)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    memcpy(p, &x, sizeof x);
}

#endif
