/* json_lines.c - the texts of lines that are JSON objects.
 *
 * A line is taken if it is an object without anything rare: then it has been read to its end, by the grammar of
 * Python's module json, and its text is what that module finds. Every other line is left to that module, which also says
 * what is wrong with it. So only speed depends on what is rare here. */
#include "lines/json_lines.h"

#include <string.h>

#include "platform.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define DEPTH 32        /* of nested values */
#define NUMBER_BYTES 64 /* Python has limits for longer ones */

typedef struct {
    const uint8_t *at, *end; /* of the line */
} rdc_line;

/* Copies plain text: until a quote, a backslash, a control character, a byte that is no ASCII, or the last few bytes.
 * Returns how many bytes. A byte of any kind may follow them in `to`. */
#if defined(__SSE2__)

static inline size_t copy_plain(const uint8_t *from, size_t size, uint8_t *to)
{
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), space = _mm_set1_epi8(' ');
    size_t at = 0;
    for (; size - at >= 16; at += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(from + at));
        /* Bytes from 0x80 on are negative. */
        const __m128i rare = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                                          _mm_cmplt_epi8(bytes, space));
        const unsigned found = (unsigned)_mm_movemask_epi8(rare);
        _mm_storeu_si128((__m128i *)(void *)(to + at), bytes);
        if (found)
            return at + (unsigned)__builtin_ctz(found);
    }
    return at;
}

#else

static inline uint64_t rare_bytes(uint64_t x)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t quote = x ^ 0x22 * ones, backslash = x ^ 0x5c * ones;
    return (((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) | ((x - 0x20 * ones) & ~x) | x) & 0x80 * ones;
}

static inline size_t copy_plain(const uint8_t *from, size_t size, uint8_t *to)
{
    size_t at = 0;
    for (; size - at >= 8; at += 8) {
        const uint64_t word = rdc_load64(from + at), rare = rare_bytes(word);
        rdc_store64(to + at, word);
        if (rare)
            return at + (unsigned)__builtin_ctzll(rare) / 8;
    }
    return at;
}

#endif

/* The bytes of the character of UTF-8 that begins at `at`, or 0 if there is none. */
static size_t character_bytes(const uint8_t *at, const uint8_t *end)
{
    const size_t left = (size_t)(end - at);
    const unsigned lead = at[0];
    if (lead >= 0xc2 && lead < 0xe0)
        return left > 1 && at[1] >> 6 == 2 ? 2 : 0;
    if (lead >= 0xe0 && lead < 0xf0) {
        if (left < 3 || at[1] >> 6 != 2 || at[2] >> 6 != 2)
            return 0;
        return (lead == 0xe0 && at[1] < 0xa0) || (lead == 0xed && at[1] >= 0xa0) ? 0 : 3;
    }
    if (lead >= 0xf0 && lead < 0xf5) {
        if (left < 4 || at[1] >> 6 != 2 || at[2] >> 6 != 2 || at[3] >> 6 != 2)
            return 0;
        return (lead == 0xf0 && at[1] < 0x90) || (lead == 0xf4 && at[1] >= 0x90) ? 0 : 4;
    }
    return 0;
}

/* Four hexadecimal digits, or -1. */
static int32_t hexadecimal(const uint8_t *at, const uint8_t *end)
{
    int32_t code = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const unsigned digit = at[i] - 0u - '0', letter = (at[i] | 0x20u) - 'a';
        if (digit > 9 && letter > 5)
            return -1;
        code = code << 4 | (int32_t)(digit > 9 ? letter + 10 : digit);
    }
    return code;
}

static uint8_t *put_character(uint8_t *to, uint32_t code)
{
    if (code < 0x80) {
        *to++ = (uint8_t)code;
    } else if (code < 0x800) {
        *to++ = (uint8_t)(0xc0 | code >> 6);
        *to++ = (uint8_t)(0x80 | (code & 63));
    } else if (code < 0x10000) {
        *to++ = (uint8_t)(0xe0 | code >> 12);
        *to++ = (uint8_t)(0x80 | (code >> 6 & 63));
        *to++ = (uint8_t)(0x80 | (code & 63));
    } else {
        *to++ = (uint8_t)(0xf0 | code >> 18);
        *to++ = (uint8_t)(0x80 | (code >> 12 & 63));
        *to++ = (uint8_t)(0x80 | (code >> 6 & 63));
        *to++ = (uint8_t)(0x80 | (code & 63));
    }
    return to;
}

/* Takes the escape behind a backslash. Returns the end of what it wrote, or NULL for a bad one and half of a pair. */
static uint8_t *take_escape(rdc_line *line, uint8_t *to)
{
    static const uint8_t letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (line->at == line->end)
        return NULL;
    const uint8_t letter = *line->at++;
    if (letter != 'u') {
        const uint8_t *found = memchr(letters, letter, sizeof letters - 1);
        if (!found)
            return NULL;
        *to++ = meanings[found - letters];
        return to;
    }
    int32_t code = hexadecimal(line->at, line->end);
    if (code < 0 || (code >= 0xdc00 && code < 0xe000))
        return NULL;
    line->at += 4;
    if (code >= 0xd800 && code < 0xdc00) {
        if (line->end - line->at < 6 || line->at[0] != '\\' || line->at[1] != 'u')
            return NULL;
        const int32_t second = hexadecimal(line->at + 2, line->end);
        if (second < 0xdc00 || second >= 0xe000)
            return NULL;
        code = 0x10000 + ((code & 0x3ff) << 10 | (second & 0x3ff));
        line->at += 6;
    }
    return put_character(to, (uint32_t)code);
}

/* Takes a string behind its first quote, without escapes, and writes it to `to`, which has room for the rest of the
 * line. Returns the end of what it wrote, or NULL. */
static uint8_t *take_string(rdc_line *line, uint8_t *to)
{
    const uint8_t *at = line->at, *const end = line->end;
    for (;;) {
        const size_t plain = copy_plain(at, (size_t)(end - at), to);
        at += plain;
        to += plain;
        if (at == end)
            return NULL;
        const uint8_t byte = *at;
        if (byte >= 0x80) {
            const size_t size = character_bytes(at, end);
            if (!size)
                return NULL;
            for (size_t i = 0; i < size; i++)
                *to++ = *at++;
        } else if (byte == '"') {
            line->at = at + 1;
            return to;
        } else if (byte == '\\') {
            line->at = at + 1;
            to = take_escape(line, to);
            if (!to)
                return NULL;
            at = line->at;
        } else if (byte < 0x20) {
            return NULL;
        } else {
            *to++ = byte;
            at++;
        }
    }
}

static inline int skip_spaces(rdc_line *line)
{
    while (line->at < line->end && (*line->at == ' ' || *line->at == '\t' || *line->at == '\r'))
        line->at++;
    return line->at < line->end ? *line->at : -1;
}

static size_t digits(rdc_line *line)
{
    const uint8_t *start = line->at;
    while (line->at < line->end && *line->at - 0u - '0' < 10)
        line->at++;
    return (size_t)(line->at - start);
}

static int next_is(rdc_line *line, uint8_t byte)
{
    if (line->at == line->end || *line->at != byte)
        return 0;
    line->at++;
    return 1;
}

static int skip_number(rdc_line *line)
{
    const uint8_t *start = line->at;
    next_is(line, '-');
    if (!next_is(line, '0') && !digits(line))
        return -1;
    if (next_is(line, '.') && !digits(line))
        return -1;
    if (next_is(line, 'e') || next_is(line, 'E')) {
        if (!next_is(line, '+'))
            next_is(line, '-');
        if (!digits(line))
            return -1;
    }
    return line->at - start <= NUMBER_BYTES ? 0 : -1;
}

static int skip_word(rdc_line *line, const char *word)
{
    const size_t size = strlen(word);
    if ((size_t)(line->end - line->at) < size || memcmp(line->at, word, size))
        return -1;
    line->at += size;
    return 0;
}

/* Skips a value of any kind. `room` is overwritten with its strings. */
static int skip_value(rdc_line *line, uint8_t *room, int depth)
{
    const int first = skip_spaces(line);
    if (first == '"') {
        line->at++;
        return take_string(line, room) ? 0 : -1;
    }
    if (first == 't' || first == 'f' || first == 'n')
        return skip_word(line, first == 't' ? "true" : first == 'f' ? "false" : "null");
    if (first != '{' && first != '[')
        return first == '-' || (unsigned)first - '0' < 10u ? skip_number(line) : -1;
    const uint8_t close = first == '{' ? '}' : ']';
    if (depth == DEPTH)
        return -1;
    line->at++;
    skip_spaces(line);
    if (next_is(line, close))
        return 0;
    do {
        if (first == '{') {
            skip_spaces(line);
            if (!next_is(line, '"') || !take_string(line, room))
                return -1;
            skip_spaces(line);
            if (!next_is(line, ':'))
                return -1;
        }
        if (skip_value(line, room, depth + 1))
            return -1;
        skip_spaces(line);
    } while (next_is(line, ','));
    return next_is(line, close) ? 0 : -1;
}

/* Takes the object of a line. Returns the end of its text, which begins at `to`, or NULL. */
static uint8_t *take_object(rdc_line *line, const uint8_t *field, size_t size, uint8_t *to)
{
    uint8_t *text_end = NULL;
    skip_spaces(line);
    if (!next_is(line, '{'))
        return NULL;
    do {
        skip_spaces(line);
        if (!next_is(line, '"'))
            return NULL;
        const uint8_t *key = line->at;
        uint8_t *const room = text_end ? text_end : to;
        if (!take_string(line, room))
            return NULL;
        const size_t key_size = (size_t)(line->at - 1 - key);
        if (memchr(key, '\\', key_size))
            return NULL;
        const int is_field = key_size == size && !memcmp(key, field, size);
        if (skip_spaces(line) != ':')
            return NULL;
        line->at++;
        if (is_field) {
            /* A second text of the field is rare. */
            if (text_end || skip_spaces(line) != '"')
                return NULL;
            line->at++;
            text_end = take_string(line, to);
            if (!text_end)
                return NULL;
        } else if (skip_value(line, room, 0)) {
            return NULL;
        }
        skip_spaces(line);
    } while (next_is(line, ','));
    if (!next_is(line, '}'))
        return NULL;
    return skip_spaces(line) < 0 ? text_end : NULL;
}

size_t rdc_count_lines(const uint8_t *block, size_t size)
{
    size_t count = 1;
    for (const uint8_t *at = block, *end = block + size; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++)
        count++;
    return count;
}

size_t rdc_json_texts(const uint8_t *block, size_t size, const uint8_t *field, size_t field_size, size_t most,
                      uint8_t *texts, int64_t *bounds, uint8_t *left)
{
    const uint8_t *at = block, *const end = block + size;
    uint8_t *to = texts;
    *bounds++ = 0;
    for (;;) {
        const uint8_t *stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        rdc_line line = {at, stop ? stop : end};
        uint8_t *const text_end = take_object(&line, field, field_size, to);
        const int taken = text_end && (size_t)(text_end - to) <= most;
        *left++ = !taken;
        to = taken ? text_end : to;
        *bounds++ = to - texts;
        if (!stop)
            return (size_t)(to - texts);
        at = stop + 1;
    }
}
