/* avx2.c - text in AVX2: 32 bytes at a time. */
#include "shingles/variant.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "cpu.h"

#define ISA __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define FN ISA static
#define LOWEST(x) _tzcnt_u64(x)
#define NAME(f) avx2_##f

#include "shingles/word_body.h"

/* 0xff where a byte is at most `most`. */
ISA static inline __m256i at_most(__m256i bytes, uint8_t most)
{
    return _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8((char)most)), bytes);
}

ISA static void classify(const uint8_t *text, size_t blocks, uint8_t *lower, rdc_text_masks *masks)
{
    const __m256i bit = _mm256_set1_epi8(0x20);
    for (; blocks; blocks--, masks++) {
        uint64_t words = 0, high = 0;
        for (int half = 0; half < RDC_TEXT_BLOCK; half += 32, text += 32, lower += 32) {
            const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)text);
            const __m256i from_a = _mm256_sub_epi8(_mm256_or_si256(bytes, bit), _mm256_set1_epi8('a'));
            const __m256i letter = at_most(from_a, 'z' - 'a');
            const __m256i digit = at_most(_mm256_sub_epi8(bytes, _mm256_set1_epi8('0')), 9);
            const __m256i word = _mm256_or_si256(_mm256_or_si256(letter, digit), _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('_')));
            _mm256_storeu_si256((__m256i *)(void *)lower, _mm256_or_si256(bytes, _mm256_and_si256(letter, bit)));
            words |= (uint64_t)(uint32_t)_mm256_movemask_epi8(word) << half;
            high |= (uint64_t)(uint32_t)_mm256_movemask_epi8(bytes) << half;
        }
        masks->words = words;
        masks->high = high;
    }
}

static int usable(void)
{
    return rdc_cpu_has(RDC_CPU_AVX2 | RDC_CPU_BMI | RDC_CPU_BMI2 | RDC_CPU_POPCNT);
}

const rdc_shingling rdc_shingling_avx2 = {"avx2", usable, classify, avx2_edges, avx2_hash_words, avx2_combine};

#endif
