/* x86.h - one block's value by carry-less multiplication, sixteen bytes a step, of long ones four times as many. */
#ifndef RDC_BLOCK_X86_H
#define RDC_BLOCK_X86_H

#include <immintrin.h>

#include "search/variant.h"

#define RDC_CARRYLESS __attribute__((target("pclmul,ssse3,sse4.1"))) static inline

/* The first byte is the highest. */
RDC_CARRYLESS __m128i rdc_load_highest_first(const uint8_t *p)
{
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)p),
                            _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

/* u x^64 + l times x^n, of degrees below 128; `powers` has x^(n + 64) above x^n, mod p. */
RDC_CARRYLESS __m128i rdc_moved(__m128i v, __m128i powers)
{
    return _mm_xor_si128(_mm_clmulepi64_si128(v, powers, 0x00), _mm_clmulepi64_si128(v, powers, 0x11));
}

/* From this many bytes on, four independent chains of steps are faster. */
#define RDC_FOUR_FROM 256

/* Of u x^64 + l the product with x^128 is u x^192 + l x^128; the bytes that do not fill a step come first, as the lower end
 * of a word whose other bytes are zeros. */
RDC_CARRYLESS uint64_t rdc_value_x86(const rdc_block_key *key, const uint8_t *data, size_t length)
{
    if (length < 16)
        return scaled_value(key, plain_value(key, data, length));
    static const uint8_t zeros_first[32] = {[0 ... 15] = 0x80, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const size_t rest = length % 16;
    const __m128i powers = _mm_set_epi64x((long long)key->x192, (long long)key->x128);
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)data);
    /* Byte i of the word is byte i - (16 - rest) of the data. */
    v = _mm_shuffle_epi8(v, _mm_loadu_si128((const __m128i *)(const void *)(zeros_first + rest)));
    v = _mm_shuffle_epi8(v, _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    size_t at = rest;
    if (length - at >= RDC_FOUR_FROM) {
        const __m128i far = _mm_set_epi64x((long long)key->x576, (long long)key->x512);
        __m128i chain[4];
        for (; (length - at) % 64; at += 16)
            v = _mm_xor_si128(rdc_moved(v, powers), rdc_load_highest_first(data + at));
        for (int i = 0; i < 4; i++, at += 16)
            chain[i] = rdc_load_highest_first(data + at);
        chain[0] = _mm_xor_si128(chain[0], rdc_moved(v, powers));
        for (; at < length; at += 64)
            for (int i = 0; i < 4; i++)
                chain[i] = _mm_xor_si128(rdc_moved(chain[i], far), rdc_load_highest_first(data + at + 16 * (size_t)i));
        v = chain[0];
        for (int i = 1; i < 4; i++)
            v = _mm_xor_si128(rdc_moved(v, powers), chain[i]);
    }
    for (; at < length; at += 16)
        v = _mm_xor_si128(rdc_moved(v, powers), rdc_load_highest_first(data + at));
    const uint64_t low = (uint64_t)_mm_cvtsi128_si64(v), high = (uint64_t)_mm_extract_epi64(v, 1);
    return scaled_value(key, by_bytes(key->reduce, high) ^ low);
}

#endif
