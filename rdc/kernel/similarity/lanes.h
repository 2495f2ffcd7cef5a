/* lanes.h - the traits of 512 files as bit planes, and how many of twelve agree with one file's, for 256
 * files at once.
 *
 * Plane b holds bit b of every file. A trait agrees if all of its six planes agree: eleven logical
 * operations for 256 files. About four more add it to a count of four planes. So a file costs the reading
 * of its nine bytes and half an operation of 256 bits, whatever the traits are. GCC and Clang provide
 * these vectors on every CPU; a CPU with narrower vectors takes more instructions. */
#ifndef RDC_TRAIT_LANES_H
#define RDC_TRAIT_LANES_H

#include <stdint.h>
#include <string.h>

#include "cut/tables.h"

#define RDC_TRAIT_BITS 6
#define RDC_PLANES (RDC_TRAIT_COUNT * RDC_TRAIT_BITS)
#define RDC_GROUP_FILES 512
#define RDC_GROUP_WORDS (RDC_GROUP_FILES / 64)
#define RDC_LANE_FILES 256
#define RDC_LANE_WORDS (RDC_LANE_FILES / 64)

typedef uint64_t rdc_lanes __attribute__((vector_size(RDC_LANE_FILES / 8)));

/* Planes of a group, 64 bytes each. */
typedef uint64_t rdc_planes[RDC_PLANES][RDC_GROUP_WORDS];

/* One file's traits, as values to XOR planes with: 1 where they agree. */
typedef uint64_t rdc_wanted[RDC_PLANES];

static inline int rdc_trait_bit(const uint8_t *traits, unsigned bit)
{
    return traits[bit / 8] >> bit % 8 & 1;
}

static inline void rdc_want(uint64_t *wanted, const uint8_t *traits)
{
    for (unsigned b = 0; b < RDC_PLANES; b++)
        wanted[b] = rdc_trait_bit(traits, b) ? 0 : UINT64_MAX;
}

/* Overwrites lane `at` with a file's traits. */
static inline void rdc_planes_put(uint64_t (*planes)[RDC_GROUP_WORDS], unsigned at, const uint8_t *traits)
{
    const unsigned word = at / 64, shift = at % 64;
    for (unsigned b = 0; b < RDC_PLANES; b++)
        planes[b][word] = (planes[b][word] & ~(UINT64_C(1) << shift)) | (uint64_t)rdc_trait_bit(traits, b) << shift;
}

static inline void rdc_planes_get(const uint64_t (*planes)[RDC_GROUP_WORDS], unsigned at, uint8_t *traits)
{
    memset(traits, 0, RDC_TRAIT_BYTES);
    for (unsigned b = 0; b < RDC_PLANES; b++)
        traits[b / 8] |= (uint8_t)((planes[b][at / 64] >> at % 64 & 1) << b % 8);
}

/* Returns which files from 64 * word on agree in trait t. Unrolled by hand: in a loop GCC keeps the lanes
 * in memory. */
static inline __attribute__((always_inline)) void rdc_agreeing(const uint64_t (*planes)[RDC_GROUP_WORDS], unsigned word,
                                                               const uint64_t *wanted, unsigned t, rdc_lanes *equal)
{
    rdc_lanes plane[RDC_TRAIT_BITS];
    planes += RDC_TRAIT_BITS * t;
    wanted += RDC_TRAIT_BITS * t;
#define RDC_PLANE(b) (memcpy(&plane[b], &planes[b][word], sizeof plane[b]), plane[b] ^ wanted[b])
    *equal = RDC_PLANE(0) & RDC_PLANE(1) & RDC_PLANE(2) & RDC_PLANE(3) & RDC_PLANE(4) & RDC_PLANE(5);
#undef RDC_PLANE
}

/* Sets count[i] to bit i of the number of equal traits, for the files from 64 * word on. */
static inline __attribute__((always_inline)) void rdc_count_matches(const uint64_t (*planes)[RDC_GROUP_WORDS],
                                                                    unsigned word, const uint64_t *wanted,
                                                                    rdc_lanes count[4])
{
    rdc_lanes one = {0}, two = {0}, four = {0}, eight = {0};
    for (unsigned t = 0; t < RDC_TRAIT_COUNT; t += 3) {
        rdc_lanes a, b, c;
        rdc_agreeing(planes, word, wanted, t, &a);
        rdc_agreeing(planes, word, wanted, t + 1, &b);
        rdc_agreeing(planes, word, wanted, t + 2, &c);
        /* Three bits are a sum of two planes. The rest is ordinary addition, plane by plane. */
        rdc_lanes either = a ^ b, ones = either ^ c, twos = (a & b) | (either & c);
        rdc_lanes carry = one & ones, odd = two ^ twos, carry4 = (two & twos) | (odd & carry);
        one ^= ones;
        two = odd ^ carry;
        eight ^= four & carry4;
        four ^= carry4;
    }
    count[0] = one, count[1] = two, count[2] = four, count[3] = eight;
}

/* Sets one bit per file with at least `least` (at most 15) matches. Returns whether there is one. */
static inline int rdc_at_least(const rdc_lanes count[4], unsigned least, uint64_t *files)
{
    rdc_lanes borrow = {0};
    for (unsigned i = 0; i < 4; i++) /* count - least; only the last borrow matters */
        borrow = least >> i & 1 ? ~count[i] | borrow : ~count[i] & borrow;
    borrow = ~borrow;
    memcpy(files, &borrow, sizeof borrow);
    uint64_t any = 0;
    for (unsigned i = 0; i < RDC_LANE_WORDS; i++)
        any |= files[i];
    return any != 0;
}

/* Returns the number of equal traits of the file at 64 * word + bit from the start of `count`. */
static inline unsigned rdc_matches_at(const rdc_lanes count[4], unsigned word, unsigned bit)
{
    return (unsigned)((count[0][word] >> bit & 1) | (count[1][word] >> bit & 1) << 1 |
                      (count[2][word] >> bit & 1) << 2 | (count[3][word] >> bit & 1) << 3);
}

#endif
