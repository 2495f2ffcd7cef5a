/* masking.c - masks the displacements of x86 code, and takes them out or puts them back. */
#include "x86/x86.h"

#include "x86/variant.h"

/* Bytes of the comparison with the plain variant: some hundred fields of all kinds. */
#define CHECKED 2048

static int agrees(const rdc_code_variant *variant)
{
    static const uint8_t entry[] = {0x24, 0, 0, 0, 0x40, 1, 0, 0, 4, 0xf0, 0xff, 0xff, 0x17, 0, 1, 0, 4, 0x10, 0x20, 0, 0};
    uint8_t code[3][CHECKED], bits[2][CHECKED / 8];
    for (size_t i = 0; i < CHECKED; i++)
        code[0][i] = i % 7 ? (uint8_t)(i * i >> 4 & 3) : (uint8_t)(0xe8 + (i >> 4 & 1));
    for (size_t i = 0; i + sizeof entry < CHECKED; i += 97)
        memcpy(code[0] + i, entry, sizeof entry);
    memcpy(code[1], code[0], CHECKED);
    memcpy(code[2], code[0], CHECKED);
    rdc_bits here = {bits[0], 0, 0}, plain = {bits[1], 0, 0};
    variant->bits(code[0], CHECKED, &here);
    rdc_code_plain.bits(code[0], CHECKED, &plain);
    const size_t set = rdc_code_plain.count(bits[1], CHECKED);
    rdc_code_plain.overwrite_marked(code[0], bits[1], CHECKED, 0xff);
    variant->overwrite_marked(code[1], bits[1], CHECKED, 0xff);
    return set && variant->mask_fields(code[2], CHECKED, 0xff) * FIELD == set && variant->count(bits[1], CHECKED) == set &&
           !memcmp(bits[0], bits[1], CHECKED / 8) && !memcmp(code[0], code[1], CHECKED) &&
           !memcmp(code[0], code[2], CHECKED);
}

static const rdc_code_variant *variant = &rdc_code_plain;

int rdc_choose_code(const char *kernel)
{
    variant = &rdc_code_plain;
#if defined(__x86_64__)
    if (!strncmp(kernel, "avx", 3) && rdc_code_avx2.usable())
        variant = &rdc_code_avx2;
#else
    (void)kernel;
#endif
    return agrees(variant);
}

void rdc_displacement_bits(const uint8_t *code, size_t size, rdc_bits *bits)
{
    variant->bits(code, size, bits);
}

size_t rdc_mask_displacements(uint8_t *code, size_t size, uint8_t filler)
{
    return variant->mask_fields(code, size, filler);
}

void rdc_overwrite_marked(uint8_t *content, const uint8_t *bits, size_t size, uint8_t filler)
{
    variant->overwrite_marked(content, bits, size, filler);
}

size_t rdc_count_bits(const uint8_t *bits, size_t size)
{
    return variant->count(bits, size);
}

/* Finds the next run up to the end of the bits. Sets its start and returns its length, or 0. */
static size_t next_run(rdc_runs *r, size_t *start)
{
    uint64_t set = 0;
    for (; r->at < r->size; r->at += STEP)
        if ((set = rdc_bits_at(r->of, r->size, r->at)))
            break;
    if (!set)
        return 0;
    *start = r->at += (size_t)__builtin_ctzll(set);
    while (r->at < r->size) {
        const uint64_t unset = ~rdc_bits_at(r->of, r->size, r->at);
        if (unset) {
            r->at += (size_t)__builtin_ctzll(unset);
            break;
        }
        r->at += STEP;
    }
    return r->at - *start;
}

/* Converts between the displacement in a field at `at` of a file and the absolute offset it refers to. */
static inline uint32_t absolute_of(uint32_t distance, uint64_t at)
{
    return distance + (uint32_t)(at + FIELD);
}

static inline uint32_t distance_of(uint32_t absolute, uint64_t at)
{
    return absolute - (uint32_t)(at + FIELD);
}

size_t rdc_take_displacements(uint8_t *code, const uint8_t *bits, size_t size, uint64_t offset, uint8_t filler, uint8_t *taken)
{
    const uint8_t *const first = taken;
    const uint32_t fillers = UINT32_C(0x01010101) * filler;
    rdc_runs r = {bits, size, 0};
    for (;;) {
        uint32_t starts[RDC_LISTED + UNSEEN];
        const size_t count = variant->list(&r, starts);
        for (size_t j = 0; j < count; j++, taken += FIELD) {
            const size_t i = starts[j];
            rdc_store32(taken, absolute_of(rdc_load32(code + i), offset + i));
            rdc_store32(code + i, fillers);
        }
        /* The next word may hold anything; lists continue behind it. */
        const size_t behind = r.at + STEP;
        size_t i;
        do {
            const size_t length = next_run(&r, &i);
            if (!length)
                return (size_t)(taken - first);
            memcpy(taken, code + i, length);
            memset(code + i, filler, length);
            if (length == FIELD)
                rdc_store32(taken, absolute_of(rdc_load32(taken), offset + i));
            if (length == 2 * FIELD) {
                rdc_store32(taken, (uint32_t)(offset + i) - rdc_load32(taken));
                rdc_store32(taken + FIELD, absolute_of(rdc_load32(taken + FIELD), offset + i + FIELD));
            }
            taken += length;
        } while (r.at < behind);
    }
}

/* Writes those of `count` bytes at `at` of the file that lie in the content. */
static inline void put(rdc_content *content, uint64_t at, const uint8_t *bytes, size_t count)
{
    const uint64_t end = content->start + content->size;
    const uint64_t first = at > content->start ? at : content->start, stop = at + count < end ? at + count : end;
    if (first >= stop)
        return;
    memcpy(content->bytes + (first - content->start), bytes + (first - at), (size_t)(stop - first));
    content->put += (size_t)(stop - first);
}

size_t rdc_put_displacements(const uint8_t *bits, size_t size, uint64_t offset, const uint8_t *taken, size_t left,
                       rdc_content *content)
{
    const uint8_t *const first = taken;
    rdc_runs r = {bits, size, 0};
    for (;;) {
        uint32_t starts[RDC_LISTED + UNSEEN];
        uint8_t field[2 * FIELD];
        const size_t fields = variant->list(&r, starts);
        if (fields * FIELD > left)
            return SIZE_MAX;
        left -= fields * FIELD;
        const uint64_t end = content->start + content->size;
        if (fields && offset + starts[0] >= content->start && offset + starts[fields - 1] + FIELD <= end) {
            for (size_t j = 0; j < fields; j++, taken += FIELD) {
                const uint64_t at = offset + starts[j];
                rdc_store32(content->bytes + (at - content->start), distance_of(rdc_load32(taken), at));
            }
            content->put += fields * FIELD;
        } else
            for (size_t j = 0; j < fields; j++, taken += FIELD) {
                rdc_store32(field, distance_of(rdc_load32(taken), offset + starts[j]));
                put(content, offset + starts[j], field, FIELD);
            }
        const size_t behind = r.at + STEP;
        size_t i;
        do {
            const size_t count = next_run(&r, &i);
            const uint64_t at = offset + i;
            if (!count)
                return (size_t)(taken - first);
            if (count > left)
                return SIZE_MAX;
            if (count == FIELD) {
                rdc_store32(field, distance_of(rdc_load32(taken), at));
                put(content, at, field, FIELD);
            } else if (count == 2 * FIELD) {
                rdc_store32(field, (uint32_t)at - rdc_load32(taken));
                rdc_store32(field + FIELD, distance_of(rdc_load32(taken + FIELD), at + FIELD));
                put(content, at, field, count);
            } else
                put(content, at, taken, count);
            taken += count;
            left -= count;
        } while (r.at < behind);
    }
}
