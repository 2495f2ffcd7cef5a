/* characters.h - UTF-8 and the pinned tables of Unicode; tests/reference/characters.py defines both. */
#ifndef RDC_CHARACTERS_H
#define RDC_CHARACTERS_H

#include <stddef.h>
#include <stdint.h>

enum { RDC_SEPARATOR, RDC_WORD, RDC_ALONE, RDC_EXTEND };

#define RDC_BAD_CHARACTER 0xfffdu

/* ---- the tables ---- */

#define RDC_CODES 0x110000u
#define RDC_CODES_A_BLOCK 128u
#define RDC_FIRST_SYLLABLE 0xac00u
#define RDC_LAST_SYLLABLE 0xd7a3u

/* Room for the pinned version: 244 blocks that differ and 10,097 parts of foldings. */
#define RDC_BLOCKS 256u
#define RDC_FOLDINGS 10240u

/* What a character is, in an entry and in a part of a folding: its combining class from bit 21 on, its kind from bit 29
 * on. In a part, its code is below, and RDC_LAST is set in the last part of a folding. */
#define RDC_CODE(part) ((part) & 0x1fffff)
#define RDC_ORDER(part) ((part) >> 21 & 0xff)
#define RDC_KIND(part) ((part) >> 29 & 3)
#define RDC_LAST (UINT32_C(1) << 31)

/* In the entry of a character that does not stay as it is: where its folding begins, or one of the two below. */
#define RDC_FOLDS (UINT32_C(1) << 31)
#define RDC_SYLLABLE UINT32_MAX
#define RDC_IGNORED (UINT32_MAX - 1)

extern __attribute__((visibility("hidden"))) uint8_t rdc_character_blocks[];
extern __attribute__((visibility("hidden"))) uint32_t rdc_character_entries[], rdc_character_foldings[];

/* Fills the tables; nothing else here works before. `numbers` are those of rdc/kernel/unicode_data.py. Returns -1 if they
 * are damaged or there is no memory. */
int rdc_read_characters(const uint64_t *numbers, size_t count);

static inline uint32_t rdc_character_entry(uint32_t code)
{
    return rdc_character_entries[rdc_character_blocks[code / RDC_CODES_A_BLOCK] * RDC_CODES_A_BLOCK + code % RDC_CODES_A_BLOCK];
}

/* ---- UTF-8 ---- */

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
