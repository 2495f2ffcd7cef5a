/* scalar.c - sampling with baseline instructions of the architecture. */
#include "mix.h"
#include "samples/variant.h"

#define FN static inline
#define NAME(f) plain_##f
#define V uint32_t
#define W 1
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#define ALL(x) (x)
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define PRODUCT(a, b) ((a) * (b))
#define UNROLLED 8

#include "samples/vector_body.h"

static void differences(const uint64_t *query, const uint64_t *packed, size_t blocks, size_t words, unsigned bits,
                        uint32_t *out)
{
    for (size_t block = 0; block < blocks; block++, packed += words * bits * RDC_SET_BLOCK)
        for (size_t lane = 0; lane < RDC_SET_BLOCK; lane++) {
            const uint64_t *mine = query, *others = packed + lane;
            uint32_t total = 0;
            for (size_t word = 0; word < words; word++) {
                uint64_t differ = 0;
                for (unsigned plane = 0; plane < bits; plane++, others += RDC_SET_BLOCK)
                    differ |= *others ^ *mine++;
                total += (uint32_t)__builtin_popcountll(differ);
            }
            out[RDC_SET_BLOCK * block + lane] = total;
        }
}

static int usable(void)
{
    return 1;
}

const rdc_sampling rdc_sampling_plain = {"c", usable, rdc_high_ranks, rdc_slots, plain_minima, rdc_collect, rdc_spread, differences};
