/* select_rows.c - copies selected rows of a column.
 *
 * The usual widths are constants, so a row is moved by one or two instructions instead of a call. */
#include "rows/rows.h"

#include <string.h>

#define TAKE(w)                                                  \
    for (size_t i = 0; i < chosen_count; i++)                    \
        memcpy(out + i * (w), column + chosen[i] * (w), (w))

#define PUT(w)                                                   \
    for (size_t i = 0; i < chosen_count; i++)                    \
        memcpy(column + chosen[i] * (w), values + i * (w), (w))

#define BY_WIDTH(move)    \
    switch (width) {      \
    case 1:               \
        move(1);          \
        break;            \
    case 2:               \
        move(2);          \
        break;            \
    case 4:               \
        move(4);          \
        break;            \
    case 8:               \
        move(8);          \
        break;            \
    case 32:              \
        move(32);         \
        break;            \
    default:              \
        move(width);      \
    }

int rdc_rows_exist(const uint64_t *chosen, size_t chosen_count, size_t count)
{
    for (size_t i = 0; i < chosen_count; i++)
        if (chosen[i] >= count)
            return 0;
    return 1;
}

void rdc_take_rows(const uint8_t *column, size_t width, const uint64_t *chosen, size_t chosen_count, uint8_t *out)
{
    BY_WIDTH(TAKE)
}

void rdc_put_rows(uint8_t *column, size_t width, const uint64_t *chosen, size_t chosen_count, const uint8_t *values)
{
    BY_WIDTH(PUT)
}
