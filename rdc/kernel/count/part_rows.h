/* part_rows.h - what must hold for rows of a part before they are added; tests/reference/counts.py defines it. */
#ifndef RDC_PART_ROWS_H
#define RDC_PART_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* What a table of a part has left for the rows that follow. */
typedef struct {
    uint64_t chunks, bytes;
} rdc_rows_left;

typedef enum { RDC_ROWS_FINE, RDC_ROWS_DISORDERED, RDC_ROWS_TOO_MANY } rdc_rows_verdict;

/* Judges n >= 1 rows. Their keys ascend from `least` on, and their first `shift` bits (at most 63) are 0. Fine rows are
 * taken from `left`. */
rdc_rows_verdict rdc_judge_rows(const uint64_t *key, const uint64_t *size, const uint64_t *count, size_t n, uint64_t least,
                                unsigned shift, rdc_rows_left *left);

#endif
