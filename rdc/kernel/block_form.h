/*
 * block_form.h - what a form of the block search must provide: values at all offsets, and the few that a filter lets pass.
 *
 * block_match.c and block_runs.c are written once over these functions. block_plain.c has them in scalar C, the others in
 * vector instructions (block_body.h), and all give the same.
 */
#ifndef RDC_BLOCK_FORM_H
#define RDC_BLOCK_FORM_H

#include <stdlib.h>
#include <string.h>

#include "block_hash.h"

/* Bytes of a value that a sieve looks at, at most. */
#define RDC_PLANES 6

/* A set of fingerprints that lets others pass as well. All offsets are looked at once, so that what this takes should
 * stay in the first-level cache; what passes is looked at again, by bits that have nothing to do with the first ones. */
typedef struct {
    unsigned kept;       /* bytes of a value that are handed over: those of a fingerprint, at least four */
    /* Two bits each in one byte: the lowest three bits of a value say which, the next three the other, those above them
     * the byte. RDC_BEYOND bytes behind the last can be read. */
    uint8_t *bits;
    uint64_t places; /* bytes, a power of two, less one */
    /* One bit each in one word: the lowest five bits of a value say which, the upper ones of what its low half under a
     * mask is mixed to say the word. */
    uint32_t *again;
    uint32_t low_mask; /* of a fingerprint's bits */
    unsigned shift;    /* leaves the bits that choose a word: 1 to 31 */
    /* Where there are few: of byte k < planes of a value the low four bits choose a byte of sieve[k], the next three a bit
     * of that. A vector looks through all planes at once without a load for each value. */
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
    filter->bits[value >> 6 & filter->places] |= (uint8_t)(1 << (value & 7) | 1 << (value >> 3 & 7));
    filter->again[filter_mixed(filter, (uint32_t)value)] |= UINT32_C(1) << (value & 31);
    for (unsigned k = 0; k < RDC_PLANES && k < filter->planes; k++)
        filter->sieve[k][value >> 8 * k & 15] |= (uint8_t)(1 << (value >> (8 * k + 4) & 7));
}

/* In the lowest bit: whether its first bit is set, and both. */
static inline unsigned filter_look(const block_filter *filter, uint64_t value)
{
    return filter->bits[value >> 6 & filter->places] >> (value & 7);
}

static inline unsigned filter_look_twice(const block_filter *filter, uint64_t value)
{
    const unsigned byte = filter->bits[value >> 6 & filter->places];
    return byte >> (value & 7) & byte >> (value >> 3 & 7);
}

static inline unsigned filter_again(const block_filter *filter, uint32_t low)
{
    return filter->again[filter_mixed(filter, low)] >> (low & 31) & 1;
}

typedef struct {
    uint64_t value; /* its low `kept` bytes at least */
    uint64_t offset;
} block_hit;

/* Called for all values that were added to the filter, and some others, in any order, and perhaps more than once. */
typedef void (*block_hits)(void *search, const block_hit *hits, size_t count);

/* Windows lie at 0 <= offset < offsets; base has offsets + size - 1 bytes, offsets and size >= 1, and no byte beyond is
 * read. */
typedef struct {
    const char *name; /* of the kernel form it belongs to */
    int (*usable)(void);

    /* Bits of the first look for each fingerprint, at least: with 12 three to eight of a hundred offsets pass it by
     * chance, with 128 fewer than three of a thousand. */
    size_t first_look;

    /* The value of one block of any length. */
    uint64_t (*value)(const rdc_block_key *key, const uint8_t *data, size_t length);

    /* take for the windows that the filter lets pass. */
    void (*scan)(const block_hash *hash, const uint8_t *base, size_t size, size_t offsets, const block_filter *filter,
                 block_hits take, void *search);

    /* low[offset] = the value's low half. */
    void (*lows)(const block_hash *hash, const uint8_t *base, size_t size, size_t offsets, uint32_t *low);

    /* The first of the numbers that is `wanted` under the mask, or count. */
    size_t (*find)(const uint32_t *number, size_t count, uint32_t mask, uint32_t wanted);
} rdc_block_form;

extern const rdc_block_form rdc_blocks_plain;

/* Each where its architecture is. The first two have one name: the first that is usable is taken. */
extern const rdc_block_form rdc_blocks_gathering, rdc_blocks_avx512, rdc_blocks_avx2, rdc_blocks_neon;

/* The forms compiled in, fastest first, then NULL; rdc_blocks_plain is the last. */
extern const rdc_block_form *const rdc_block_forms[];

/* Scalar C on few offsets, or for want of anything better, with the form's way to the first windows' values. */
typedef uint64_t (*block_value)(const rdc_block_key *key, const uint8_t *data, size_t length);
void rdc_scan_plain(block_value value, const block_hash *hash, const uint8_t *base, size_t size, size_t offsets,
                    const block_filter *filter, block_hits take, void *search);
void rdc_lows_plain(block_value value, const block_hash *hash, const uint8_t *base, size_t size, size_t offsets,
                    uint32_t *low);

/* The form in use. It is changed by rdc_choose_blocks alone, which nothing else may run beside. */
extern const rdc_block_form *rdc_blocks;

/* Chooses the form of the kernel form's name, or where this CPU cannot run it or there is none, the next slower one.
 * Returns 0 when the form chosen does not give what the plain form gives on a small base. */
int rdc_choose_blocks(const char *kernel);

#endif
