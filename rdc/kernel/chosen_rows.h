/* chosen_rows.h - some rows of a column, one behind another. */
#ifndef RDC_CHOSEN_ROWS_H
#define RDC_CHOSEN_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* Whether all `chosen` are rows of a column of `count`. */
int rdc_rows_exist(const uint64_t *chosen, size_t chosen_count, size_t count);

/* Copies these rows of `column`, `width` bytes each, to `out`. */
void rdc_take_rows(const uint8_t *column, size_t width, const uint64_t *chosen, size_t chosen_count, uint8_t *out);

/* The other way: sets these rows to `values`; of a row that is named twice the later one stays. */
void rdc_put_rows(uint8_t *column, size_t width, const uint64_t *chosen, size_t chosen_count, const uint8_t *values);

#endif
