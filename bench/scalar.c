/* scalar.c - what bench/kernel.py compares with: the scalar sliding hash, and reading memory. */
#include "cut/variant.h"

/* A Rabin hash of the last 64 bytes, slid a byte at a time, and a cut where it is 0 under a mask: two look-ups a byte, the
 * plain chunker of the field. Returns the number of cuts. */
__attribute__((visibility("default"))) size_t scalar_cuts(const uint8_t *p, size_t n, uint64_t mask)
{
    uint64_t f = 0;
    size_t cuts = 0;
    for (size_t i = RDC_LOW_WINDOW; i < n; i++) {
        f = f >> 8 ^ rdc_low_slice[7][f & 0xff] ^ (uint64_t)p[i] << 56 ^ rdc_low_leaving[p[i - RDC_LOW_WINDOW]];
        cuts += (f & mask) == 0;
    }
    return cuts;
}

/* Reads every word once, as fast as the compiler makes it. */
__attribute__((visibility("default"))) uint64_t read_memory(const uint8_t *p, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i + 8 <= n; i += 8) {
        uint64_t word;
        __builtin_memcpy(&word, p + i, 8);
        sum ^= word;
    }
    return sum;
}
