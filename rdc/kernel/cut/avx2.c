/*
 * avx2.c - the vector variant in AVX2 with PCLMULQDQ: 32 positions at a time.
 *
 * With GFNI, which desktop CPUs without AVX-512 have from Alder Lake on, a product with a constant is one bit matrix.
 */
#include "cpu.h"
#include "cut/variant.h"

#if defined(__x86_64__)

#include "cut/low_rank_x86.h"

#define SPARSE 16
#define V __m256i
#define W 32
#define LOAD(q) _mm256_loadu_si256((const __m256i *)(const void *)(q))
#define STORE(q, v) _mm256_storeu_si256((__m256i *)(void *)(q), v)
#define SPLAT(byte) _mm256_set1_epi8((char)(byte))
#define XOR(a, b) _mm256_xor_si256(a, b)
/* Each half is moved by itself; what it moves in is the half before it. */
#define MOVE(k, v, before) _mm256_alignr_epi8(v, _mm256_permute2x128_si256(before, v, 0x21), 16 - (k))
#define DOWN(k, v) avx2_down_##k(v)
#define MIN(a, b) _mm256_min_epu8(a, b)
#define AT_MOST(v, limit) \
    ((uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(v, limit), v)))

#define avx2_down_1(v) _mm256_alignr_epi8(avx2_down_16(v), v, 1)
#define avx2_down_2(v) _mm256_alignr_epi8(avx2_down_16(v), v, 2)
#define avx2_down_4(v) _mm256_alignr_epi8(avx2_down_16(v), v, 4)
#define avx2_down_8(v) _mm256_alignr_epi8(avx2_down_16(v), v, 8)

/* What the lower half moves in is the upper one. */
__attribute__((target("avx2"))) static inline V avx2_down_16(V v)
{
    return _mm256_permute2x128_si256(v, SPLAT(0xff), 0x21);
}

/* By look-up. */
#define FN __attribute__((target("avx2,bmi,popcnt"))) static inline
#define NAME(f) avx2_##f
#define HALF(k, at) \
    _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(rdc_lead_double[k] + (at))))
#define TABLES                                                                                             \
    const V low1 = HALF(0, 0), high1 = HALF(0, 16), low2 = HALF(1, 0), high2 = HALF(1, 16);                \
    const V low4 = HALF(2, 0), high4 = HALF(2, 16), low8 = HALF(3, 0), high8 = HALF(3, 16);                \
    const V nibble = SPLAT(15);                                                                            \
    (void)low8, (void)high8;
#define PRODUCT(k, v) avx2_product(low##k, high##k, nibble, v)

FN V avx2_product(V low, V high, V nibble, V v)
{
    return XOR(_mm256_shuffle_epi8(low, _mm256_and_si256(v, nibble)),
               _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble)));
}

#include "cut/vector_body.h"

#undef FN
#undef NAME
#undef TABLES
#undef PRODUCT

/* By bit matrix; the constant is the matrix instruction's addend. */
#define FN __attribute__((target("avx2,gfni,bmi,popcnt"))) static inline
#define NAME(f) gfni_##f
#define MATRIX(k) _mm256_set1_epi64x((long long)rdc_lead_matrix[k])
#define TABLES \
    const V matrix1 = MATRIX(0), matrix2 = MATRIX(1), matrix4 = MATRIX(2), matrix8 = MATRIX(3); \
    (void)matrix8;
#define PRODUCT(k, v) _mm256_gf2p8affine_epi64_epi8(v, matrix##k, (k) == 8 ? RDC_LEAD_CONSTANT : 0)

#include "cut/vector_body.h"

__attribute__((target("avx2,pclmul"))) static void lows(const uint8_t *p, const uint16_t *at, size_t count,
                                                      uint64_t *low)
{
    rdc_lows(p, at, count, low, rdc_window_x86);
}

static int usable(void)
{
    return rdc_cpu_has(RDC_CPU_AVX2 | RDC_CPU_PCLMUL | RDC_CPU_BMI | RDC_CPU_POPCNT);
}

static size_t scan(const uint8_t *p, size_t n, unsigned below, uint8_t *lead, uint16_t *at)
{
    return RDC_NEWER && rdc_cpu_has(RDC_CPU_GFNI) ? gfni_scan(p, n, below, lead, at) : avx2_scan(p, n, below, lead, at);
}

const rdc_variant rdc_avx2 = {"avx2", SPARSE, usable, scan, lows, rdc_slide_plain, avx2_stairs, rdc_contenders_plain};

#endif
