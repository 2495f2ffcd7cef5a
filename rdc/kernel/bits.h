/* bits.h - rows of bits, one per byte of some content, the lowest bit of a byte first. */
#ifndef RDC_BITS_H
#define RDC_BITS_H

#include <stddef.h>
#include <stdint.h>

#include "platform.h"

#define RDC_BITS 64 /* at a time */

/* A row under construction. Bits before `next` are written; `count` bits of `pending`, below 64, are not yet.
 * The rest of `pending` is 0. */
typedef struct {
    uint8_t *next;
    uint64_t pending;
    unsigned count;
} rdc_bits;

/* Appends up to 64 bits. Bits above `count` must be 0. */
static inline void rdc_add_bits(rdc_bits *to, uint64_t bits, size_t count)
{
    to->pending |= bits << to->count;
    if (to->count + count < RDC_BITS) {
        to->count += (unsigned)count;
        return;
    }
    rdc_store64(to->next, to->pending);
    to->next += 8;
    to->pending = to->count ? bits >> (RDC_BITS - to->count) : 0;
    to->count = (unsigned)(to->count + count - RDC_BITS);
}

/* Writes the remaining bits and fills the last byte with 0. */
static inline void rdc_end_bits(rdc_bits *to)
{
    for (unsigned at = 0; at < to->count; at += 8)
        *to->next++ = (uint8_t)(to->pending >> at);
    to->pending = to->count = 0;
}

/* Returns the bits of a row of `size` bits from bit `at` on: 64, or all that are left. */
static inline uint64_t rdc_bits_at(const uint8_t *row, size_t size, size_t at)
{
    const uint8_t *here = row + at / 8;
    const unsigned before = at % 8;
    const size_t left = size - at;
    uint64_t bits = 0;
    if (left >= RDC_BITS)
        return rdc_load64(here) >> before | (before ? (uint64_t)here[8] << (RDC_BITS - before) : 0);
    for (size_t i = 0; i < before + left; i += 8)
        bits |= i < before ? (uint64_t)(here[0] >> before) : (uint64_t)here[i / 8] << (i - before);
    return bits & ~(UINT64_MAX << left);
}

#endif
