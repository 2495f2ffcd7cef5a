/*
 * rolling_hash.h - the keyed rolling hash of blocks below the chunk: a Rabin fingerprint whose polynomial is the key's.
 *
 * f(d) = a * (d[0] x^(8(s-1)) + ... + d[s-1]) mod p over GF(2), p irreducible of degree 64, bit i of a word and of a byte
 * the coefficient of x^i; its low bytes travel. tests/reference/blocks.py argues its bounds.
 *
 * All of it is linear, so that a product with a constant is a table by bytes, or by bits of a vector's lanes: the variants in
 * variant.h. Two kinds of values: plain ones are without the factor a, scaled ones with it.
 */
#ifndef RDC_BLOCK_HASH_H
#define RDC_BLOCK_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "platform.h"

/* What follows from a session's key alone. */
typedef struct {
    uint8_t key[16];
    int made;
    uint64_t polynomial;      /* p without x^64 */
    uint64_t reduce[8][256];  /* [k][b]: b x^(64 + 8 k) mod p */
    uint64_t scaled[8][256];  /* [k][b]: a b x^(8 k) mod p */
    uint64_t x128, x192, x512, x576; /* mod p */
} rdc_block_key;

/* The same with the size of a window. */
typedef struct {
    const rdc_block_key *key;
    uint64_t leaving[256]; /* a b x^(8 (size - 1)) mod p: the first byte's part of a scaled value */
} block_hash;

/* The key has 16 bytes; a size of 0 is that of an empty window. What a hash refers to belongs to this thread, and lives
 * until the thread starts one with another key: finding a polynomial takes some 30 us, what depends on the size less
 * than one. */
void block_hash_start(block_hash *hash, const uint8_t *key, size_t size);

/* A sum of entries, one for each byte of the word. */
static inline uint64_t by_bytes(const uint64_t table[8][256], uint64_t word)
{
    return table[0][word & 255] ^ table[1][word >> 8 & 255] ^ table[2][word >> 16 & 255] ^ table[3][word >> 24 & 255] ^
           table[4][word >> 32 & 255] ^ table[5][word >> 40 & 255] ^ table[6][word >> 48 & 255] ^ table[7][word >> 56];
}

/* v x^8 + in; as in is scaled or not, so is v. */
static inline uint64_t shifted(const rdc_block_key *key, uint64_t v)
{
    return v << 8 ^ key->reduce[0][v >> 56];
}

static inline uint64_t enter(const block_hash *hash, uint64_t v, uint8_t in)
{
    return shifted(hash->key, v) ^ hash->key->scaled[0][in];
}

static inline uint64_t leave(const block_hash *hash, uint64_t v, uint8_t out)
{
    return v ^ hash->leaving[out];
}

/* The block's value from its plain one. */
static inline uint64_t scaled_value(const rdc_block_key *key, uint64_t plain)
{
    return by_bytes(key->scaled, plain);
}

/* Eight bytes a step: one chain of look-ups for all of them. */
static inline uint64_t plain_value(const rdc_block_key *key, const uint8_t *data, size_t length)
{
    uint64_t v = 0;
    for (; length >= 8; data += 8, length -= 8)
        v = by_bytes(key->reduce, v) ^ __builtin_bswap64(rdc_load64(data));
    for (; length; length--)
        v = shifted(key, v) ^ *data++;
    return v;
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
