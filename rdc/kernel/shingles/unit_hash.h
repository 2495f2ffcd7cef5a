/* unit_hash.h - the hash of a word or character; tests/reference/shingles.py defines it. */
#ifndef RDC_UNIT_HASH_H
#define RDC_UNIT_HASH_H

#include <stdint.h>

#include "shingles/keys.h"

/* The hash behind one more block of 16 bytes. */
static inline uint64_t rdc_unit_step(uint64_t hash, uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)(a ^ RDC_SHINGLE_KEY_A ^ hash) * (b ^ RDC_SHINGLE_KEY_B);
    return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

#define RDC_LOW_BYTES(n) {UINT64_MAX >> (64 - 8 * (n)), 0}
#define RDC_HIGH_BYTES(n) {UINT64_MAX, UINT64_MAX >> (64 - 8 * (n))}

/* The first n of 16 bytes. */
static const uint64_t rdc_word_masks[17][2] = {
    {0, 0},
    RDC_LOW_BYTES(1), RDC_LOW_BYTES(2), RDC_LOW_BYTES(3), RDC_LOW_BYTES(4),
    RDC_LOW_BYTES(5), RDC_LOW_BYTES(6), RDC_LOW_BYTES(7), RDC_LOW_BYTES(8),
    RDC_HIGH_BYTES(1), RDC_HIGH_BYTES(2), RDC_HIGH_BYTES(3), RDC_HIGH_BYTES(4),
    RDC_HIGH_BYTES(5), RDC_HIGH_BYTES(6), RDC_HIGH_BYTES(7), RDC_HIGH_BYTES(8),
};

#endif
