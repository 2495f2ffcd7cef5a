/* character_references.c - text and values of attributes of pages: their character references, and bad UTF-8. */
#include <string.h>

#include "shingles/characters.h"
#include "pages/html_names.h"
#include "pages/html_text.h"

#define LONGEST_NAME 32 /* letters and digits */

static int put(rdc_byte_list *list, const void *bytes, size_t count)
{
    if (list->room - list->count < count && list->grow(list, count))
        return -1;
    if (count)
        memcpy(list->bytes + list->count, bytes, count);
    list->count += count;
    return 0;
}

static int put_code(rdc_byte_list *list, uint32_t code)
{
    uint8_t bytes[4];
    return put(list, bytes, rdc_put_character(code, bytes));
}

/* What numbers from 128 to 159 mean in pages. */
static const uint16_t windows[32] = {
    0x20ac, 0x81, 0x201a, 0x192, 0x201e, 0x2026, 0x2020, 0x2021, 0x2c6, 0x2030, 0x160, 0x2039, 0x152, 0x8d, 0x17d, 0x8f,
    0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x2dc, 0x2122, 0x161, 0x203a, 0x153, 0x9d, 0x17e, 0x178,
};

static int digit_of(uint8_t byte, unsigned base)
{
    if (rdc_html_is_digit(byte))
        return byte - '0';
    const uint8_t low = byte | 0x20;
    return base == 16 && low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/* The bytes of the reference &#..., at the start of `text`; 0 if it is none. */
static size_t number_at(const uint8_t *text, size_t size, uint32_t *code)
{
    const unsigned base = size > 2 && (text[2] | 0x20) == 'x' ? 16 : 10;
    size_t at = base == 16 ? 3 : 2;
    const size_t first = at;
    uint32_t number = 0;
    for (int digit; at < size && (digit = digit_of(text[at], base)) >= 0; at++)
        number = number > 0x10ffff ? number : number * base + (uint32_t)digit;
    if (at == first)
        return 0;
    if (number >= 128 && number < 160)
        number = windows[number - 128];
    *code = !number || number > 0x10ffff || (number >= 0xd800 && number < 0xe000) ? RDC_BAD_CHARACTER : number;
    return at + (at < size && text[at] == ';');
}

/* The entry of exactly this name, or NULL. */
static const rdc_html_name *find_name(const uint8_t *name, size_t size)
{
    size_t low = 0, high = sizeof rdc_html_names / sizeof *rdc_html_names;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const rdc_html_name *entry = rdc_html_names + middle;
        int order = memcmp(entry->name, name, size);
        if (!order)
            order = entry->name[size] != 0;
        if (!order)
            return entry;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* The bytes of the longest name behind the & at the start of `text`, with the &; 0 if there is none. */
static size_t name_at(const uint8_t *text, size_t size, int in_value, const rdc_html_name **found)
{
    size_t stop = 1;
    if (size < 2 || !rdc_html_is_letter(text[1]))
        return 0;
    while (stop < size && stop <= LONGEST_NAME && (rdc_html_is_letter(text[stop]) || rdc_html_is_digit(text[stop])))
        stop++;
    stop += stop < size && text[stop] == ';';
    for (; stop > 1; stop--) {
        if (!(*found = find_name(text + 1, stop - 1)))
            continue;
        if (!in_value || text[stop - 1] == ';' || stop == size)
            return stop;
        const uint8_t next = text[stop];
        return next == '=' || rdc_html_is_letter(next) || rdc_html_is_digit(next) ? 0 : stop;
    }
    return 0;
}

int rdc_html_decode(rdc_byte_list *list, const uint8_t *text, size_t size, int in_value)
{
    for (size_t at = 0, length; at < size; at += length) {
        const uint8_t *next = text + at;
        const size_t left = size - at;
        if (*next == '&') {
            const rdc_html_name *name;
            uint32_t code;
            int failed;
            if (left > 1 && next[1] == '#' && (length = number_at(next, left, &code)))
                failed = put_code(list, code);
            else if ((length = name_at(next, left, in_value, &name)))
                failed = put(list, name->value, strlen(name->value));
            else
                failed = put(list, next, length = 1);
            if (failed)
                return -1;
        } else if (*next >= 0x80) {
            const rdc_character character = rdc_character_at(next, left);
            length = character.size;
            if (put_code(list, character.code))
                return -1;
        } else {
            for (length = 1; length < left && next[length] < 0x80 && next[length] != '&'; length++)
                ;
            if (put(list, next, length))
                return -1;
        }
    }
    return 0;
}
