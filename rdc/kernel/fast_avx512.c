/*
 * fast_avx512.c - the vector form in AVX-512BW: 64 positions at a time.
 *
 * With GFNI and VPCLMULQDQ, which all but the first AVX-512 CPUs have, a product with a constant is one bit matrix, and
 * the eight products of a low() are two instructions. The form has the same name and the same results without them.
 */
#include "form.h"

#if defined(__x86_64__)

#include "lowrank_x86.h"

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

#include "fast_body.h"

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
        __mmask32 places = (__mmask32)((UINT64_C(1) << count) - 1);
        _mm512_mask_storeu_epi16(at, places, _mm512_maskz_compress_epi16(chosen, first));
        first = _mm512_add_epi16(first, _mm512_set1_epi16(32));
        at += count;
    }
    return at;
}

#include "fast_body.h"

#define WIDE __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,pclmul,vpclmulqdq")))

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
    rdc_lows(p, at, count, low, wide_window, RDC_SLIDES_A_PRODUCT, 0);
}

/* Eight features a step. Settled samples rarely get smaller: those lanes that would go the scalar way. */
__attribute__((target("avx512f,avx512dq"))) static void wide_sample(rdc_samples *s, const uint64_t *feature,
                                                                     size_t count)
{
    size_t k = rdc_samples_settle(s, feature, count);
    for (; count - k >= 8; k += 8) {
        __m512i x = _mm512_loadu_si512(feature + k);
        __mmask8 smaller = 0;
        for (int g = 0; g < RDC_TRAIT_COUNT / 4; g++) {
            __m512i y = _mm512_mullo_epi64(x, _mm512_set1_epi64((long long)rdc_trait_multiplier[g]));
            __m512i four = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(s->smallest + 4 * g)));
            __m512i smallest = _mm512_permutexvar_epi64(_mm512_srli_epi64(y, 62), four);
            __m512i image = _mm512_srli_epi64(_mm512_slli_epi64(y, 2), 2);
            smaller |= _mm512_cmplt_epu64_mask(image, smallest);
        }
        if (smaller)
            rdc_samples_add(s, feature + k, 8);
    }
    rdc_samples_add(s, feature + k, count - k);
}

static int usable(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("pclmul") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt");
}

/* What came with GFNI, from Ice Lake and Zen 4 on. */
static int modern(void)
{
    return RDC_NEWER && __builtin_cpu_supports("gfni") && __builtin_cpu_supports("vpclmulqdq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vbmi2");
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
    rdc_lows_x86(p, at, count, low, 0);
}

static void lows(const uint8_t *p, const uint16_t *at, size_t count, uint64_t *low)
{
    if (modern())
        wide_lows(p, at, count, low);
    else
        products(p, at, count, low);
}

static void sample(rdc_samples *s, const uint64_t *feature, size_t count)
{
    if (modern())
        wide_sample(s, feature, count);
    else
        rdc_samples_add(s, feature, count);
}

const rdc_form rdc_avx512 = {"avx512", usable, scan, lows, stairs, sample};

#endif
