/* avx2.c - sampling in AVX2: 8 functions or 4 packed sets at a time. */
#include "samples/variant.h"

#if defined(__x86_64__)

#include <immintrin.h>

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

static void high_ranks(const uint64_t *features, size_t count, uint64_t key, uint64_t factor, uint32_t *high)
{
    for (size_t i = 0; i < count; i++)
        high[i] = (uint32_t)(rdc_sample_rank(features[i], key, factor) >> 32);
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
    return __builtin_cpu_supports("avx2");
}

const rdc_sampling rdc_sampling_avx2 = {"avx2", usable, high_ranks, rdc_slots, avx2_minima, rdc_collect, rdc_spread, differences};

#endif
