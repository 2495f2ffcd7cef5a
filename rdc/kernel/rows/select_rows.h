/* select_rows.h - copies selected rows of a column. */
#ifndef RDC_CHOSEN_ROWS_H
#define RDC_CHOSEN_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* Returns whether all `chosen` are rows of a column of `count` rows. */
int rdc_rows_exist(const uint64_t *chosen, size_t chosen_count, size_t count);

/* Copies these rows of `column`, `width` bytes each, to `out`. */
void rdc_take_rows(const uint8_t *column, size_t width, const uint64_t *chosen, size_t chosen_count, uint8_t *out);

/* Sets these rows to `values`. If a row is named twice, the later value wins. */
void rdc_put_rows(uint8_t *column, size_t width, const uint64_t *chosen, size_t chosen_count, const uint8_t *values);

#endif
