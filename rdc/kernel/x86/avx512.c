/* avx512.c - the search for displacement fields in AVX-512: 64 bytes at a time. */
#include "cpu.h"
#include "x86/variant.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define FN __attribute__((target("avx512f,avx512bw,bmi,bmi2,popcnt"))) static
#define NAME(f) avx512_##f
#define LOAD(at) _mm512_loadu_si512((const void *)(code + (at)))
#define SPLAT(byte) _mm512_set1_epi8((char)(byte))
#define AND(a, b) _mm512_and_si512(a, b)
#define OR(a, b) _mm512_or_si512(a, b)

/* Returns which of these bytes are 00 to 03 or FC to FF. */
FN inline uint64_t avx512_highest_of_near(__m512i bytes)
{
    return _mm512_testn_epi8_mask(_mm512_add_epi8(bytes, SPLAT(4)), SPLAT(0xf8));
}

/* Returns which of these opcodes have a data operand. The low half of a byte selects the set of matching
 * high halves, below 8 or from 8 on; the high half selects one of them. */
FN inline uint64_t avx512_names_data(__m512i bytes)
{
    static const uint8_t low[16] = {0x02, 0x02, 0, 0, 0x20, 0, 0x02, 0x20, 0x24, 0x24, 0, 0x08, 0x20, 0, 0xa4, 0xc4};
    static const uint8_t high[16] = {0, 0, 0, 0x01, 0, 0, 0x08, 0x18, 0, 0x01, 0, 0x01, 0, 0x01, 0, 0x80};
    const __m512i half = AND(bytes, SPLAT(0x0f)), other = AND(_mm512_srli_epi16(bytes, 4), SPLAT(0x07));
    const __m512i bit = _mm512_shuffle_epi8(_mm512_set1_epi64((long long)UINT64_C(0x8040201008040201)), other);
    const __m512i some = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const void *)low)), half);
    const __m512i rest = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const void *)high)), half);
    return _mm512_test_epi8_mask(_mm512_mask_blend_epi8(_mm512_movepi8_mask(bytes), some, rest), bit);
}

FN inline signs avx512_telling(const uint8_t *code)
{
    const __m512i a = LOAD(0), b = LOAD(1), both = OR(a, b);
    const __m512i zeros = OR(OR(LOAD(2), LOAD(3)), OR(LOAD(7), LOAD(15)));
    const __m512i odd = OR(AND(a, SPLAT(0x03)), AND(b, SPLAT(0xf0))), wrong = OR(zeros, odd);
    return (signs){
        _mm512_cmpeq_epi8_mask(AND(a, SPLAT(0xfe)), SPLAT(0xe8)) & avx512_highest_of_near(LOAD(4)),
        _mm512_cmpeq_epi8_mask(AND(b, SPLAT(0xc7)), SPLAT(0x05)) & avx512_highest_of_near(LOAD(5)) & avx512_names_data(a),
        _mm512_testn_epi8_mask(wrong, wrong) & _mm512_test_epi8_mask(both, both) & avx512_highest_of_near(LOAD(11)),
    };
}

FN inline void avx512_put(uint8_t *bytes, uint64_t which, uint8_t with)
{
    _mm512_mask_storeu_epi8(bytes, which, SPLAT(with));
}

#include "x86/vector_body.h"

static int usable(void)
{
    return rdc_cpu_has(RDC_CPU_AVX512F | RDC_CPU_AVX512BW | RDC_CPU_BMI | RDC_CPU_BMI2 | RDC_CPU_POPCNT);
}

const rdc_code_variant rdc_code_avx512 = {"avx512", usable, avx512_bits, avx512_mask_fields, avx512_overwrite_marked, avx512_count, avx512_list};

#endif
