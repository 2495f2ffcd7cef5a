/* windows.c - hashes every window of 32 bytes, by rolling.
 *
 * The fingerprint of a window is the exclusive or of a random word for each byte, rotated by the byte's distance from the
 * end: a cyclic polynomial (Cohen, "Recursive Hashing Functions for n-Grams", 1997). A step takes two look-ups and one
 * dependent rotation. */
#include "sets/sets.h"

#include <string.h>

#include "mix.h"

static uint64_t word[256], leaving[256]; /* a byte's word, and the same rotated by RDC_WINDOW */

static inline uint64_t rotated(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

__attribute__((constructor)) static void fill_words(void)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        word[byte] = rdc_mix(byte);
        leaving[byte] = rotated(word[byte], RDC_WINDOW);
    }
}

/* The hash from the fingerprint, one-to-one. The product orders windows by more than a linear function of their bits. */
static inline uint64_t hash_of(uint64_t fingerprint)
{
    const uint64_t product = fingerprint * RDC_GOLDEN;
    return product ^ product >> 32;
}

static uint64_t first_fingerprint(const uint8_t *data)
{
    uint64_t fingerprint = 0;
    for (size_t i = 0; i < RDC_WINDOW; i++)
        fingerprint = rotated(fingerprint, 1) ^ word[data[i]];
    return fingerprint;
}

static inline uint64_t rolled(uint64_t fingerprint, const uint8_t *first)
{
    return rotated(fingerprint, 1) ^ (leaving[first[0]] ^ word[first[RDC_WINDOW]]);
}

size_t rdc_window_hashes(const uint8_t *data, size_t size, uint64_t last, uint64_t *hashes)
{
    size_t found = 0;
    if (size < RDC_WINDOW)
        return 0;
    uint64_t fingerprint = first_fingerprint(data);
    for (size_t i = 0;; i++) {
        hashes[found] = hash_of(fingerprint);
        found += hashes[found] <= last;
        if (i == size - RDC_WINDOW)
            return found;
        fingerprint = rolled(fingerprint, data + i);
    }
}

void rdc_window_sketch(const uint8_t *data, size_t size, uint8_t *sketch)
{
    uint64_t smallest[RDC_SKETCH];
    memset(sketch, 0, RDC_SKETCH);
    if (size < RDC_WINDOW)
        return;
    memset(smallest, 0xff, sizeof smallest);
    uint64_t fingerprint = first_fingerprint(data);
    for (size_t i = 0;; i++) {
        const uint64_t hash = hash_of(fingerprint);
        uint64_t *bin = &smallest[hash % RDC_SKETCH];
        *bin = hash < *bin ? hash : *bin;
        if (i == size - RDC_WINDOW)
            break;
        fingerprint = rolled(fingerprint, data + i);
    }
    for (size_t bin = 0; bin < RDC_SKETCH; bin++)
        if (smallest[bin] != UINT64_MAX)
            sketch[bin] = (uint8_t)(smallest[bin] >> 5);
}

size_t rdc_shared_numbers(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count)
{
    size_t shared = 0, i = 0, j = 0;
    while (i < a_count && j < b_count) {
        const uint64_t one = a[i], other = b[j];
        shared += one == other;
        i += one <= other;
        j += other <= one;
    }
    return shared;
}
