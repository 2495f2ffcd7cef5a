/* keyed.c - SipHash-2-4: keyed short names of digests, and keyed ranks of a directory's entries. */
#include "hash/keyed.h"

#include <string.h>

#include "hash/sip.h"

void rdc_short_references(const uint8_t *key, const uint8_t *records, size_t count, size_t stride, unsigned width,
                          uint8_t *out)
{
    const rdc_sip keyed = rdc_sip_start(key);

    for (size_t i = 0; i < count; i++) {
        const uint8_t *record = records + i * stride;
        rdc_sip state = keyed;
        for (int word = 0; word < 4; word++)
            rdc_sip_word(&state, rdc_load64(record + 8 * word));
        uint64_t name = rdc_sip_end(&state, 0, 32);
        for (unsigned j = 0; j < width; j++)
            *out++ = (uint8_t)(name >> 8 * j);
    }
}

size_t rdc_count_names(const uint8_t *names, size_t size)
{
    size_t count = 0;
    if (size && names[size - 1])
        return SIZE_MAX;
    for (size_t i = 0; i < size; i++)
        count += !names[i];
    return count;
}

/* Names up to the end of a directory, which is the end of the text or an empty string. */
static size_t directory_end(const uint8_t *text, size_t at, size_t size, size_t *count)
{
    while (at < size && text[at]) {
        at += strlen((const char *)text + at) + 1;
        ++*count;
    }
    return at;
}

size_t rdc_text_ranks(const uint8_t *text, size_t size, const uint8_t *digests, size_t directories, uint8_t *out)
{
    size_t at = 0, count = 0;

    if (size && text[size - 1])
        return SIZE_MAX; /* so that every string below ends within the text */
    for (; directories--; digests += 32) {
        size_t some = 0;
        if (size - at < 2)
            return SIZE_MAX;
        at++; /* `directory_end` stops at a NUL, and the first one is looked at below */
        at += strlen((const char *)text + at) + 1;
        const size_t end = directory_end(text, at, size, &some);
        if (out)
            rdc_name_ranks(digests, text + at, some, out + 8 * count);
        at = end;
        count += some;
    }
    return at == size && (!size || !text[0]) ? count : SIZE_MAX;
}

void rdc_name_ranks(const uint8_t *key, const uint8_t *names, size_t count, uint8_t *out)
{
    const rdc_sip keyed = rdc_sip_start(key);

    while (count--) {
        const size_t length = strlen((const char *)names);
        const uint8_t *at = names, *const tail = names + (length & ~(size_t)7);
        rdc_sip state = keyed;
        uint64_t last = 0;
        for (; at < tail; at += 8)
            rdc_sip_word(&state, rdc_load64(at));
        for (unsigned i = 0; i < length % 8; i++)
            last |= (uint64_t)tail[i] << 8 * i;
        uint64_t rank = rdc_sip_end(&state, last, length);
        for (unsigned i = 0; i < 8; i++)
            *out++ = (uint8_t)(rank >> 8 * i);
        names += length + 1;
    }
}
