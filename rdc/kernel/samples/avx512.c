/* avx512.c - sampling in AVX-512: 16 functions or 8 packed sets at a time. */
#include "samples/variant.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "cpu.h"
#include "mix.h"

#define ISA __attribute__((target("avx512f,avx512dq,avx512vpopcntdq")))
#define FN ISA static inline
#define NAME(f) avx512_##f
#define V __m512i
#define W 16
#define LOAD(p) _mm512_loadu_si512((const void *)(p))
#define STORE(p, v) _mm512_storeu_si512((void *)(p), v)
#define ALL(x) _mm512_set1_epi32((int)(x))
#define LEAST(a, b) _mm512_min_epu32(a, b)
#define PRODUCT(a, b) _mm512_mullo_epi32(a, b)
#define UNROLLED 8

#include "samples/vector_body.h"
#include "samples/weighted_body.h"

/* The ranks of eight features. */
FN __m512i ranks(const uint64_t *features, __m512i keys, __m512i factors)
{
    const __m512i x = LOAD(features);
    return _mm512_mullo_epi64(_mm512_xor_si512(_mm512_xor_si512(x, _mm512_srli_epi64(x, 32)), keys), factors);
}

ISA static size_t slots(const uint64_t *features, size_t count, uint64_t key, uint64_t factor, unsigned wide,
                            uint32_t limit, uint64_t *found)
{
    const __m512i keys = _mm512_set1_epi64((long long)key), factors = _mm512_set1_epi64((long long)factor);
    const __m512i limits = _mm512_set1_epi64(limit), high = _mm512_set1_epi64((long long)(~UINT64_C(0) << 32));
    const __m128i by = _mm_cvtsi32_si128((int)wide), back = _mm_cvtsi32_si128(32 - (int)wide);
    size_t i = 0, kept = 0;
    for (; count - i >= 8; i += 8) {
        const __m512i rank = ranks(features + i, keys, factors);
        const __m512i value = _mm512_srli_epi64(_mm512_sll_epi64(rank, by), 33);
        /* The bin from bit 32 on, then the value below. */
        const __m512i slot = _mm512_or_si512(_mm512_and_si512(_mm512_srl_epi64(rank, back), high), value);
        if (limit == RDC_NO_SAMPLE) {
            STORE(found + kept, slot);
            kept += 8;
            continue;
        }
        const __mmask8 below_limit = _mm512_cmplt_epu64_mask(value, limits);
        /* Without a branch: which features pass cannot be predicted. */
        STORE(found + kept, _mm512_maskz_compress_epi64(below_limit, slot));
        kept += (size_t)__builtin_popcount(below_limit);
    }
    return kept + rdc_slots(features + i, count - i, key, factor, wide, limit, found + kept);
}

ISA static void high_ranks(const uint64_t *features, size_t count, uint64_t key, uint64_t factor, uint32_t *high)
{
    const __m512i keys = _mm512_set1_epi64((long long)key), factors = _mm512_set1_epi64((long long)factor);
    size_t i = 0;
    for (; count - i >= 8; i += 8) {
        const __m512i rank = ranks(features + i, keys, factors);
        _mm256_storeu_si256((__m256i *)(void *)(high + i), _mm512_cvtepi64_epi32(_mm512_srli_epi64(rank, 32)));
    }
    for (; i < count; i++)
        high[i] = (uint32_t)(rdc_sample_rank(features[i], key, factor) >> 32);
}

/* The lanes of which `left` are left. */
FN __mmask16 below(size_t left)
{
    return left < W ? (__mmask16)((1u << left) - 1) : (__mmask16)0xffff;
}

ISA static size_t collect(const uint32_t *samples, const uint32_t *factors, size_t count, uint32_t *chosen)
{
    size_t empty = 0;
    for (size_t j = 0; j < count; j += W) {
        const __m512i here = _mm512_maskz_loadu_epi32(below(count - j), samples + j);
        const __mmask16 bins = _mm512_cmpeq_epi32_mask(here, _mm512_set1_epi32(-1));
        STORE(chosen + empty, _mm512_maskz_compress_epi32(bins, LOAD(factors + j)));
        empty += (size_t)__builtin_popcount(bins);
    }
    return empty;
}

ISA static void spread(const uint32_t *least, size_t count, uint32_t *samples)
{
    const __m512i tag = _mm512_set1_epi32(INT32_MIN);
    for (size_t j = 0; j < count; j += W) {
        const __mmask16 there = below(count - j);
        const __m512i here = _mm512_maskz_loadu_epi32(there, samples + j);
        const __mmask16 bins = _mm512_cmpeq_epi32_mask(here, _mm512_set1_epi32(-1));
        const __m512i own = _mm512_or_si512(tag, _mm512_srli_epi32(LOAD(least), 1));
        _mm512_mask_storeu_epi32(samples + j, there, _mm512_mask_expand_epi32(here, bins, own));
        least += __builtin_popcount(bins);
    }
}

ISA static void differences(const uint64_t *query, const uint64_t *packed, size_t blocks, size_t words,
                               unsigned bits, uint32_t *out)
{
    for (size_t block = 0; block < blocks; block++) {
        const uint64_t *mine = query;
        __m512i total = _mm512_setzero_si512();
        for (size_t word = 0; word < words; word++) {
            __m512i differ = _mm512_setzero_si512();
            for (unsigned plane = 0; plane < bits; plane++, packed += RDC_SET_BLOCK)
                /* differ | (others ^ mine) */
                differ = _mm512_ternarylogic_epi64(differ, LOAD(packed), _mm512_set1_epi64((long long)*mine++), 0xf6);
            total = _mm512_add_epi64(total, _mm512_popcnt_epi64(differ));
        }
        _mm256_storeu_si256((__m256i *)(void *)(out + RDC_SET_BLOCK * block), _mm512_cvtepi64_epi32(total));
    }
}

static int usable(void)
{
    return rdc_cpu_has(RDC_CPU_AVX512F | RDC_CPU_AVX512DQ | RDC_CPU_AVX512VPOPCNTDQ);
}

const rdc_sampling rdc_sampling_avx512 = {"avx512", usable, high_ranks, slots, avx512_minima, collect, spread, differences, avx512_weigh};

#endif
