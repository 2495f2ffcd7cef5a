/*
 * code_form.h - what a form of the search for the fields of x86 machine code must provide, and what all of them share.
 *
 * rdc/kernel/pure_code_blanks.py says what counts as a field. Few bytes seem to have some: vectors look for these, 64
 * bytes at a time, and code_body.h at each of them.
 */
#ifndef RDC_CODE_FORM_H
#define RDC_CODE_FORM_H

#include <string.h>

#include "bits.h"
#include "code_blanks.h"
#include "code_opcodes.h"
#include "fetch_ahead.h"

#define FIELD 4

static inline uint32_t load(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline void store(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    at[2] = (uint8_t)(value >> 16);
    at[3] = (uint8_t)(value >> 24);
}

/* Whether four bytes are a distance below 64 MiB, of either sign: the highest is 00 to 03 or FC to FF. */
static inline int near(const uint8_t *field)
{
    return (uint8_t)(field[FIELD - 1] + 4) < 8;
}

/* What seems to have fields: where the first begins, how many there are (the second is next to the first), where the
 * third begins, and how much from its first byte on it takes up. */
typedef struct {
    size_t field, fields, third, length;
} site;

#define HEAD 16

/* An entry of a table of frames. */
static inline int entry(const uint8_t *code, size_t size, size_t i, site *found)
{
    const uint8_t *e = code + i;
    if (size - i < HEAD + 1)
        return 0;
    /* Most bytes are not the first of such a length. */
    const uint32_t length = load(e);
    if (length & 0xfffff003 || length < 16)
        return 0;
    const uint32_t shared = load(e + 4), range = load(e + 12);
    if (shared & 0xff000003 || !shared || range & 0xfff00000 || !range || !near(e + 8))
        return 0;
    *found = (site){i + 4, 2, 0, HEAD + 1};
    if (!e[HEAD])
        return 1;
    if (e[HEAD] != FIELD || size - i < HEAD + 1 + FIELD || !near(e + HEAD + 1))
        return 0;
    *found = (site){i + 4, 3, i + HEAD + 1, HEAD + 1 + FIELD};
    return 1;
}

static inline int instruction(const uint8_t *code, size_t size, size_t i, site *found)
{
    size_t before;
    if ((code[i] & 0xfe) == 0xe8)
        before = 1;
    else if (i + 1 < size && (code[i + 1] & 0xc7) == 0x05 && rdc_names_data[code[i]])
        before = 2;
    else
        return 0;
    if (size - i < before + FIELD || !near(code + i + before))
        return 0;
    *found = (site){i + before, 1, 0, before + FIELD};
    return 1;
}

/* A bit for each of 64 bytes, lowest first: what they may be the first of. */
typedef struct {
    uint64_t jumps;   /* a call or a jump, before what is near: one that has its field */
    uint64_t data;    /* what names data, before what is near: it has its field, too */
    uint64_t entries; /* an entry, by its length and three bytes more */
} signs;

/* Bits of which those before `at` were seen. */
typedef struct {
    const uint8_t *of; /* `size` bits */
    size_t size, at;
} rdc_runs;

/* Fields listed at a time, and entries behind them that may be written to. */
#define RDC_LISTED 1024
#define UNSEEN 4

/* Each as code_blanks.h has it, but for `list`. */
typedef struct {
    const char *name;
    int (*usable)(void);
    void (*bits)(const uint8_t *code, size_t size, rdc_bits *bits);
    size_t (*blank)(uint8_t *code, size_t size, uint8_t blank);
    void (*hide)(uint8_t *content, const uint8_t *bits, size_t size, uint8_t blank);
    size_t (*count)(const uint8_t *bits, size_t size);

    /* Lists where the next runs begin, as long as each has a field's length and 64 bits are left, up to RDC_LISTED; how many
     * these are. */
    size_t (*list)(rdc_runs *runs, uint32_t *starts);
} rdc_code_form;

/* The first two where their architecture is. */
extern const rdc_code_form rdc_code_avx512, rdc_code_avx2, rdc_code_plain;

#define STEP 64
#define AHEAD 15 /* bytes behind these that are read */

/* What begins at place `i`, of which nothing is known but what it may be; whether it has fields. */
static inline int begins(const uint8_t *code, size_t size, size_t i, site *found)
{
    return entry(code, size, i, found) || instruction(code, size, i, found);
}

/* Among 64 bytes and those behind them, a bit for each: bytes of fields, and what is taken up. */
typedef struct {
    uint64_t fields;
    uint64_t fields_behind;
    uint64_t taken_behind; /* all from the first on up to one */
} found_bytes;

/* Fields that begin at so many bytes from the first. */
static inline void add_field(found_bytes *found, size_t offset)
{
    const uint64_t field = 0xf;
    if (offset < STEP)
        found->fields |= field << offset;
    if (offset >= STEP)
        found->fields_behind |= field << (offset - STEP);
    else if (offset > STEP - FIELD)
        found->fields_behind |= field >> (STEP - offset);
}

/* Of the 64 bytes at `at`, one sign after the other: where some may be overlapped by others or are entries. `taken`: what
 * began earlier takes up so much of them, from the first on. */
static inline found_bytes found_singly(const uint8_t *code, size_t size, size_t at, const signs *seen, uint64_t taken)
{
    found_bytes found = {0, 0, 0};
    size_t end = at + (size_t)__builtin_ctzll(~taken);
    for (uint64_t bits = seen->jumps | seen->data | seen->entries; bits; bits &= bits - 1) {
        const size_t i = at + (size_t)__builtin_ctzll(bits);
        site here;
        if (!begins(code, size, i, &here))
            continue;
        if (i >= end) {
            add_field(&found, here.field - at);
            if (here.fields > 1)
                add_field(&found, here.field + FIELD - at);
            if (here.fields > 2)
                add_field(&found, here.third - at);
        }
        if (end < i + here.length)
            end = i + here.length;
    }
    if (end > at + STEP)
        found.taken_behind = ~(UINT64_MAX << (end - at - STEP));
    return found;
}

#endif
