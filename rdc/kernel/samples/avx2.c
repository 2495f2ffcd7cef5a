/* avx2.c - sampling in AVX2: 8 functions or 4 packed sets at a time. */
#include "samples/variant.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "cpu.h"
#include "mix.h"

#define ISA __attribute__((target("avx2")))
#define FN ISA static inline
#define NAME(f) avx2_##f
#define V __m256i
#define W 8
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define ALL(x) _mm256_set1_epi32((int)(x))
#define LEAST(a, b) _mm256_min_epu32(a, b)
#define PRODUCT(a, b) _mm256_mullo_epi32(a, b)
#define UNROLLED 4

#include "samples/vector_body.h"

/* The ranks of four features: a product modulo 2^64 is that of the low halves and both mixed ones above it. */
FN __m256i ranks(const uint64_t *features, __m256i keys, __m256i factors, __m256i high_factors)
{
    const __m256i plain = LOAD(features);
    const __m256i x = _mm256_xor_si256(_mm256_xor_si256(plain, _mm256_srli_epi64(plain, 32)), keys);
    const __m256i mixed = _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(x, 32), factors),
                                           _mm256_mul_epu32(x, high_factors));
    return _mm256_add_epi64(_mm256_mul_epu32(x, factors), _mm256_slli_epi64(mixed, 32));
}

/* Permutations of eight lanes by a mask: AVX2 can neither compress nor expand. Byte i of compress_lanes[mask] is the i-th
 * lane of the mask: it moves these lanes to the front. Byte i of expand_lanes[mask] is how many lanes of the mask lie below
 * lane i: it moves them back. */
static uint64_t compress_lanes[256], expand_lanes[256];

/* Runs when the library is loaded. */
__attribute__((constructor)) static void fill_lanes(void)
{
    for (unsigned mask = 0; mask < 256; mask++)
        for (unsigned lane = 0, below = 0; lane < 8; lane++) {
            expand_lanes[mask] |= (uint64_t)below << 8 * lane;
            if (mask >> lane & 1)
                compress_lanes[mask] |= (uint64_t)lane << 8 * below++;
        }
}

/* The lanes of 32 bits in `mask` side by side. */
FN __m256i compressed(__m256i lanes, unsigned mask)
{
    const __m128i order = _mm_cvtsi64_si128((long long)compress_lanes[mask]);
    return _mm256_permutevar8x32_epi32(lanes, _mm256_cvtepu8_epi32(order));
}

ISA static size_t slots(const uint64_t *features, size_t count, uint64_t key, uint64_t factor, unsigned wide,
                           uint32_t limit, uint64_t *found)
{
    const __m256i keys = _mm256_set1_epi64x((long long)key), factors = _mm256_set1_epi64x((long long)factor);
    const __m256i high_factors = _mm256_srli_epi64(factors, 32), limits = _mm256_set1_epi64x(limit);
    const __m256i high = _mm256_set1_epi64x((long long)(~UINT64_C(0) << 32));
    const __m128i by = _mm_cvtsi32_si128((int)wide), back = _mm_cvtsi32_si128(32 - (int)wide);
    size_t i = 0, kept = 0;
    for (; count - i >= 4; i += 4) {
        const __m256i rank = ranks(features + i, keys, factors, high_factors);
        const __m256i value = _mm256_srli_epi64(_mm256_sll_epi64(rank, by), 33);
        /* The bin from bit 32 on, then the value below. */
        const __m256i slot = _mm256_or_si256(_mm256_and_si256(_mm256_srl_epi64(rank, back), high), value);
        if (limit == RDC_NO_SAMPLE) {
            STORE(found + kept, slot);
            kept += 4;
            continue;
        }
        const unsigned below = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi64(limits, value)));
        /* Without a branch: which features pass cannot be predicted. */
        STORE(found + kept, compressed(slot, below));
        kept += (size_t)__builtin_popcount(below) / 2;
    }
    return kept + rdc_slots(features + i, count - i, key, factor, wide, limit, found + kept);
}

ISA static void high_ranks(const uint64_t *features, size_t count, uint64_t key, uint64_t factor, uint32_t *high)
{
    const __m256i keys = _mm256_set1_epi64x((long long)key), factors = _mm256_set1_epi64x((long long)factor);
    const __m256i high_factors = _mm256_srli_epi64(factors, 32);
    size_t i = 0;
    for (; count - i >= 4; i += 4) {
        const __m256i halves = compressed(ranks(features + i, keys, factors, high_factors), 0xaa);
        _mm_storeu_si128((__m128i *)(void *)(high + i), _mm256_castsi256_si128(halves));
    }
    rdc_high_ranks(features + i, count - i, key, factor, high + i);
}

/* Which of the eight bins at `samples` are empty. */
FN unsigned empty_bins(const uint32_t *samples)
{
    const __m256i empty = _mm256_cmpeq_epi32(LOAD(samples), _mm256_set1_epi32(-1));
    return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(empty));
}

ISA static size_t collect(const uint32_t *samples, const uint32_t *factors, size_t count, uint32_t *chosen)
{
    size_t empty = 0, j = 0;
    for (; count - j >= W; j += W) {
        const unsigned bins = empty_bins(samples + j);
        STORE(chosen + empty, compressed(LOAD(factors + j), bins));
        empty += (size_t)__builtin_popcount(bins);
    }
    return empty + rdc_collect(samples + j, factors + j, count - j, chosen + empty);
}

ISA static void spread(const uint32_t *least, size_t count, uint32_t *samples)
{
    const __m256i tag = _mm256_set1_epi32(INT32_MIN);
    size_t j = 0;
    for (; count - j >= W; j += W) {
        const unsigned bins = empty_bins(samples + j);
        const __m256i own = _mm256_or_si256(tag, _mm256_srli_epi32(LOAD(least), 1)), here = LOAD(samples + j);
        const __m128i order = _mm_cvtsi64_si128((long long)expand_lanes[bins]);
        const __m256i placed = _mm256_permutevar8x32_epi32(own, _mm256_cvtepu8_epi32(order));
        STORE(samples + j, _mm256_blendv_epi8(here, placed, _mm256_cmpeq_epi32(here, _mm256_set1_epi32(-1))));
        least += __builtin_popcount(bins);
    }
    rdc_spread(least, count - j, samples + j);
}

/* The bits in each number of 64 bits, by tables of half bytes. */
FN __m256i bits_of(__m256i v)
{
    const __m256i half = _mm256_set1_epi8(15);
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2,
                                           2, 3, 2, 3, 3, 4);
    const __m256i low = _mm256_shuffle_epi8(table, _mm256_and_si256(v, half));
    const __m256i high = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(v, 4), half));
    return _mm256_sad_epu8(_mm256_add_epi8(low, high), _mm256_setzero_si256());
}

ISA static void differences(const uint64_t *query, const uint64_t *packed, size_t blocks, size_t words,
                               unsigned bits, uint32_t *out)
{
    for (size_t block = 0; block < blocks; block++) {
        const uint64_t *mine = query;
        __m256i first = _mm256_setzero_si256(), second = first;
        for (size_t word = 0; word < words; word++) {
            __m256i a = _mm256_setzero_si256(), b = a;
            for (unsigned plane = 0; plane < bits; plane++, packed += RDC_SET_BLOCK) {
                const __m256i one = _mm256_set1_epi64x((long long)*mine++);
                a = _mm256_or_si256(a, _mm256_xor_si256(LOAD(packed), one));
                b = _mm256_or_si256(b, _mm256_xor_si256(LOAD(packed + 4), one));
            }
            first = _mm256_add_epi64(first, bits_of(a));
            second = _mm256_add_epi64(second, bits_of(b));
        }
        uint64_t sums[RDC_SET_BLOCK];
        STORE(sums, first);
        STORE(sums + 4, second);
        for (size_t lane = 0; lane < RDC_SET_BLOCK; lane++)
            out[RDC_SET_BLOCK * block + lane] = (uint32_t)sums[lane];
    }
}

static int usable(void)
{
    return rdc_cpu_has(RDC_CPU_AVX2);
}

const rdc_sampling rdc_sampling_avx2 = {"avx2", usable, high_ranks, slots, avx2_minima, collect, spread, differences};

#endif
