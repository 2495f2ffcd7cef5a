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

void rdc_unpack_mask(const uint8_t *bits, size_t size, uint8_t *mask)
{
    size_t i = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (; i + 8 <= size; i += 8) {
        /* Eight times the bits, of which each byte keeps its own; none of the sums carries into the next byte. */
        const uint64_t own = *bits++ * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
        const uint64_t ones = (own + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 7 & UINT64_C(0x0101010101010101);
        const uint64_t eight = ones * 0xff;
        memcpy(mask + i, &eight, 8);
    }
    bits -= i / 8;
#endif
    for (; i < size; i++)
        mask[i] = (uint8_t)-(bits[i / 8] >> i % 8 & 1);
}

typedef struct {
    size_t at;     /* the first byte not looked at */
    uint64_t bits; /* of the 64 before it that are set, those in no run yet */
} runs;

/* The next run of the mask: where it starts, and how long it is, or 0. */
static inline size_t next_run(runs *r, const uint8_t *mask, size_t size, size_t *start)
{
    while (!r->bits) {
        if (r->at >= size)
            return 0;
        r->bits = set_at(mask, size, r->at);
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
        const uint64_t more = set_at(mask, size, r->at);
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
    for (size_t i, length; (length = next_run(&r, mask, size, &i)); taken += length) {
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

size_t rdc_place_targets(const uint8_t *mask, size_t size, uint64_t offset, const uint8_t *taken, uint8_t *image)
{
    const uint8_t *const first = taken;
    runs r = {0, 0};
    for (size_t i, length; (length = next_run(&r, mask, size, &i)); taken += length) {
        uint8_t *to = image + i;
        if (length == FIELD) {
            store(to, load(taken) - (uint32_t)(offset + i + FIELD));
            continue;
        }
        memcpy(to, taken, length);
        if (length == 2 * FIELD) {
            store(to, (uint32_t)(offset + i) - load(to));
            store(to + FIELD, load(to + FIELD) - (uint32_t)(offset + i + length));
        }
    }
    return (size_t)(taken - first);
}

void rdc_overlay(uint8_t *restrict content, const uint8_t *restrict image, const uint8_t *restrict mask, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const uint8_t shown = (uint8_t)-(mask[i] != 0);
        content[i] = (uint8_t)((content[i] & ~shown) | (image[i] & shown));
    }
}

void rdc_hide(uint8_t *restrict content, const uint8_t *restrict mask, size_t size, uint8_t blank)
{
    for (size_t i = 0; i < size; i++)
        content[i] = mask[i] ? blank : content[i];
}
