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

#endif
