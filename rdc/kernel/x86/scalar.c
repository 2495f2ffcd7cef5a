/* scalar.c - the search for displacement fields with baseline instructions of the architecture. */
#include "x86/variant.h"

#define FN static
#define NAME(f) plain_##f

#ifdef __SSE2__
#include <emmintrin.h>

/* Returns which of the marked bytes are opcodes with a data operand. */
static inline uint64_t named(const uint8_t *code, uint64_t marked)
{
    uint64_t found = 0;
    for (; marked; marked &= marked - 1)
        found |= (uint64_t)rdc_names_data[code[__builtin_ctzll(marked)]] << __builtin_ctzll(marked);
    return found;
}

/* Returns which of these bytes are 00 to 03 or FC to FF. */
static inline __m128i highest_of_near(const uint8_t *bytes)
{
    const __m128i raised = _mm_add_epi8(_mm_loadu_si128((const __m128i *)bytes), _mm_set1_epi8(4));
    return _mm_cmpeq_epi8(_mm_and_si128(raised, _mm_set1_epi8((char)0xf8)), _mm_setzero_si128());
}

static inline signs plain_telling(const uint8_t *code)
{
    const __m128i zero = _mm_setzero_si128();
    signs s = {0, 0, 0};
    for (unsigned at = 0; at < STEP; at += 16, code += 16) {
        const __m128i a = _mm_loadu_si128((const __m128i *)code), b = _mm_loadu_si128((const __m128i *)(code + 1));
        const __m128i c = _mm_loadu_si128((const __m128i *)(code + 2)), d = _mm_loadu_si128((const __m128i *)(code + 3));
        const __m128i jumps = _mm_cmpeq_epi8(_mm_and_si128(a, _mm_set1_epi8((char)0xfe)), _mm_set1_epi8((char)0xe8));
        const __m128i data = _mm_cmpeq_epi8(_mm_and_si128(b, _mm_set1_epi8((char)0xc7)), _mm_set1_epi8(0x05));
        const __m128i odd =
            _mm_or_si128(_mm_and_si128(a, _mm_set1_epi8(0x03)), _mm_and_si128(b, _mm_set1_epi8((char)0xf0)));
        const __m128i none = _mm_cmpeq_epi8(_mm_or_si128(a, b), zero);
        const __m128i highest = _mm_or_si128(_mm_loadu_si128((const __m128i *)(code + 7)),
                                             _mm_loadu_si128((const __m128i *)(code + 15)));
        const __m128i zeros = _mm_or_si128(_mm_or_si128(c, d), highest);
        const __m128i entries = _mm_and_si128(_mm_cmpeq_epi8(_mm_or_si128(_mm_or_si128(odd, none), zeros), zero),
                                              highest_of_near(code + 11));
        s.jumps |= (uint64_t)_mm_movemask_epi8(_mm_and_si128(jumps, highest_of_near(code + 4))) << at;
        s.data |= (uint64_t)_mm_movemask_epi8(_mm_and_si128(data, highest_of_near(code + 5))) << at;
        s.entries |= (uint64_t)_mm_movemask_epi8(entries) << at;
    }
    s.data = named(code - STEP, s.data);
    return s;
}
#else
static inline signs plain_telling(const uint8_t *code)
{
    signs s = {0, 0, 0};
    for (unsigned at = 0; at < STEP; at++, code++) {
        const uint64_t jump = (code[0] & 0xfe) == 0xe8 && near(code + 1);
        const uint64_t data = (code[1] & 0xc7) == 0x05 && near(code + 2) && rdc_names_data[code[0]];
        s.jumps |= jump << at;
        s.data |= data << at;
        const uint64_t length = !(code[0] & 3) && !(code[1] & 0xf0) && !code[2] && !code[3] && (code[0] || code[1]);
        s.entries |= (length && !code[7] && !code[15] && near(code + 8)) << at;
    }
    return s;
}
#endif

static inline void plain_put(uint8_t *bytes, uint64_t which, uint8_t with)
{
    while (which) {
        /* Whole fields, but where they are cut. */
        const unsigned at = (unsigned)__builtin_ctzll(which), whole = (which >> at & 0xf) == 0xf;
        if (whole)
            memset(bytes + at, with, FIELD);
        else
            bytes[at] = with;
        which &= ~((whole ? UINT64_C(0xf) : 1) << at);
    }
}

#include "x86/vector_body.h"

static int usable(void)
{
    return 1;
}

const rdc_code_variant rdc_code_plain = {usable, plain_bits, plain_mask_fields, plain_overwrite_marked, plain_count, plain_list};
