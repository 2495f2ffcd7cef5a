/*
 * avx512.c - the vector variant in AVX-512BW: 64 positions at a time.
 *
 * With GFNI and VPCLMULQDQ, which all but the first AVX-512 CPUs have, a product with a constant is one bit matrix, and
 * the eight products of a low() are two instructions. The variant has the same name and the same results without them.
 */
#include "cpu.h"
#include "cut/variant.h"

#if defined(__x86_64__)

#include "cut/low_rank_x86.h"

#define SPARSE 8
#define V __m512i
#define W 64
#define LOAD(q) _mm512_loadu_si512((const void *)(q))
#define STORE(q, v) _mm512_storeu_si512((void *)(q), v)
#define SPLAT(byte) _mm512_set1_epi8((char)(byte))
#define XOR(a, b) _mm512_xor_si512(a, b)
/* Moving by whole words crosses the four lanes in one step; by two bytes it takes the lane before as well. */
#define MOVE(k, v, before) MOVE_##k(v, before)
#define MOVE_2(v, before) _mm512_alignr_epi8(v, _mm512_alignr_epi64(v, before, 6), 14)
#define MOVE_4(v, before) _mm512_alignr_epi32(v, before, 15)
#define MOVE_8(v, before) _mm512_alignr_epi64(v, before, 7)
#define DOWN(k, v) DOWN_##k(v)
#define DOWN_1(v) _mm512_alignr_epi8(DOWN_16(v), v, 1)
#define DOWN_2(v) _mm512_alignr_epi8(DOWN_16(v), v, 2)
#define DOWN_4(v) _mm512_alignr_epi32(SPLAT(0xff), v, 1)
#define DOWN_8(v) _mm512_alignr_epi64(SPLAT(0xff), v, 1)
#define DOWN_16(v) _mm512_alignr_epi64(SPLAT(0xff), v, 2)
#define DOWN_32(v) _mm512_alignr_epi64(SPLAT(0xff), v, 4)
#define MIN(a, b) _mm512_min_epu8(a, b)
#define AT_MOST(v, limit) ((uint64_t)_mm512_cmple_epu8_mask(v, limit))

/* By look-up. */
#define FN __attribute__((target("avx512f,avx512bw,bmi,popcnt"))) static inline
#define NAME(f) avx512_##f
#define HALF(k, at) \
    _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)(rdc_lead_double[k] + (at))))
#define TABLES                                                                                             \
    const V low1 = HALF(0, 0), high1 = HALF(0, 16), low2 = HALF(1, 0), high2 = HALF(1, 16);                \
    const V low4 = HALF(2, 0), high4 = HALF(2, 16), low8 = HALF(3, 0), high8 = HALF(3, 16);                \
    const V nibble = SPLAT(15);                                                                            \
    (void)low8, (void)high8;
#define PRODUCT(k, v) avx512_product(low##k, high##k, nibble, v)

FN V avx512_product(V low, V high, V nibble, V v)
{
    return XOR(_mm512_shuffle_epi8(low, _mm512_and_si512(v, nibble)),
               _mm512_shuffle_epi8(high, _mm512_and_si512(_mm512_srli_epi16(v, 4), nibble)));
}

#include "cut/vector_body.h"

#undef FN
#undef NAME
#undef TABLES
#undef PRODUCT

/* By bit matrix; the constant is the matrix instruction's addend. */
#define MODERN __attribute__((target("avx512f,avx512bw,avx512vbmi2,gfni,bmi,popcnt")))
#define FN MODERN static inline
#define NAME(f) gfni_##f
#define MATRIX(k) _mm512_set1_epi64((long long)rdc_lead_matrix[k])
#define TABLES \
    const V matrix1 = MATRIX(0), matrix2 = MATRIX(1), matrix4 = MATRIX(2), matrix8 = MATRIX(3); \
    (void)matrix8;
#define PRODUCT(k, v) _mm512_gf2p8affine_epi64_epi8(v, matrix##k, (k) == 8 ? RDC_LEAD_CONSTANT : 0)

#define LIST gfni_compress

MODERN static inline uint16_t *gfni_compress(uint16_t *at, size_t base, uint64_t bits)
{
    static const uint16_t ones[32] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
                                      17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
    __m512i first = _mm512_add_epi16(_mm512_loadu_si512(ones), _mm512_set1_epi16((short)base));
    for (int half = 0; half < 64; half += 32) {
        __mmask32 chosen = (__mmask32)(bits >> half);
        unsigned count = (unsigned)__builtin_popcount(chosen);
        __mmask32 selected = (__mmask32)((UINT64_C(1) << count) - 1);
        _mm512_mask_storeu_epi16(at, selected, _mm512_maskz_compress_epi16(chosen, first));
        first = _mm512_add_epi16(first, _mm512_set1_epi16(32));
        at += count;
    }
    return at;
}

#include "cut/vector_body.h"

#define WIDE __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,pclmul,vpclmulqdq,bmi")))

WIDE __attribute__((always_inline)) static inline uint64_t wide_window(const uint8_t *p)
{
    const __m512i words = _mm512_loadu_si512(p - RDC_LOW_WINDOW), fold = _mm512_loadu_si512(rdc_low_fold);
    __m512i four = _mm512_xor_si512(_mm512_clmulepi64_epi128(words, fold, 0x00),
                                    _mm512_clmulepi64_epi128(words, fold, 0x11));
    __m256i two = _mm256_xor_si256(_mm512_castsi512_si256(four), _mm512_extracti64x4_epi64(four, 1));
    return rdc_reduce_x86(_mm_xor_si128(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1)));
}

WIDE static void wide_lows(const uint8_t *p, const uint16_t *at, size_t count, uint64_t *low)
{
    rdc_lows(p, at, count, low, wide_window);
}

WIDE static void wide_slide(const uint8_t *p, size_t n, uint64_t *low)
{
    rdc_slide_over(p, n, low, wide_window, 0);
}

/* Eight features a step. Without its two highest bits an image is a product times 4. */
WIDE static size_t wide_contenders(uint64_t reach, uint64_t few, const uint8_t *lead, const uint64_t *low, size_t n,
                                   uint16_t *at)
{
    const __m512i limit_zero = _mm512_set1_epi64((long long)reach), limit_few = _mm512_set1_epi64((long long)few);
    const __m128i four = _mm_set1_epi8(RDC_LEAD_FEW);
    size_t count = 0;

    for (size_t i = 0; i < n; i += 8) {
        const __mmask8 there = (__mmask8)(n - i < 8 ? (1u << (n - i)) - 1 : 0xff);
        const __m128i leads = _mm_maskz_loadu_epi8(there, lead + i);
        const __mmask8 wanted = (__mmask8)_mm_mask_cmplt_epu8_mask(there, leads, four);
        const __mmask8 zero = (__mmask8)_mm_testn_epi8_mask(leads, leads);
        const __m512i limit = _mm512_mask_mov_epi64(limit_few, zero, limit_zero);
        const __m512i x = _mm512_maskz_loadu_epi64(there, low + i);
        unsigned near = 0;
        for (int g = 0; g < RDC_TRAIT_COUNT / 4; g++) {
            const __m512i m = _mm512_set1_epi64((long long)(4 * rdc_trait_multiplier[g]));
            near |= _mm512_mask_cmplt_epu64_mask(wanted, _mm512_mullo_epi64(x, m), limit);
        }
        for (; near; near &= near - 1)
            at[count++] = (uint16_t)(i + 1 + (unsigned)__builtin_ctz(near));
    }
    return count;
}

static int usable(void)
{
    return rdc_cpu_has(RDC_CPU_AVX512F | RDC_CPU_AVX512BW | RDC_CPU_PCLMUL | RDC_CPU_BMI | RDC_CPU_POPCNT);
}

/* What came with GFNI, from Ice Lake and Zen 4 on. */
static int modern(void)
{
    return RDC_NEWER && rdc_cpu_has(RDC_CPU_GFNI | RDC_CPU_VPCLMUL | RDC_CPU_AVX512VL | RDC_CPU_AVX512DQ | RDC_CPU_AVX512VBMI2);
}

static size_t scan(const uint8_t *p, size_t n, unsigned below, uint8_t *lead, uint16_t *at)
{
    return modern() ? gfni_scan(p, n, below, lead, at) : avx512_scan(p, n, below, lead, at);
}

static size_t stairs(const uint8_t *lead, size_t n, uint16_t *at)
{
    return modern() ? gfni_stairs(lead, n, at) : avx512_stairs(lead, n, at);
}

__attribute__((target("avx512f,avx512bw,pclmul"))) static void products(const uint8_t *p, const uint16_t *at,
                                                                         size_t count, uint64_t *low)
{
    rdc_lows(p, at, count, low, rdc_window_x86);
}

static void lows(const uint8_t *p, const uint16_t *at, size_t count, uint64_t *low)
{
    if (modern())
        wide_lows(p, at, count, low);
    else
        products(p, at, count, low);
}

static void slide(const uint8_t *p, size_t n, uint64_t *low)
{
    if (modern())
        wide_slide(p, n, low);
    else
        rdc_slide_plain(p, n, low);
}

static size_t contenders(uint64_t reach, uint64_t few, const uint8_t *lead, const uint64_t *low, size_t n, uint16_t *at)
{
    return modern() ? wide_contenders(reach, few, lead, low, n, at) : rdc_contenders_plain(reach, few, lead, low, n, at);
}

const rdc_variant rdc_avx512 = {"avx512", SPARSE, usable, scan, lows, slide, stairs, contenders};

#endif
