/*
 * code_blanks.c - x86 machine code without the targets that it names by their distance, and these by themselves.
 *
 * rdc/kernel/pure_code_blanks.py says what counts as a field.
 */
#include "code_blanks.h"

#include <string.h>

#include "code_opcodes.h"

#define FIELD 4

static uint32_t load(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void store(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    at[2] = (uint8_t)(value >> 16);
    at[3] = (uint8_t)(value >> 24);
}

/* Whether four bytes are a distance below 64 MiB, of either sign: the highest is 00 to 03 or FC to FF. */
static inline int near(const uint8_t *field)
{
    return (uint8_t)(field[FIELD - 1] + 4) < 8;
}

/* What seems to have fields: where these begin, and how much from its first byte on it takes up. */
typedef struct {
    size_t field[3], fields, length;
} site;

#define HEAD 16

/* An entry of a table of frames. */
static inline int entry(const uint8_t *code, size_t size, size_t i, site *found)
{
    const uint8_t *e = code + i;
    if (size - i < HEAD + 1)
        return 0;
    /* Most bytes are not the first of such a length. */
    const uint32_t length = load(e);
    if (length & 0xfffff003 || length < 16)
        return 0;
    const uint32_t shared = load(e + 4), range = load(e + 12);
    if (shared & 0xff000003 || !shared || range & 0xfff00000 || !range || !near(e + 8))
        return 0;
    *found = (site){{i + 4, i + 8}, 2, HEAD + 1};
    if (!e[HEAD])
        return 1;
    if (e[HEAD] != FIELD || size - i < HEAD + 1 + FIELD || !near(e + HEAD + 1))
        return 0;
    found->field[found->fields++] = i + HEAD + 1;
    found->length += FIELD;
    return 1;
}

static inline int instruction(const uint8_t *code, size_t size, size_t i, site *found)
{
    size_t before;
    if ((code[i] & 0xfe) == 0xe8)
        before = 1;
    else if (i + 1 < size && (code[i + 1] & 0xc7) == 0x05 && rdc_names_data[code[i]])
        before = 2;
    else
        return 0;
    if (size - i < before + FIELD || !near(code + i + before))
        return 0;
    *found = (site){{i + before}, 1, before + FIELD};
    return 1;
}

#ifdef __SSE2__
#include <emmintrin.h>
#define STEP 16
#define AHEAD 5 /* bytes behind these that are read */

/* Which of these bytes are 00 to 03 or FC to FF. */
static inline __m128i highest_of_near(const uint8_t *bytes)
{
    const __m128i raised = _mm_add_epi8(_mm_loadu_si128((const __m128i *)bytes), _mm_set1_epi8(4));
    return _mm_cmpeq_epi8(_mm_and_si128(raised, _mm_set1_epi8((char)0xf8)), _mm_setzero_si128());
}

/* Which of so many bytes are a call or a jump, or before a byte that says "at a distance", and then before what is near;
 * or the first of an entry's length: a bit each. Most are none. */
static inline uint32_t telling(const uint8_t *code)
{
    const __m128i zero = _mm_setzero_si128();
    const __m128i a = _mm_loadu_si128((const __m128i *)code), b = _mm_loadu_si128((const __m128i *)(code + 1));
    const __m128i c = _mm_loadu_si128((const __m128i *)(code + 2)), d = _mm_loadu_si128((const __m128i *)(code + 3));
    const __m128i jumps = _mm_cmpeq_epi8(_mm_and_si128(a, _mm_set1_epi8((char)0xfe)), _mm_set1_epi8((char)0xe8));
    const __m128i data = _mm_cmpeq_epi8(_mm_and_si128(b, _mm_set1_epi8((char)0xc7)), _mm_set1_epi8(0x05));
    const __m128i odd = _mm_or_si128(_mm_and_si128(a, _mm_set1_epi8(0x03)), _mm_and_si128(b, _mm_set1_epi8((char)0xf0)));
    const __m128i none = _mm_cmpeq_epi8(_mm_or_si128(a, b), zero);
    const __m128i head = _mm_cmpeq_epi8(_mm_or_si128(odd, _mm_or_si128(_mm_or_si128(c, d), none)), zero);
    const __m128i near_jumps = _mm_and_si128(jumps, highest_of_near(code + 4));
    const __m128i near_data = _mm_and_si128(data, highest_of_near(code + 5));
    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(near_jumps, near_data), head));
}
#else
#define STEP 1
#define AHEAD 0

static inline uint32_t telling(const uint8_t *code)
{
    (void)code;
    return 1;
}
#endif

typedef struct {
    size_t at;      /* the next places to look at */
    uint32_t bits;  /* of those before */
    size_t end;     /* of all that seemed to have fields */
} search;

/* The next place where something may begin, or `size`. */
static inline size_t next_place(search *s, const uint8_t *code, size_t size)
{
    while (!s->bits) {
        if (s->at >= size)
            return size;
        if (s->at + STEP + AHEAD <= size) {
            s->bits = telling(code + s->at);
            s->at += STEP;
        } else {
            s->at++;
            return s->at - 1;
        }
    }
    const size_t place = s->at - STEP + (size_t)__builtin_ctz(s->bits);
    s->bits &= s->bits - 1;
    return place;
}

/* The next that has its fields; whether there is one. */
static inline int next_site(search *s, const uint8_t *code, size_t size, site *found)
{
    for (size_t i; (i = next_place(s, code, size)) < size;) {
        if (!entry(code, size, i, found) && !instruction(code, size, i, found))
            continue;
        const int alone = i >= s->end;
        if (s->end < i + found->length)
            s->end = i + found->length;
        if (alone)
            return 1;
    }
    return 0;
}

static void fill(uint8_t *bytes, const site *where, uint8_t with)
{
    for (size_t i = 0; i < where->fields; i++)
        memset(bytes + where->field[i], with, FIELD);
}

void rdc_target_mask(const uint8_t *code, size_t size, uint8_t *mask)
{
    search s = {0, 0, 0};
    site found;
    memset(mask, 0, size);
    while (next_site(&s, code, size, &found))
        fill(mask, &found, 0xff);
}

size_t rdc_blank_targets(uint8_t *code, size_t size, uint8_t blank)
{
    search s = {0, 0, 0};
    site found, last = {.fields = 0};
    size_t count = 0;
    /* What the search still looks at is no earlier than what it found last: of that the fields go later. */
    while (next_site(&s, code, size, &found)) {
        fill(code, &last, blank);
        last = found;
        count += found.fields;
    }
    fill(code, &last, blank);
    return count;
}

size_t rdc_masked(const uint8_t *mask, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += mask[i] != 0;
    return count;
}

/* The next run of the mask: from *start on, how long it is, or 0. */
static size_t next_run(const uint8_t *mask, size_t size, size_t *start)
{
    size_t i = *start;
    while (i < size && !mask[i])
        i++;
    *start = i;
    while (i < size && mask[i])
        i++;
    return i - *start;
}

void rdc_take_targets(const uint8_t *code, const uint8_t *mask, size_t size, uint64_t offset, uint8_t *taken)
{
    for (size_t i = 0, length; (length = next_run(mask, size, &i)); i += length, taken += length) {
        memcpy(taken, code + i, length);
        if (length == 2 * FIELD)
            store(taken, (uint32_t)(offset + i) - load(taken));
        if (length == FIELD || length == 2 * FIELD)
            store(taken + length - FIELD, load(taken + length - FIELD) + (uint32_t)(offset + i + length));
    }
}

void rdc_place_targets(const uint8_t *mask, size_t size, uint64_t offset, const uint8_t *taken, uint8_t *image)
{
    for (size_t i = 0, length; (length = next_run(mask, size, &i)); i += length, taken += length) {
        uint8_t *to = image + i;
        memcpy(to, taken, length);
        if (length == 2 * FIELD)
            store(to, (uint32_t)(offset + i) - load(to));
        if (length == FIELD || length == 2 * FIELD)
            store(to + length - FIELD, load(to + length - FIELD) - (uint32_t)(offset + i + length));
    }
}

void rdc_overlay(uint8_t *content, const uint8_t *image, const uint8_t *mask, size_t size)
{
    for (size_t i = 0; i < size; i++)
        content[i] = mask[i] ? image[i] : content[i];
}
