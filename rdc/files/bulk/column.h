/* column.h - items of packed little-endian columns, which need not be aligned. */
#ifndef RDC_COLUMN_H
#define RDC_COLUMN_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t column_u64(const uint8_t *column, size_t row)
{
    uint64_t item;
    memcpy(&item, column + 8 * row, sizeof item);
    return le64toh(item);
}

static inline uint32_t column_u32(const uint8_t *column, size_t row)
{
    uint32_t item;
    memcpy(&item, column + 4 * row, sizeof item);
    return le32toh(item);
}

static inline uint16_t column_u16(const uint8_t *column, size_t row)
{
    uint16_t item;
    memcpy(&item, column + 2 * row, sizeof item);
    return le16toh(item);
}

#endif
