/* avx512.c - text in AVX-512: a block at a time. */
#include "shingles/variant.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "cpu.h"

#define ISA __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,bmi,bmi2,popcnt")))
#define FN ISA static
#define NAME(f) avx512_##f
#define WRITE_POSITIONS write_positions

/* Writes base + i for each bit i that is set, as the lowest ones of 64 numbers. */
ISA static inline void write_positions(uint64_t bits, unsigned base, uint16_t *to)
{
    static const uint8_t order[RDC_TEXT_BLOCK] = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
        32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
    };
    const __m512i positions = _mm512_maskz_compress_epi8(bits, _mm512_loadu_si512((const void *)order));
    const __m512i from = _mm512_set1_epi16((short)base);
    const __m512i low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(positions));
    _mm512_storeu_si512((void *)to, _mm512_add_epi16(low, from));
    const __m512i high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(positions, 1));
    _mm512_storeu_si512((void *)(to + 32), _mm512_add_epi16(high, from));
}

#include "shingles/word_body.h"

ISA static void classify(const uint8_t *text, size_t blocks, uint8_t *lower, rdc_text_masks *masks)
{
    const __m512i bit = _mm512_set1_epi8(0x20);
    for (; blocks; blocks--, masks++, text += RDC_TEXT_BLOCK, lower += RDC_TEXT_BLOCK) {
        const __m512i bytes = _mm512_loadu_si512((const void *)text);
        const __m512i from_a = _mm512_sub_epi8(_mm512_or_si512(bytes, bit), _mm512_set1_epi8('a'));
        const __m512i from_0 = _mm512_sub_epi8(bytes, _mm512_set1_epi8('0'));
        const uint64_t letters = _mm512_cmple_epu8_mask(from_a, _mm512_set1_epi8('z' - 'a'));
        const uint64_t digits = _mm512_cmple_epu8_mask(from_0, _mm512_set1_epi8(9));
        masks->words = letters | digits | _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('_'));
        masks->high = _mm512_movepi8_mask(bytes);
        _mm512_storeu_si512((void *)lower, _mm512_mask_blend_epi8(letters, bytes, _mm512_or_si512(bytes, bit)));
    }
}

static int usable(void)
{
    return rdc_cpu_has(RDC_CPU_AVX512F | RDC_CPU_AVX512BW | RDC_CPU_AVX512VL | RDC_CPU_AVX512VBMI2 | RDC_CPU_BMI |
                       RDC_CPU_BMI2 | RDC_CPU_POPCNT);
}

const rdc_shingling rdc_shingling_avx512 = {"avx512", usable, classify, avx512_edges, avx512_hash_words, avx512_combine};

#endif
