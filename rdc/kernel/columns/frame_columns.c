/* frame_columns.c - what must hold for the rows of a pack's directory (rdc/store/PACKS.md).
 *
 * A directory may be forged. Each number is subtracted from what is left of its kind, which no number brings below 0, so
 * no sum wraps and no length beyond the column is read. */
#include "columns/columns.h"

#include "platform.h"

enum { STORED = 0, DELTA = 2, KIND_MOST = 2 };

/* Returns whether the next `chunks` lengths are not 0 and add up to `size`. */
static int fills(const uint8_t *length, uint32_t chunks, uint32_t size)
{
    uint32_t left = size;
    for (uint32_t i = 0; i < chunks; i++) {
        const uint32_t one = rdc_load32(length + 4 * (size_t)i);
        if (!one || one > left)
            return 0;
        left -= one;
    }
    return !left;
}

int rdc_frames_are_sound(const rdc_frame_columns *c, const rdc_frame_bounds *most)
{
    uint64_t chunks = c->chunks, bases = c->bases, stored = c->stored;
    const uint8_t *length = c->lengths;
    for (size_t i = 0; i < c->frames; i++) {
        const uint8_t kind = c->kinds[i], depth = c->depths[i];
        const uint32_t packed = rdc_load32(c->stored_sizes + 4 * i), size = rdc_load32(c->sizes + 4 * i);
        const uint32_t own = rdc_load32(c->counts + 4 * i);
        const uint32_t below = c->base_counts[2 * i] | (uint32_t)c->base_counts[2 * i + 1] << 8;
        const int generation = c->generations[2 * i] | c->generations[2 * i + 1], is_delta = kind == DELTA;
        if (kind > KIND_MOST || !packed || !size || packed > most->size || size > most->size || depth > most->depth ||
            below > most->bases)
            return 0;
        if (!!below != is_delta || !!depth != is_delta || !!generation != is_delta || (kind == STORED && packed != size))
            return 0;
        if (own > chunks || below > bases || packed > stored || !fills(length, own, size))
            return 0;
        length += 4 * (size_t)own;
        chunks -= own;
        bases -= below;
        stored -= packed;
    }
    return !chunks && !bases && !stored;
}
