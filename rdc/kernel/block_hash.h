/*
 * block_hash.h - the keyed rolling hash of blocks below the chunk.
 *
 * f(d) = (b + a * (d[0] x^(s-1) + ... + d[s-1])) mod p with p = 2^61 - 1 and x, a, b from the session's key; its low
 * bytes travel. rdc/kernel/pure.py argues its bounds.
 */
#ifndef RDC_BLOCK_HASH_H
#define RDC_BLOCK_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "sip.h"

#define P ((UINT64_C(1) << 61) - 1)

typedef struct {
    uint64_t x8;           /* 8 x, where x < 2^56 */
    uint64_t start;        /* f of nothing, and of zeros */
    uint64_t entering[256];
    uint64_t leaving[256]; /* both < p, for windows of one size */
} block_hash;

/* Any factors whose product is below 2^122. */
static inline uint64_t product(uint64_t u, uint64_t v)
{
    const unsigned __int128 full = (unsigned __int128)u * v;
    const uint64_t sum = ((uint64_t)full & P) + (uint64_t)(full >> 61);
    return sum >= P ? sum - P : sum;
}

static inline uint64_t sum(uint64_t u, uint64_t v)
{
    return u + v >= P ? u + v - P : u + v;
}

/* 0 <= v < p from any lazy value below 2^63: the fold leaves at most p + 3. */
static inline uint64_t canonical(uint64_t v)
{
    v = (v & P) + (v >> 61);
    return v >= P ? v - P : v;
}

/* The low bits of canonical(v), but for values 0 to 3, which may come out one less. */
static inline uint64_t folded(uint64_t v)
{
    return v + (v >> 61);
}

/* Lazy: v < 2^63 and x < 2^56 give less than 2^61 + 2^58, and two table entries keep the result below 2^63. Of 8 v x
 * the upper word is v x / 2^61, and the lower word has the 61 bits below that. */
static inline uint64_t times(uint64_t v, uint64_t x8)
{
    const unsigned __int128 full = (unsigned __int128)v * x8;
    return (uint64_t)(full >> 64) + ((uint64_t)full >> 3);
}

static inline uint64_t drawn(const rdc_sip *keyed, uint64_t number)
{
    rdc_sip state = *keyed;
    return rdc_sip_end(&state, number, 1);
}

static inline void block_hash_start(block_hash *hash, const uint8_t *key, size_t size)
{
    const rdc_sip keyed = rdc_sip_start(key);
    const uint64_t x = drawn(&keyed, 1) >> 8, a = drawn(&keyed, 2) % (P - 1) + 1, b = drawn(&keyed, 3) % P;
    uint64_t power = 1, square = x;

    for (size_t rest = size; rest; rest >>= 1, square = product(square, square))
        if (rest & 1)
            power = product(power, square);
    hash->x8 = 8 * x;
    hash->start = b;
    /* b is part of the rolling value: b x comes out and b goes in with every byte. */
    const uint64_t steady = sum(b, P - product(b, x));
    for (unsigned v = 0; v < 256; v++) {
        hash->entering[v] = sum(product(a, v), steady);
        const uint64_t gone = product(product(a, v), power);
        hash->leaving[v] = gone ? P - gone : 0;
    }
}

static inline uint64_t enter(const block_hash *hash, uint64_t v, uint8_t in)
{
    return times(v, hash->x8) + hash->entering[in];
}

static inline uint64_t slide(const block_hash *hash, uint64_t v, uint8_t in, uint8_t out)
{
    return times(v, hash->x8) + hash->entering[in] + hash->leaving[out];
}

static inline uint64_t block_value(const block_hash *hash, const uint8_t *data, size_t length)
{
    uint64_t v = hash->start;
    for (size_t i = 0; i < length; i++)
        v = enter(hash, v, data[i]);
    return canonical(v);
}

/* The fingerprint of `width` (1 to 8) bytes at `from`, little-endian. */
static inline uint64_t fingerprint_at(const uint8_t *from, unsigned width)
{
    uint64_t value = 0;
    for (unsigned j = 0; j < width; j++)
        value |= (uint64_t)from[j] << 8 * j;
    return value;
}

/* The bits of a fingerprint of `width` bytes. */
static inline uint64_t fingerprint_mask(unsigned width)
{
    return width == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * width) - 1;
}

#endif
