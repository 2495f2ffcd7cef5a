/* avx2.c - the search for displacement fields in AVX2: 64 bytes at a time, in halves. */
#include "cpu.h"
#include "x86/variant.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define FN __attribute__((target("avx2,bmi,bmi2,popcnt"))) static
#define NAME(f) avx2_##f
#define HALF 32
#define LOAD(at) _mm256_loadu_si256((const __m256i *)(const void *)(code + (at)))
#define SPLAT(byte) _mm256_set1_epi8((char)(byte))
#define AND(a, b) _mm256_and_si256(a, b)
#define OR(a, b) _mm256_or_si256(a, b)
#define SAME(a, b) _mm256_cmpeq_epi8(a, b)

/* FF where a byte is 00 to 03 or FC to FF. */
FN inline __m256i avx2_near(__m256i bytes)
{
    return SAME(AND(_mm256_add_epi8(bytes, SPLAT(4)), SPLAT(0xf8)), _mm256_setzero_si256());
}

/* FF for an opcode with a data operand. The low half of a byte selects the set of matching high halves,
 * below 8 or from 8 on; the high half selects one of them. */
FN inline __m256i avx2_names_data(__m256i bytes)
{
    const __m128i low = _mm_setr_epi8(2, 2, 0, 0, 0x20, 0, 2, 0x20, 0x24, 0x24, 0, 8, 0x20, 0, (char)0xa4, (char)0xc4);
    const __m128i high = _mm_setr_epi8(0, 0, 0, 1, 0, 0, 8, 0x18, 0, 1, 0, 1, 0, 1, 0, (char)0x80);
    const __m256i half = AND(bytes, SPLAT(0x0f)), other = AND(_mm256_srli_epi16(bytes, 4), SPLAT(0x07));
    const __m256i bit = _mm256_shuffle_epi8(_mm256_set1_epi64x((long long)UINT64_C(0x8040201008040201)), other);
    const __m256i some = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(low), half);
    const __m256i rest = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(high), half);
    return SAME(AND(_mm256_blendv_epi8(some, rest, bytes), bit), bit);
}

FN inline uint64_t avx2_mask(__m256i bytes)
{
    return (uint32_t)_mm256_movemask_epi8(bytes);
}

FN inline signs avx2_telling(const uint8_t *code)
{
    const __m256i none = _mm256_setzero_si256();
    signs s = {0, 0, 0};
    for (unsigned at = 0; at < STEP; at += HALF, code += HALF) {
        const __m256i a = LOAD(0), b = LOAD(1);
        const __m256i zeros = OR(OR(LOAD(2), LOAD(3)), OR(LOAD(7), LOAD(15)));
        const __m256i wrong = OR(zeros, OR(AND(a, SPLAT(0x03)), AND(b, SPLAT(0xf0))));
        const __m256i distance = AND(SAME(AND(b, SPLAT(0xc7)), SPLAT(0x05)), avx2_near(LOAD(5)));
        const __m256i entries = _mm256_andnot_si256(SAME(OR(a, b), none), AND(SAME(wrong, none), avx2_near(LOAD(11))));
        s.jumps |= avx2_mask(AND(SAME(AND(a, SPLAT(0xfe)), SPLAT(0xe8)), avx2_near(LOAD(4)))) << at;
        s.data |= avx2_mask(AND(distance, avx2_names_data(a))) << at;
        s.entries |= avx2_mask(entries) << at;
    }
    return s;
}

FN inline void avx2_put(uint8_t *bytes, uint64_t which, uint8_t with)
{
    const __m256i bit = _mm256_set1_epi64x((long long)UINT64_C(0x8040201008040201));
    const __m256i of = _mm256_setr_epi64x(0, INT64_C(0x0101010101010101), INT64_C(0x0202020202020202),
                                          INT64_C(0x0303030303030303));
    if (!which)
        return;
    for (unsigned at = 0; at < STEP; at += HALF) {
        __m256i *const here = (__m256i *)(void *)(bytes + at);
        const __m256i chosen = _mm256_shuffle_epi8(_mm256_set1_epi32((int)(uint32_t)(which >> at)), of);
        const __m256i mask = SAME(AND(chosen, bit), bit);
        _mm256_storeu_si256(here, _mm256_blendv_epi8(_mm256_loadu_si256(here), SPLAT(with), mask));
    }
}

#include "x86/vector_body.h"

static int usable(void)
{
    return rdc_cpu_has(RDC_CPU_AVX2 | RDC_CPU_BMI | RDC_CPU_BMI2 | RDC_CPU_POPCNT);
}

const rdc_code_variant rdc_code_avx2 = {usable, avx2_bits, avx2_mask_fields, avx2_overwrite_marked, avx2_count, avx2_list};

#endif
