/* code_blanks.c - x86 machine code without the targets that it names by their distance, and these by themselves. */
#include "code_blanks.h"

#include "code_form.h"
#include "word_differences.h"

#ifdef __SSE2__
#include <emmintrin.h>

/* Which of 64 bytes are not 0, a bit each. */
static inline uint64_t set_bytes(const uint8_t *bytes)
{
    uint64_t none = 0;
    for (unsigned at = 0; at < STEP; at += 16) {
        const __m128i here = _mm_loadu_si128((const __m128i *)(bytes + at));
        none |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(here, _mm_setzero_si128())) << at;
    }
    return ~none;
}
#else
static inline uint64_t set_bytes(const uint8_t *bytes)
{
    uint64_t set = 0;
    for (unsigned at = 0; at < STEP; at++)
        set |= (uint64_t)(bytes[at] != 0) << at;
    return set;
}
#endif

/* Bytes of the check of a form against the plain one: some hundred fields, of all kinds. */
#define CHECKED 2048

static int agrees(const rdc_code_form *form)
{
    static const uint8_t entry[] = {0x24, 0, 0, 0, 0x40, 1, 0, 0, 4, 0xf0, 0xff, 0xff, 0x17, 0, 1, 0, 4, 0x10, 0x20, 0, 0};
    uint8_t code[CHECKED], mask[2][CHECKED];
    for (size_t i = 0; i < CHECKED; i++)
        code[i] = i % 7 ? (uint8_t)(i * i >> 4 & 3) : (uint8_t)(0xe8 + (i >> 4 & 1));
    for (size_t i = 0; i + sizeof entry < CHECKED; i += 97)
        memcpy(code + i, entry, sizeof entry);
    form->mask(code, CHECKED, mask[0]);
    rdc_code_plain.mask(code, CHECKED, mask[1]);
    return !memcmp(mask[0], mask[1], CHECKED) && rdc_nonzero_bytes(mask[0], CHECKED) &&
           form->blank(code, CHECKED, 0xff) * FIELD == rdc_nonzero_bytes(mask[0], CHECKED);
}

static const rdc_code_form *form = &rdc_code_plain;

int rdc_choose_code(const char *kernel)
{
    form = &rdc_code_plain;
#if defined(__x86_64__)
    if (!strcmp(kernel, rdc_code_avx512.name) && rdc_code_avx512.usable())
        form = &rdc_code_avx512;
#endif
    return agrees(form);
}

void rdc_target_mask(const uint8_t *code, size_t size, uint8_t *mask)
{
    form->mask(code, size, mask);
}

size_t rdc_blank_targets(uint8_t *code, size_t size, uint8_t blank)
{
    return form->blank(code, size, blank);
}

/* Which of the next 64 bytes of `mask` are not 0; of those behind its end none is. */
static inline uint64_t set_at(const uint8_t *mask, size_t size, size_t at)
{
    rdc_fetch_ahead(mask + at);
    if (size - at >= STEP)
        return set_bytes(mask + at);
    uint64_t set = 0;
    for (size_t i = at; i < size; i++)
        set |= (uint64_t)(mask[i] != 0) << (i - at);
    return set;
}

void rdc_pack_mask(const uint8_t *mask, size_t size, uint8_t *bits)
{
    for (size_t at = 0; at < size; at += STEP) {
        const uint64_t set = set_at(mask, size, at);
        const size_t left = (size - at + 7) / 8, count = left < 8 ? left : 8;
        for (size_t i = 0; i < count; i++)
            *bits++ = (uint8_t)(set >> 8 * i);
    }
}

/* 64 bits, or those that are left, from bit `at` on, a multiple of 64, as set_at() has them. */
static inline uint64_t bits_at(const uint8_t *bits, size_t size, size_t at)
{
    const uint8_t *here = bits + at / 8;
    uint64_t set = 0;
    if (size - at >= STEP)
        return (uint64_t)load(here) | (uint64_t)load(here + 4) << 32;
    for (size_t i = 0; i < (size - at) / 8; i++)
        set |= (uint64_t)here[i] << 8 * i;
    return set;
}

size_t rdc_count_bits(const uint8_t *bits, size_t length)
{
    size_t count = 0;
    for (size_t at = 0; at < 8 * length; at += STEP)
        count += (size_t)__builtin_popcountll(bits_at(bits, 8 * length, at));
    return count;
}

typedef struct {
    size_t at;     /* the first byte not looked at */
    uint64_t bits; /* of the 64 before it that are set, those in no run yet */
} runs;

/* set_at() or bits_at(). */
typedef uint64_t next_bits(const uint8_t *mask, size_t size, size_t at);

/* The next run of a mask of `size` bytes or bits: where it starts, and how long it is, or 0. */
static inline size_t next_run(runs *r, const uint8_t *mask, size_t size, next_bits *set, size_t *start)
{
    while (!r->bits) {
        if (r->at >= size)
            return 0;
        r->bits = set(mask, size, r->at);
        r->at += STEP;
    }
    const unsigned bit = (unsigned)__builtin_ctzll(r->bits);
    const uint64_t unset = ~(r->bits >> bit);
    size_t length = unset ? (size_t)__builtin_ctzll(unset) : STEP;
    *start = r->at - STEP + bit;
    if (bit + length < STEP) {
        r->bits = r->bits >> (bit + length) << (bit + length);
        return length;
    }
    r->bits = 0;
    while (r->at < size) {
        const uint64_t more = set(mask, size, r->at);
        r->at += STEP;
        if (~more) {
            const unsigned ends = (unsigned)__builtin_ctzll(~more);
            r->bits = more >> ends << ends;
            return length + ends;
        }
        length += STEP;
    }
    return length;
}

size_t rdc_take_targets(const uint8_t *code, const uint8_t *mask, size_t size, uint64_t offset, uint8_t *taken)
{
    const uint8_t *const first = taken;
    runs r = {0, 0};
    for (size_t i, length; (length = next_run(&r, mask, size, set_at, &i)); taken += length) {
        rdc_fetch_ahead(code + i);
        if (length == FIELD) {
            store(taken, load(code + i) + (uint32_t)(offset + i + FIELD));
            continue;
        }
        memcpy(taken, code + i, length);
        if (length == 2 * FIELD) {
            store(taken, (uint32_t)(offset + i) - load(taken));
            store(taken + FIELD, load(taken + FIELD) + (uint32_t)(offset + i + length));
        }
    }
    return (size_t)(taken - first);
}

/* Puts of `count` bytes that belong at `at` of the file those that do so in the content. */
static inline void put(rdc_content *content, uint64_t at, const uint8_t *bytes, size_t count)
{
    const uint64_t end = content->start + content->size;
    const uint64_t first = at > content->start ? at : content->start, stop = at + count < end ? at + count : end;
    if (first >= stop)
        return;
    memcpy(content->bytes + (first - content->start), bytes + (first - at), (size_t)(stop - first));
    content->put += (size_t)(stop - first);
}

size_t rdc_put_targets(const uint8_t *bits, size_t length, uint64_t offset, const uint8_t *taken, size_t left,
                       rdc_content *content)
{
    const uint8_t *const first = taken;
    runs r = {0, 0};
    for (size_t i, count; (count = next_run(&r, bits, 8 * length, bits_at, &i)); taken += count, left -= count) {
        const uint64_t at = offset + i;
        uint8_t field[2 * FIELD];
        if (count > left)
            return SIZE_MAX;
        if (count == FIELD) {
            store(field, load(taken) - (uint32_t)(at + FIELD));
            if (at >= content->start && at - content->start + FIELD <= content->size) {
                memcpy(content->bytes + (at - content->start), field, FIELD);
                content->put += FIELD;
            } else
                put(content, at, field, FIELD);
        } else if (count == 2 * FIELD) {
            store(field, (uint32_t)at - load(taken));
            store(field + FIELD, load(taken + FIELD) - (uint32_t)(at + count));
            put(content, at, field, count);
        } else
            put(content, at, taken, count);
    }
    return (size_t)(taken - first);
}

void rdc_hide(uint8_t *restrict content, const uint8_t *restrict mask, size_t size, uint8_t blank)
{
    size_t at = 0;
    for (; size - at >= RDC_CACHE_LINE; at += RDC_CACHE_LINE) {
        rdc_fetch_ahead(content + at);
        rdc_fetch_ahead(mask + at);
        for (size_t i = at; i < at + RDC_CACHE_LINE; i++)
            content[i] = mask[i] ? blank : content[i];
    }
    for (; at < size; at++)
        content[at] = mask[at] ? blank : content[at];
}
