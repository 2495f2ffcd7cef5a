/* block_x86.h - one block's value by carry-less multiplication, sixteen bytes a step. */
#ifndef RDC_BLOCK_X86_H
#define RDC_BLOCK_X86_H

#include <immintrin.h>

#include "block_form.h"

#define RDC_CARRYLESS __attribute__((target("pclmul,ssse3,sse4.1"))) static inline

/* The first byte is the highest. */
RDC_CARRYLESS __m128i rdc_load_highest_first(const uint8_t *p)
{
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)p),
                            _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

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
    for (size_t at = rest; at < length; at += 16)
        v = _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(v, powers, 0x00), _mm_clmulepi64_si128(v, powers, 0x11)),
                          rdc_load_highest_first(data + at));
    const uint64_t low = (uint64_t)_mm_cvtsi128_si64(v), high = (uint64_t)_mm_extract_epi64(v, 1);
    return scaled_value(key, by_bytes(key->reduce, high) ^ low);
}

/* Tables of a product by half bytes: byte k of a byte's product is half[k][0][its low bits] + half[k][1][its high bits].
 * Row n has the products of n and 16 n; turned, it is the tables. */
static inline void rdc_half_tables(uint8_t half[8][2][16], const uint64_t table[256])
{
    __m128i a[16], b[16];
    for (int n = 0; n < 16; n++)
        a[n] = _mm_set_epi64x((long long)table[16 * n], (long long)table[n]);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 8; i++)
            b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]), b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
        for (int i = 0; i < 8; i++)
            a[2 * i] = _mm_unpacklo_epi8(b[i], b[i + 8]), a[2 * i + 1] = _mm_unpackhi_epi8(b[i], b[i + 8]);
    }
    for (int k = 0; k < 8; k++) {
        _mm_storeu_si128((__m128i *)(void *)half[k][0], a[k]);
        _mm_storeu_si128((__m128i *)(void *)half[k][1], a[8 + k]);
    }
}

#endif
