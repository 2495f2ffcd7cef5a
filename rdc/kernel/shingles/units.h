/* units.h - the words or characters of texts, as hashes; tests/reference/shingles.py defines them. */
#ifndef RDC_UNITS_H
#define RDC_UNITS_H

#include "shingles/keys.h"
#include "shingles/variant.h"

/* Bytes of a text that are classified at a time; they and what is found in them stay in the nearest cache. */
#define RDC_TEXT_CHUNK 2048

#define RDC_UNITS_AT_ONCE (2 * RDC_TEXT_CHUNK)

typedef enum { RDC_BY_WORDS, RDC_BY_CHARACTERS } rdc_unit_kind;

/* Reads texts, one after another. It needs no memory that grows with a text. */
typedef struct {
    const rdc_shingling *variant;
    rdc_unit_kind kind;

    /* Takes the hashes of units in order. Returns -1 if it cannot; then no more are read. */
    int (*take)(void *to, const uint64_t *hashes, size_t count);
    void *to;
    int failed;

    uint8_t letters[128];        /* ASCII that belongs to units, in lower case; 0 for separators */
    uint64_t letter_hashes[128]; /* units of one such byte */

    /* The unit that may go on. */
    int open, single;   /* single: it began with a character that is a word of its own */
    uint64_t hash;      /* of its blocks but the last one */
    unsigned filled;    /* bytes of the last block */
    uint8_t block[16];

    unsigned marks;     /* that wait to be sorted */
    uint32_t run[RDC_MARK_RUN]; /* entries of rdc_character_foldings */

    size_t found;
    uint64_t hashes[RDC_UNITS_AT_ONCE];

    rdc_text_masks masks[RDC_TEXT_CHUNK / RDC_TEXT_BLOCK];
    uint8_t lower[RDC_TEXT_CHUNK + 16];  /* what is behind the text has any value */
    uint16_t edges[RDC_TEXT_CHUNK + RDC_TEXT_BLOCK];
} rdc_units;

void rdc_units_start(rdc_units *units, const rdc_shingling *variant, rdc_unit_kind kind,
                     int (*take)(void *, const uint64_t *, size_t), void *to);

/* Gives all units of one text to `take`. Returns -1 if it failed. */
int rdc_units_of(rdc_units *units, const uint8_t *text, size_t size);

#endif
