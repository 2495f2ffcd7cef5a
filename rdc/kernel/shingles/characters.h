/* characters.h - UTF-8 and the pinned tables of Unicode; tests/reference/characters.py defines both. */
#ifndef RDC_CHARACTERS_H
#define RDC_CHARACTERS_H

#include <stddef.h>
#include <stdint.h>

enum { RDC_SEPARATOR, RDC_WORD, RDC_ALONE, RDC_EXTEND };

#define RDC_BAD_CHARACTER 0xfffdu

typedef struct {
    uint32_t code;
    uint32_t size; /* bytes */
} rdc_character;

/* The character at the start of `size` > 0 bytes. What is no UTF-8 is RDC_BAD_CHARACTER, and as long as Unicode's
 * recommended practice says (the standard's 3.9, table 3-8): up to the first byte that cannot follow. */
static inline rdc_character rdc_character_at(const uint8_t *text, size_t size)
{
    const uint32_t lead = text[0];
    rdc_character found = {RDC_BAD_CHARACTER, 1};
    if (lead < 0x80) {
        found.code = lead;
        return found;
    }
    if (lead < 0xc2 || lead > 0xf4)
        return found;
    const uint32_t more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    uint32_t least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    uint32_t most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    uint32_t code = lead & (0x3fu >> more);
    for (uint32_t i = 1; i <= more; i++, least = 0x80, most = 0xbf) {
        if (i == size || text[i] < least || text[i] > most)
            return found;
        code = code << 6 | (text[i] & 0x3fu);
        found.size = i + 1;
    }
    found.code = code;
    return found;
}

/* Writes a character in UTF-8. Returns its bytes. */
static inline unsigned rdc_put_character(uint32_t code, uint8_t *to)
{
    if (code < 0x80) {
        to[0] = (uint8_t)code;
        return 1;
    }
    const unsigned more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint8_t leads[] = {0, 0xc0, 0xe0, 0xf0};
    for (unsigned i = more; i; i--, code >>= 6)
        to[i] = (uint8_t)(0x80 | (code & 0x3f));
    to[0] = (uint8_t)(leads[more] | code);
    return more + 1;
}

#endif
