/* variant.h - what a variant of the block search must provide: values at all offsets, filtered.
 *
 * match.c and match_near.c are written once over these functions. scalar.c has them in scalar C, the other
 * variants in vector instructions (vector_body.h). All give the same results. */
#ifndef RDC_BLOCK_VARIANT_H
#define RDC_BLOCK_VARIANT_H

#include <stdlib.h>
#include <string.h>

#include "search/rolling_hash.h"

/* Bytes of a value that a sieve examines at most. */
#define RDC_PLANES 6

/* A set of fingerprints with false positives. All offsets are examined at once, so the filter should fit
 * into the first-level cache. Values that pass are examined again by independent bits. */
typedef struct {
    unsigned value_bytes;       /* bytes of a value that are passed on: those of a fingerprint, at least four */
    /* Each fingerprint sets two bits of one byte. The lowest three bits of a value select the first, the
     * next three the second, and those above the byte. RDC_BEYOND bytes behind the last byte are readable. */
    uint8_t *bits;
    uint64_t position_mask; /* bytes, a power of two, less one */
    /* Each fingerprint sets one bit of one word. The lowest five bits of a value select the bit; the upper
     * bits of a mix of its masked low half select the word. */
    uint32_t *again;
    uint32_t low_mask; /* of a fingerprint's bits */
    unsigned shift;    /* leaves the bits that choose a word: 1 to 31 */
    /* For few fingerprints: the low four bits of byte k < planes of a value select a byte of sieve[k], the
     * next three bits a bit of it. A vector examines all planes at once, without a load per value. */
    unsigned planes; /* 0: not used */
    uint8_t sieve[RDC_PLANES][16];
} block_filter;

#define RDC_BEYOND 3

static inline uint32_t filter_mixed(const block_filter *filter, uint32_t low)
{
    return (low & filter->low_mask) * UINT32_C(0x9E3779B1) >> filter->shift;
}

static inline void filter_add(block_filter *filter, uint64_t value)
{
    filter->bits[value >> 6 & filter->position_mask] |= (uint8_t)(1 << (value & 7) | 1 << (value >> 3 & 7));
    filter->again[filter_mixed(filter, (uint32_t)value)] |= UINT32_C(1) << (value & 31);
    for (unsigned k = 0; k < RDC_PLANES && k < filter->planes; k++)
        filter->sieve[k][value >> 8 * k & 15] |= (uint8_t)(1 << (value >> (8 * k + 4) & 7));
}

/* The lowest bit: whether the first bit is set, and whether both are. */
static inline unsigned filter_look(const block_filter *filter, uint64_t value)
{
    return filter->bits[value >> 6 & filter->position_mask] >> (value & 7);
}

static inline unsigned filter_look_twice(const block_filter *filter, uint64_t value)
{
    const unsigned byte = filter->bits[value >> 6 & filter->position_mask];
    return byte >> (value & 7) & byte >> (value >> 3 & 7);
}

static inline unsigned filter_again(const block_filter *filter, uint32_t low)
{
    return filter->again[filter_mixed(filter, low)] >> (low & 31) & 1;
}

typedef struct {
    uint64_t value; /* its low `value_bytes` bytes at least */
    uint64_t offset;
} block_hit;

/* Called for all values in the filter and for some others, in any order, possibly more than once. */
typedef void (*block_hits)(void *search, const block_hit *hits, size_t count);

/* Windows lie at 0 <= offset < offsets; base has offsets + size - 1 bytes, offsets and size >= 1, and no byte beyond is
 * read. */
typedef struct {
    const char *name; /* of the kernel variant it belongs to */
    int (*usable)(void);

    /* Minimum of first-look bits per fingerprint. With 12 bits, three to eight of a hundred offsets pass
     * by chance; with 128, fewer than three of a thousand. */
    size_t first_look;

    /* The value of one block of any length. */
    uint64_t (*value)(const rdc_block_key *key, const uint8_t *data, size_t length);

    /* Calls `take` for the windows that pass the filter. */
    void (*scan)(const block_hash *hash, const uint8_t *base, size_t size, size_t offsets, const block_filter *filter,
                 block_hits take, void *search);

    /* low[offset] = the value's low half. */
    void (*lows)(const block_hash *hash, const uint8_t *base, size_t size, size_t offsets, uint32_t *low);

    /* Returns the index of the first number that equals `wanted` under the mask, or count. */
    size_t (*find)(const uint32_t *number, size_t count, uint32_t mask, uint32_t wanted);
} rdc_block_variant;

extern const rdc_block_variant rdc_blocks_plain;

/* Each is defined on its architecture only. The first two share a name: the first usable one is taken. */
extern const rdc_block_variant rdc_blocks_gathering, rdc_blocks_avx512, rdc_blocks_avx2, rdc_blocks_neon;

/* The variants compiled in, fastest first, then NULL; rdc_blocks_plain is the last. */
extern const rdc_block_variant *const rdc_block_variants[];

/* Scalar C for few offsets, or for variants without a better way. `value` computes the values of the first
 * windows. */
typedef uint64_t (*block_value)(const rdc_block_key *key, const uint8_t *data, size_t length);
void rdc_scan_plain(block_value value, const block_hash *hash, const uint8_t *base, size_t size, size_t offsets,
                    const block_filter *filter, block_hits take, void *search);
void rdc_lows_plain(block_value value, const block_hash *hash, const uint8_t *base, size_t size, size_t offsets,
                    uint32_t *low);

/* The variant in use. Only rdc_choose_blocks changes it, and nothing else may run at the same time. */
extern const rdc_block_variant *rdc_blocks;

/* Chooses the variant of this name. If there is none or this CPU cannot run it, the next slower one is
 * taken. Returns 0 if the chosen variant disagrees with the plain variant on a small base. */
int rdc_choose_blocks(const char *kernel);

#endif
