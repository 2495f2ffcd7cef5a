/*
 * low_rank_x86.h - low() by carry-less multiplication (PCLMULQDQ): a window in ten products, no look-ups.
 *
 * Reflected words: bit i of a word is the coefficient of x^(63 - i), of 128 bits that of x^(127 - i); so the product
 * instruction gives A * B * x. With the multipliers x^(64 (7 - j) + 63) the sum of the eight products is
 *     V = x^64 * (the window's polynomial)  modulo P, in fewer than 128 coefficients,
 * in the low half of the register H = V / x^64, in the high half L = V mod x^64. Montgomery's reduction gives
 * V * x^-64 mod P exactly: m = L / P mod x^64, then H + m + floor(m (P - x^64) / x^64); scripts/kernel_tables.py has
 * the two multipliers. The residue is unique, so this is the fingerprint that scalar.c slides.
 */
#ifndef RDC_LOWRANK_X86_H
#define RDC_LOWRANK_X86_H

#include <immintrin.h>

#include "cut/variant.h"
#include "cut/low_rank_tables.h"

/* V to V * x^-64 mod P, in the low half. */
__attribute__((target("pclmul,sse2"), always_inline)) static inline uint64_t rdc_reduce_x86(__m128i v)
{
    const __m128i multipliers = _mm_loadu_si128((const __m128i *)rdc_low_reduce);
    __m128i m = _mm_xor_si128(_mm_clmulepi64_si128(v, multipliers, 0x01), v); /* in the high half */
    __m128i q = _mm_clmulepi64_si128(m, multipliers, 0x11);
    __m128i sum = _mm_xor_si128(_mm_xor_si128(v, q), _mm_unpackhi_epi64(m, m));
    return (uint64_t)_mm_cvtsi128_si64(sum);
}

/* The fingerprint of the 64 bytes before p. */
__attribute__((target("pclmul,sse2"), always_inline)) static inline uint64_t rdc_window_x86(const uint8_t *p)
{
    __m128i v = _mm_setzero_si128();
    for (int j = 0; j < 8; j += 2) {
        __m128i words = _mm_loadu_si128((const __m128i *)(p - RDC_LOW_WINDOW + 8 * j));
        __m128i fold = _mm_loadu_si128((const __m128i *)(rdc_low_fold + j));
        v = _mm_xor_si128(v, _mm_clmulepi64_si128(words, fold, 0x00));
        v = _mm_xor_si128(v, _mm_clmulepi64_si128(words, fold, 0x11));
    }
    return rdc_reduce_x86(v);
}

#endif
