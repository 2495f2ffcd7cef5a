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
    const uint8_t *at, *end; /* of the lines from this one on */
} rdc_line;

#define BLOCK RDC_JSON_BLOCK

/* A bit for each byte of a block that ends plain text: quotes, backslashes, control characters, bytes that are no
 * ASCII. */
#if defined(__SSE2__)

static inline uint64_t rare_bytes(const uint8_t *block)
{
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), space = _mm_set1_epi8(' ');
    uint64_t found = 0;
    for (int at = 0; at < BLOCK; at += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(block + at));
        /* Bytes from 0x80 on are negative. */
        const __m128i rare = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                                          _mm_cmplt_epi8(bytes, space));
        found |= (uint64_t)(unsigned)_mm_movemask_epi8(rare) << at;
    }
    return found;
}

#else

static inline uint64_t rare_bytes(const uint8_t *block)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), low = 0x7f * ones;
    uint64_t found = 0;
    for (int at = 0; at < BLOCK; at += 8) {
        const uint64_t x = rdc_load64(block + at), quote = x ^ 0x22 * ones, backslash = x ^ 0x5c * ones;
        /* Bit 7 of each byte: no sum reaches the next byte. */
        const uint64_t plain = ((quote & low) + low) & ((backslash & low) + low) & ((x & low) + 0x60 * ones);
        found |= (((~plain | x) & 0x80 * ones) >> 7) * UINT64_C(0x0102040810204080) >> 56 << at;
    }
    return found;
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

/* The values of hexadecimal digits plus one; 0 for other bytes. */
static const uint8_t digit_values[256] = {
    ['0'] = 1, ['1'] = 2, ['2'] = 3, ['3'] = 4, ['4'] = 5, ['5'] = 6, ['6'] = 7, ['7'] = 8, ['8'] = 9, ['9'] = 10,
    ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

/* What a letter behind a backslash stands for; 0 for other bytes. */
static const uint8_t meanings[256] = {
    ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t',
};

/* Four hexadecimal digits, or -1. */
static inline int32_t hexadecimal(const uint8_t *at, const uint8_t *end)
{
    int32_t code = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const uint8_t value = digit_values[at[i]];
        if (!value)
            return -1;
        code = code << 4 | (value - 1);
    }
    return code;
}

static inline uint8_t *put_character(uint8_t *to, uint32_t code)
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

/* Takes what follows a backslash and a u. Returns the end of what it wrote, or NULL for a bad escape and half of a
 * pair. */
static inline uint8_t *take_code(rdc_line *line, uint8_t *to)
{
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

typedef struct {
    const uint8_t *at;
    uint8_t *to; /* NULL: the line is left */
} rdc_taken;

/* Takes one character that is not plain, other than a quote. */
static inline rdc_taken take_rare(const uint8_t *at, const uint8_t *end, uint8_t *to)
{
    rdc_taken taken = {at, NULL};
    if (*at == '\\' && end - at > 1) {
        const uint8_t meaning = meanings[at[1]];
        rdc_line line = {at + 2, end};
        *to = meaning;
        taken.to = meaning ? to + 1 : at[1] == 'u' ? take_code(&line, to) : NULL;
        taken.at = line.at;
    } else if (*at >= 0x80) {
        const size_t size = character_bytes(at, end);
        for (size_t i = 0; i < size; i++)
            to[i] = at[i];
        taken.to = size ? to + size : NULL;
        taken.at = at + size;
    }
    return taken;
}

/* Takes a string behind its first quote, without escapes, and writes it to `to`, which has room for the rest of the
 * line and a block. Returns the end of what it wrote, or NULL. */
static uint8_t *take_string(rdc_line *line, uint8_t *to)
{
    rdc_taken taken = {line->at, to};
    const uint8_t *const end = line->end;
    /* What is plain behind each rare byte is copied with a whole block, of which the next rare byte overwrites the rest.
     * So only the number of rare bytes in a block is hard to predict. */
    while (end - taken.at >= 2 * BLOCK) {
        const uint8_t *const block = taken.at;
        uint64_t rare = rare_bytes(block);
        memcpy(taken.to, block, BLOCK);
        while (rare) {
            const uint8_t *const next = block + __builtin_ctzll(rare);
            taken.to += next - taken.at;
            if (*next == '"') {
                line->at = next + 1;
                return taken.to;
            }
            taken = take_rare(next, end, taken.to);
            if (!taken.to)
                return NULL;
            if (taken.at - block >= BLOCK)
                break;
            memcpy(taken.to, taken.at, BLOCK);
            rare &= UINT64_MAX << (taken.at - block);
        }
        if (taken.at - block < BLOCK) {
            taken.to += block + BLOCK - taken.at;
            taken.at = block + BLOCK;
        }
    }
    while (taken.at < end) {
        const uint8_t byte = *taken.at;
        if (byte == '"') {
            line->at = taken.at + 1;
            return taken.to;
        }
        if (byte >= 0x20 && byte < 0x80 && byte != '\\') {
            *taken.to++ = byte;
            taken.at++;
            continue;
        }
        taken = take_rare(taken.at, end, taken.to);
        if (!taken.to)
            return NULL;
    }
    return NULL;
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
    const int behind = skip_spaces(line);
    return behind < 0 || behind == '\n' ? text_end : NULL;
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
        /* No part of an object of one line goes on behind a newline, so the object says where its line ends. */
        rdc_line line = {at, end};
        uint8_t *const text_end = take_object(&line, field, field_size, to);
        const int taken = text_end && (size_t)(text_end - to) <= most;
        const uint8_t *const stop = text_end ? line.at : at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        *left++ = !taken;
        to = taken ? text_end : to;
        *bounds++ = to - texts;
        if (!stop || stop == end)
            return (size_t)(to - texts);
        at = stop + 1;
    }
}
