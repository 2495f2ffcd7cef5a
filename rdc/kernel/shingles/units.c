/* units.c - the words or characters of texts.
 *
 * Blocks of ASCII are read by masks: a word lies between two edges of the mask, and its bytes are hashed where they
 * lie, in lower case. Everything else goes character by character through the tables. A unit that reaches over the
 * end of such a stretch waits in `block` and `hash`, so where a text is divided changes nothing. */
#include "shingles/units.h"

#include "platform.h"
#include "shingles/characters.h"
#include "shingles/unit_hash.h"

void rdc_units_start(rdc_units *units, const rdc_shingling *variant, rdc_unit_kind kind,
                     int (*take)(void *, const uint64_t *, size_t), void *to)
{
    memset(units, 0, sizeof *units);
    units->variant = variant;
    units->kind = kind;
    units->take = take;
    units->to = to;
    for (unsigned byte = 0; byte < 128; byte++) {
        const unsigned low = byte | 0x20;
        const int letter = low >= 'a' && low <= 'z', digit = (byte >= '0' && byte <= '9') || byte == '_';
        if (letter || digit)
            units->letters[byte] = (uint8_t)(letter ? low : byte);
        units->letter_hashes[byte] = rdc_unit_step(0, units->letters[byte], 0);
    }
}

static void flush(rdc_units *units)
{
    if (units->found && !units->failed)
        units->failed = units->take(units->to, units->hashes, units->found);
    units->found = 0;
}

static inline void push(rdc_units *units, uint64_t hash)
{
    if (units->found == RDC_UNITS_AT_ONCE)
        flush(units);
    units->hashes[units->found++] = hash;
}

static inline void hash_block(rdc_units *units)
{
    units->hash = rdc_unit_step(units->hash, rdc_load64(units->block), rdc_load64(units->block + 8));
    memset(units->block, 0, sizeof units->block);
    units->filled = 0;
}

static void append(rdc_units *units, const uint8_t *bytes, size_t count)
{
    while (count) {
        if (units->filled == sizeof units->block)
            hash_block(units);
        const size_t room = sizeof units->block - units->filled, some = count < room ? count : room;
        memcpy(units->block + units->filled, bytes, some);
        units->filled += (unsigned)some;
        bytes += some;
        count -= some;
    }
    units->open = 1;
}

static inline void end_unit(rdc_units *units)
{
    if (!units->open)
        return;
    hash_block(units);
    push(units, units->hash);
    units->hash = 0;
    units->open = units->single = 0;
}

/* ---- character by character ---- */

static void take_character(rdc_units *units, uint32_t code, uint32_t kind)
{
    uint8_t bytes[4];
    if (code < 0x80) {
        code = units->letters[code];
        kind = code ? RDC_WORD : RDC_SEPARATOR;
    }
    if (kind != RDC_EXTEND && (kind != RDC_WORD || units->single || units->kind == RDC_BY_CHARACTERS))
        end_unit(units);
    if (kind == RDC_SEPARATOR)
        return;
    if (kind != RDC_EXTEND)
        units->single = kind == RDC_ALONE;
    if (code < 0x80 && units->filled < sizeof units->block) {
        units->block[units->filled++] = (uint8_t)code;
        units->open = 1;
    } else {
        append(units, bytes, rdc_put_character(code, bytes));
    }
}

/* Sorts the marks that wait, by insertion: they are few, and equal ones stay in order. */
static void take_marks(rdc_units *units)
{
    uint32_t *run = units->run;
    for (unsigned i = 1; i < units->marks; i++) {
        const uint32_t mark = run[i];
        unsigned to = i;
        for (; to && RDC_ORDER(run[to - 1]) > RDC_ORDER(mark); to--)
            run[to] = run[to - 1];
        run[to] = mark;
    }
    for (unsigned i = 0; i < units->marks; i++)
        take_character(units, RDC_CODE(run[i]), RDC_KIND(run[i]));
    units->marks = 0;
}

static inline void take_folding(rdc_units *units, uint32_t folding)
{
    if (units->marks && (!RDC_ORDER(folding) || units->marks == RDC_MARK_RUN))
        take_marks(units);
    if (RDC_ORDER(folding))
        units->run[units->marks++] = folding;
    else
        take_character(units, RDC_CODE(folding), RDC_KIND(folding));
}

static uint32_t folding_of(uint32_t code, unsigned kind, unsigned order)
{
    return code | order << 21 | kind << 29;
}

static void take_syllable(rdc_units *units, uint32_t code)
{
    const uint32_t number = code - RDC_FIRST_SYLLABLE, final = number % 28;
    take_folding(units, folding_of(0x1100 + number / (21 * 28), RDC_WORD, 0));
    take_folding(units, folding_of(0x1161 + number / 28 % 21, RDC_EXTEND, 0));
    if (final)
        take_folding(units, folding_of(0x11a7 + final, RDC_EXTEND, 0));
}

static void take_code(rdc_units *units, uint32_t code)
{
    const uint32_t entry = rdc_character_entry(code);
    if (!(entry & RDC_FOLDS)) {
        take_folding(units, code | entry);
    } else if (entry == RDC_SYLLABLE) {
        take_syllable(units, code);
    } else if (entry != RDC_IGNORED) {
        const uint32_t *folding = rdc_character_foldings + (entry & ~RDC_FOLDS);
        do
            take_folding(units, *folding);
        while (!(*folding++ & RDC_LAST));
    }
}

/* Takes characters until `stop` is reached. Returns where the next one begins, at most `size`. */
static size_t take_characters(rdc_units *units, const uint8_t *text, size_t at, size_t stop, size_t size)
{
    while (at < stop) {
        if (text[at] < 0x80) {
            if (units->marks)
                take_marks(units);
            take_character(units, text[at++], 0);
            continue;
        }
        const rdc_character character = rdc_character_at(text + at, size - at);
        take_code(units, character.code);
        at += character.size;
    }
    return at;
}

/* ---- stretches of ASCII ---- */

/* The mask of block i of a stretch that begins at byte `skip` of its first block. */
static inline uint64_t words_of(const rdc_text_masks *masks, size_t i, unsigned skip)
{
    return i ? masks[i].words : masks[0].words & UINT64_MAX << skip;
}

static void take_words(rdc_units *units, const uint8_t *lower, const rdc_text_masks *masks, size_t blocks, unsigned skip)
{
    uint16_t *edges = units->edges;
    const size_t end = RDC_TEXT_BLOCK * blocks;
    size_t i = 0, count = units->variant->edges(masks, blocks, skip, edges);
    const int goes_on = count && edges[count - 1] == end;
    if (units->open) {
        if (count && edges[0] == skip && !units->single) {
            append(units, lower + skip, (size_t)(edges[1] - edges[0]));
            if (count == 2 && goes_on)
                return;
            i = 2;
        }
        end_unit(units);
    }
    count -= goes_on ? 2 : 0;
    const size_t words = (count - i) / 2;
    if (units->found + words > RDC_UNITS_AT_ONCE)
        flush(units);
    units->variant->hash_words(lower, edges + i, words, units->hashes + units->found);
    units->found += words;
    if (goes_on)
        append(units, lower + edges[count], end - edges[count]);
}

static void take_letters(rdc_units *units, const uint8_t *lower, const rdc_text_masks *masks, size_t blocks, unsigned skip)
{
    const size_t end = RDC_TEXT_BLOCK * blocks;
    end_unit(units);
    if (units->found + end > RDC_UNITS_AT_ONCE)
        flush(units);
    uint64_t *next = units->hashes + units->found;
    for (size_t block = 0; block < blocks; block++)
        for (uint64_t words = words_of(masks, block, skip); words; words &= words - 1)
            *next++ = units->letter_hashes[lower[RDC_TEXT_BLOCK * block + (unsigned)__builtin_ctzll(words)]];
    units->found = (size_t)(next - units->hashes);
    if (words_of(masks, blocks - 1, blocks == 1 ? skip : 0) >> 63) { /* a mark may follow */
        units->found--;
        append(units, lower + end - 1, 1);
    }
}

/* Returns the number of blocks; zeros fill up the last one. */
static size_t classify_chunk(rdc_units *units, const uint8_t *text, size_t size)
{
    const size_t whole = size / RDC_TEXT_BLOCK, rest = size % RDC_TEXT_BLOCK;
    units->variant->classify(text, whole, units->lower, units->masks);
    if (!rest)
        return whole;
    uint8_t last[RDC_TEXT_BLOCK] = {0};
    memcpy(last, text + RDC_TEXT_BLOCK * whole, rest);
    units->variant->classify(last, 1, units->lower + RDC_TEXT_BLOCK * whole, units->masks + whole);
    return whole + 1;
}

/* Returns whether the character is only a separator. */
static int is_separator(const rdc_units *units, uint32_t code)
{
    const uint32_t entry = rdc_character_entry(code);
    if (!(entry & RDC_FOLDS))
        return RDC_KIND(entry) == RDC_SEPARATOR && !RDC_ORDER(entry);
    if (entry == RDC_SYLLABLE || entry == RDC_IGNORED)
        return 0;
    const uint32_t *folding = rdc_character_foldings + (entry & ~RDC_FOLDS);
    do {
        if (RDC_ORDER(*folding) || (RDC_CODE(*folding) < 0x80 ? units->letters[RDC_CODE(*folding)] : RDC_KIND(*folding) != RDC_SEPARATOR))
            return 0;
    } while (!(*folding++ & RDC_LAST));
    return 1;
}

/* Returns whether each character of the block outside ASCII is a separator and ends in the block. The caller then
 * reads a dash or a quotation mark like a space. A character that began in the block before belongs to that block. */
static int only_separators(const rdc_units *units, const uint8_t *block, size_t room, size_t left, uint64_t high)
{
    while (high) {
        const unsigned at = (unsigned)__builtin_ctzll(high);
        const rdc_character character = rdc_character_at(block + at, left - at);
        if (at + character.size > room || !is_separator(units, character.code))
            return 0;
        high &= ~(((UINT64_C(1) << character.size) - 1) << at);
    }
    return 1;
}

/* Takes one chunk, and the rest of a character that reaches beyond it. Returns the bytes that are done. */
static size_t take_chunk(rdc_units *units, const uint8_t *text, size_t size)
{
    const size_t count = size < RDC_TEXT_CHUNK ? size : RDC_TEXT_CHUNK;
    const size_t blocks = classify_chunk(units, text, count);
    for (size_t i = 0, at = 0; i < blocks; i++, at += RDC_TEXT_BLOCK) {
        const size_t room = count - at < RDC_TEXT_BLOCK ? count - at : RDC_TEXT_BLOCK;
        if (units->masks[i].high && only_separators(units, text + at, room, size - at, units->masks[i].high))
            units->masks[i].high = 0;
    }
    size_t done = 0;
    while (done < count) {
        const size_t block = done / RDC_TEXT_BLOCK;
        const unsigned skip = done % RDC_TEXT_BLOCK;
        size_t stop = block;
        if (units->masks[block].high >> skip) {
            stop = RDC_TEXT_BLOCK * (block + 1);
            done = take_characters(units, text, done, stop < count ? stop : count, size);
            continue;
        }
        do
            stop++;
        while (stop < blocks && !units->masks[stop].high);
        take_marks(units);
        (units->kind == RDC_BY_WORDS ? take_words : take_letters)(units, units->lower + RDC_TEXT_BLOCK * block,
                                                                 units->masks + block, stop - block, skip);
        done = RDC_TEXT_BLOCK * stop;
    }
    return done < size ? done : size;
}

int rdc_units_of(rdc_units *units, const uint8_t *text, size_t size)
{
    for (size_t at = 0; at < size && !units->failed;)
        at += take_chunk(units, text + at, size - at);
    take_marks(units);
    end_unit(units);
    flush(units);
    return units->failed ? -1 : 0;
}
