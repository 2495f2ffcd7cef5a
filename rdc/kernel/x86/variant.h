/* variant.h - what a variant of the search for x86 displacement fields must provide, and what all variants
 * share.
 *
 * tests/reference/masking.py defines fields. Few bytes are candidates: vectors find these, 64
 * bytes at a time, and vector_body.h examines each. */
#ifndef RDC_CODE_VARIANT_H
#define RDC_CODE_VARIANT_H

#include <string.h>

#include "bits.h"
#include "x86/x86.h"
#include "x86/opcodes.h"
#include "prefetch.h"
#include "platform.h"

#define FIELD 4

/* Returns whether four bytes are a displacement below 64 MiB: the highest is 00 to 03 or FC to FF. */
static inline int near(const uint8_t *field)
{
    return (uint8_t)(field[FIELD - 1] + 4) < 8;
}

/* A candidate: where the first field begins, how many fields there are (the second is next to the first),
 * where the third begins, and how many bytes it covers from its first byte on. */
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
    /* Most bytes cannot begin such a length. */
    const uint32_t length = rdc_load32(e);
    if (length & 0xfffff003 || length < 16)
        return 0;
    const uint32_t shared = rdc_load32(e + 4), range = rdc_load32(e + 12);
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

/* One bit per byte, lowest first: what the byte may begin. */
typedef struct {
    uint64_t jumps;   /* a call or a jump before a near displacement: it has a field */
    uint64_t data;    /* an opcode with a data operand before a near displacement: it has a field, too */
    uint64_t entries; /* an entry, by its length and three bytes more */
} signs;

/* Bits of which those before `at` were seen. */
typedef struct {
    const uint8_t *of; /* `size` bits */
    size_t size, at;
} rdc_runs;

/* Fields listed at a time, and entries behind them that may be overwritten. */
#define RDC_LISTED 1024
#define UNSEEN 4

/* Each as x86.h has it, but for `list`. */
typedef struct {
    int (*usable)(void);
    void (*bits)(const uint8_t *code, size_t size, rdc_bits *bits);
    size_t (*mask_fields)(uint8_t *code, size_t size, uint8_t filler);
    void (*overwrite_marked)(uint8_t *content, const uint8_t *bits, size_t size, uint8_t filler);
    size_t (*count)(const uint8_t *bits, size_t size);

    /* Lists the starts of the next runs while each has the length of a field and 64 bits are left, up to
     * RDC_LISTED. Returns their number. */
    size_t (*list)(rdc_runs *runs, uint32_t *starts);
} rdc_code_variant;

/* The first one where its architecture is. */
extern const rdc_code_variant rdc_code_avx2, rdc_code_plain;

#define STEP 64
#define AHEAD 15 /* bytes behind these that are read */

/* Examines the candidate at `i`, of which only its kind is known. Returns whether it has fields. */
static inline int begins(const uint8_t *code, size_t size, size_t i, site *found)
{
    return entry(code, size, i, found) || instruction(code, size, i, found);
}

/* One bit per byte of 64 and of those behind: bytes of fields, and bytes covered by candidates. */
typedef struct {
    uint64_t fields;
    uint64_t fields_behind;
    uint64_t taken_behind; /* all from the first on up to one */
} found_bytes;

/* Adds fields that begin this many bytes after the first. */
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

/* Examines the candidates in the 64 bytes at `at` one by one. Used if some may overlap or are frame table
 * entries. `taken`: bytes that earlier candidates cover, from the first on. */
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
