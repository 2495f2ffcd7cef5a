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

/* Bytes before the field of what seems to have one at `i`, or 0. */
static inline size_t seeming(const uint8_t *code, size_t size, size_t i)
{
    size_t before;
    if ((code[i] & 0xfe) == 0xe8)
        before = 1;
    else if (i + 1 < size && (code[i + 1] & 0xc7) == 0x05 && rdc_names_data[code[i]])
        before = 2;
    else
        return 0;
    /* Of a distance below 64 MiB, of either sign, the highest byte is 00 to 03 or FC to FF. */
    return size - i >= before + FIELD && (uint8_t)(code[i + before + FIELD - 1] + 4) < 8 ? before : 0;
}

typedef struct {
    size_t at;  /* the next place to look at */
    size_t end; /* of all that seemed to have a field */
} search;

/* The next field's first byte, or `size`. */
static inline size_t next_field(search *s, const uint8_t *code, size_t size)
{
    size_t i = s->at;
    while (i < size) {
        const size_t before = seeming(code, size, i);
        if (!before) {
            i++;
            continue;
        }
        const int alone = i >= s->end;
        if (s->end < i + before + FIELD)
            s->end = i + before + FIELD;
        i++;
        if (alone) {
            s->at = i;
            return i - 1 + before;
        }
    }
    s->at = i;
    return size;
}

void rdc_target_mask(const uint8_t *code, size_t size, uint8_t *mask)
{
    search s = {0, 0};
    memset(mask, 0, size);
    for (size_t field; (field = next_field(&s, code, size)) < size;)
        memset(mask + field, 0xff, FIELD);
}

size_t rdc_blank_targets(uint8_t *code, size_t size, uint8_t blank)
{
    search s = {0, 0};
    size_t count = 0, last = size;
    /* What the search looks at behind a field is no earlier than it: the next one is found before this one goes. */
    for (size_t field; (field = next_field(&s, code, size)) < size; last = field, count++)
        if (last < size)
            memset(code + last, blank, FIELD);
    if (last < size)
        memset(code + last, blank, FIELD);
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
        if (length == FIELD)
            store(taken, load(code + i) + (uint32_t)(offset + i + FIELD));
        else
            memcpy(taken, code + i, length);
    }
}

void rdc_place_targets(const uint8_t *mask, size_t size, uint64_t offset, const uint8_t *taken, uint8_t *image)
{
    for (size_t i = 0, length; (length = next_run(mask, size, &i)); i += length, taken += length) {
        if (length == FIELD)
            store(image + i, load(taken) - (uint32_t)(offset + i + FIELD));
        else
            memcpy(image + i, taken, length);
    }
}

void rdc_overlay(uint8_t *content, const uint8_t *image, const uint8_t *mask, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (mask[i])
            content[i] = image[i];
}
