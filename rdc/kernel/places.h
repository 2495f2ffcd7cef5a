/* places.h - places: where each piece of a content belongs, an offset and a length each, as 16 packed bytes.
 *
 * The pieces lie in the content one behind another, and fill it.
 */
#ifndef RDC_PLACES_H
#define RDC_PLACES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    uint64_t offset; /* of its first byte, where it belongs */
    uint64_t length; /* in bytes */
} rdc_place;

/* Place `i`; `packed` need not be aligned. */
static inline rdc_place rdc_place_of(const uint8_t *packed, size_t i)
{
    rdc_place place;
    memcpy(&place, packed + sizeof place * i, sizeof place);
    return place;
}

/* Whether `bytes` of packed places are whole ones, whose pieces fill a content of `size`. No sum overflows:
 * each length is compared with what is left. */
static inline int rdc_places_fill(const uint8_t *packed, size_t bytes, size_t size)
{
    size_t left = size;
    if (bytes % sizeof(rdc_place))
        return 0;
    for (size_t i = 0; i < bytes / sizeof(rdc_place); i++) {
        const uint64_t length = rdc_place_of(packed, i).length;
        if (length > left)
            return 0;
        left -= (size_t)length;
    }
    return left == 0;
}

#endif
