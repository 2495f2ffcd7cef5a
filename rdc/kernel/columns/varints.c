/* varints.c - see columns.h. */
#include "columns/columns.h"

#include <string.h>

int64_t rdc_pack_varints(const uint8_t *numbers, size_t count, uint8_t *out)
{
    const uint8_t *const first = out;
    for (size_t i = 0; i < count; i++) {
        uint64_t left;
        memcpy(&left, numbers + 8 * i, 8);
        if (left > INT64_MAX)
            return -1;
        for (; left > 0x7f; left >>= 7)
            *out++ = (uint8_t)(left | 0x80);
        *out++ = (uint8_t)left;
    }
    return out - first;
}

int64_t rdc_unpack_varints(const uint8_t *data, size_t size, size_t count, uint64_t *out)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;
        unsigned shift = 0;
        uint8_t byte;
        do {
            if (at == size || shift == 7 * RDC_VARINT_BYTES)
                return -1;
            byte = data[at++];
            value |= (uint64_t)(byte & 0x7f) << shift;
            shift += 7;
        } while (byte & 0x80);
        if (!byte && shift > 7)
            return -1;
        out[i] = value;
    }
    return (int64_t)at;
}
