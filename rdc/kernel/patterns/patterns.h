/* patterns.h - paths matched against many wildcard patterns at once; tests/reference/patterns.py defines it. */
#ifndef RDC_PATTERNS_H
#define RDC_PATTERNS_H

#include <stddef.h>
#include <stdint.h>

/* What a pattern is, as bits; tests/reference/patterns.py says what each means. */
enum {
    RDC_PATTERN_LITERAL = 1,
    RDC_PATTERN_ANYWHERE = 2,
    RDC_PATTERN_DIRECTORY = 4,
    RDC_PATTERN_INSIDE = 8,
    RDC_PATTERN_NEGATED = 16,
    RDC_PATTERN_COMPONENTS = 32,
    RDC_PATTERN_ABSOLUTE = 64,
    RDC_PATTERN_TAIL = 128,
};

typedef struct rdc_patterns rdc_patterns;

/* Returns an empty set, or NULL for lack of memory. */
rdc_patterns *rdc_patterns_new(void);

void rdc_patterns_free(rdc_patterns *set);

/* Adds one pattern. Returns -1 for lack of memory. */
int rdc_patterns_add(rdc_patterns *set, const uint8_t *text, size_t size, unsigned kind);

/* Ends the set: nothing is added any more. `prefix` stands in front of each path for patterns that are ABSOLUTE.
 * Returns -1 for lack of memory. */
int rdc_patterns_seal(rdc_patterns *set, const uint8_t *prefix, size_t size);

/* Writes the number of the first pattern that matches, or SIZE_MAX for none. Returns -1 for lack of memory. */
int rdc_patterns_first(rdc_patterns *set, const uint8_t *path, size_t size, int is_directory, size_t *number);

/* Bytes that the set takes now. */
size_t rdc_patterns_bytes(const rdc_patterns *set);

#endif
