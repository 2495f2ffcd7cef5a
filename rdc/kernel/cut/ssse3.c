/* ssse3.c - the vector variant in SSSE3 with POPCNT: 16 positions at a time; PCLMULQDQ where the CPU has it. */
#include "cpu.h"
#include "cut/variant.h"

#if defined(__x86_64__)

#include "cut/low_rank_x86.h"

#define FN __attribute__((target("ssse3,popcnt"))) static inline
#define NAME(f) ssse3_##f
#define SPARSE 16
#define V __m128i
#define W 16
#define LOAD(q) _mm_loadu_si128((const __m128i *)(const void *)(q))
#define STORE(q, v) _mm_storeu_si128((__m128i *)(void *)(q), v)
#define SPLAT(byte) _mm_set1_epi8((char)(byte))
#define XOR(a, b) _mm_xor_si128(a, b)
#define MOVE(k, v, before) _mm_alignr_epi8(v, before, 16 - (k))
#define DOWN(k, v) _mm_alignr_epi8(_mm_set1_epi8(-1), v, k)
#define MIN(a, b) _mm_min_epu8(a, b)
#define TABLES                                                                                             \
    const V low1 = LOAD(rdc_lead_double[0]), high1 = LOAD(rdc_lead_double[0] + 16);                        \
    const V low2 = LOAD(rdc_lead_double[1]), high2 = LOAD(rdc_lead_double[1] + 16);                        \
    const V low4 = LOAD(rdc_lead_double[2]), high4 = LOAD(rdc_lead_double[2] + 16);                        \
    const V low8 = LOAD(rdc_lead_double[3]), high8 = LOAD(rdc_lead_double[3] + 16);                        \
    const V nibble = SPLAT(15);                                                                            \
    (void)low8, (void)high8;
#define PRODUCT(k, v) ssse3_product(low##k, high##k, nibble, v)
#define AT_MOST(v, limit) ((uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(v, limit), v)))

FN V ssse3_product(V low, V high, V nibble, V v)
{
    return XOR(_mm_shuffle_epi8(low, _mm_and_si128(v, nibble)),
               _mm_shuffle_epi8(high, _mm_and_si128(_mm_srli_epi16(v, 4), nibble)));
}

#include "cut/vector_body.h"

__attribute__((target("ssse3,pclmul"))) static void products(const uint8_t *p, const uint16_t *at, size_t count,
                                                              uint64_t *low)
{
    rdc_lows(p, at, count, low, rdc_window_x86);
}

static void lows(const uint8_t *p, const uint16_t *at, size_t count, uint64_t *low)
{
    if (RDC_NEWER && rdc_cpu_has(RDC_CPU_PCLMUL))
        products(p, at, count, low);
    else
        rdc_plain.lows(p, at, count, low);
}

static int usable(void)
{
    return rdc_cpu_has(RDC_CPU_SSSE3 | RDC_CPU_POPCNT);
}

const rdc_variant rdc_ssse3 = {"ssse3", SPARSE, usable, ssse3_scan, lows, rdc_slide_plain, ssse3_stairs, rdc_contenders_plain};

#endif
