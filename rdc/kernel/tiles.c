/* tiles.c - what chunks are put together from, see pieces.h. Every loop is linear in its rows, but for the sort of one chunk's
 * tiles. */
#include "pieces.h"

#include <stdlib.h>
#include <string.h>

#include "bits.h"

int64_t rdc_tile_range(const rdc_copy *copies, size_t count, uint64_t offset, uint64_t length, rdc_tile *out)
{
    size_t first = 0, stop = count, made = 0;
    if (!rdc_fits(offset, length))
        return -1;
    /* The last copy that begins at `offset` or before it, if there is one. */
    while (first < stop) {
        const size_t middle = first + (stop - first) / 2;
        if (copies[middle].offset <= offset)
            first = middle + 1;
        else
            stop = middle;
    }
    const uint64_t end = offset + length;
    uint64_t at = offset;
    for (size_t i = first ? first - 1 : 0; at < end && i < count && copies[i].offset < end; i++) {
        const rdc_copy *copy = &copies[i];
        if (copy->base == RDC_LITERAL || !rdc_fits(copy->offset, copy->length) || !rdc_fits(copy->place, copy->length))
            return -1;
        const uint64_t behind = copy->offset + copy->length;
        if (copy->offset > at) {
            if (out)
                out[made] = (rdc_tile){RDC_LITERAL, 0, copy->offset - at};
            made++;
            at = copy->offset;
        }
        if (behind > at) {
            const uint64_t next = behind < end ? behind : end;
            if (out)
                out[made] = (rdc_tile){copy->base, copy->place + (at - copy->offset), next - at};
            made++;
            at = next;
        }
    }
    if (at < end) {
        if (out)
            out[made] = (rdc_tile){RDC_LITERAL, 0, end - at};
        made++;
    }
    return (int64_t)made;
}

int64_t rdc_tile_ranges(const rdc_copy *copies, size_t count, const rdc_range *ranges, size_t number, rdc_tile *out,
                        rdc_tiled *tiled)
{
    size_t made = 0;
    for (size_t i = 0; i < number; i++) {
        rdc_tile *here = out ? out + made : NULL;
        const int64_t tiles = rdc_tile_range(copies, count, ranges[i].offset, ranges[i].length, here);
        if (tiles < 0)
            return -1;
        made += (size_t)tiles;
        if (!out)
            continue;
        tiled[i] = (rdc_tiled){(uint64_t)tiles, 0};
        for (int64_t j = 0; j < tiles; j++)
            tiled[i].fetched += here[j].base == RDC_LITERAL ? here[j].length : 0;
    }
    return (int64_t)made;
}

int64_t rdc_tiled_copies(const rdc_tile *tiles, size_t count, uint64_t offset, rdc_copy *out)
{
    size_t made = 0;
    for (size_t i = 0; i < count; i++) {
        if (!rdc_fits(offset, tiles[i].length))
            return -1;
        if (tiles[i].base != RDC_LITERAL)
            out[made++] = (rdc_copy){offset, tiles[i].base, tiles[i].place, tiles[i].length};
        offset += tiles[i].length;
    }
    return (int64_t)made;
}

int64_t rdc_fetched_ranges(const rdc_tile *tiles, size_t count, uint64_t offset, rdc_range *out)
{
    size_t made = 0;
    for (size_t i = 0; i < count; i++) {
        if (!rdc_fits(offset, tiles[i].length))
            return -1;
        if (tiles[i].base == RDC_LITERAL) {
            if (made && out[made - 1].offset + out[made - 1].length == offset)
                out[made - 1].length += tiles[i].length;
            else
                out[made++] = (rdc_range){offset, tiles[i].length};
        }
        offset += tiles[i].length;
    }
    return (int64_t)made;
}

typedef struct {
    const rdc_tile *tile;
    size_t row;
} placed;

static int by_place(const void *left, const void *right)
{
    const placed *l = left, *r = right;
    if (l->tile->base != r->tile->base)
        return l->tile->base < r->tile->base ? -1 : 1;
    if (l->tile->place != r->tile->place)
        return l->tile->place < r->tile->place ? -1 : 1;
    return (l->row > r->row) - (l->row < r->row);
}

/* A read with what is asked for besides, as far as there is something. */
static rdc_tile surrounded(rdc_tile read, const rdc_surroundings *around)
{
    const uint64_t back = read.place < around->back ? read.place : around->back, end = read.place + read.length;
    const uint64_t left = read.base < around->bases && around->sizes[read.base] > end ? around->sizes[read.base] - end : 0;
    return (rdc_tile){read.base, read.place - back, back + read.length + (left < around->ahead ? left : around->ahead)};
}

int64_t rdc_tile_reads(const rdc_tile *tiles, size_t count, uint64_t close, const rdc_surroundings *around,
                       rdc_tile *reads, rdc_range *sources, uint64_t *literals)
{
    placed *order = malloc((count + 1) * sizeof *order);
    size_t copies = 0, made = 0;
    uint64_t read = 0; /* bytes of all reads but the last */
    int ordered = 1;
    *literals = 0;
    if (!order)
        return -2;
    if (close > RDC_END || around->back > RDC_END || around->ahead > RDC_END)
        goto refused;
    for (uint64_t base = 0; base < around->bases; base++)
        if (around->sizes[base] > RDC_END)
            goto refused;
    for (size_t i = 0; i < count; i++) {
        sources[i] = (rdc_range){RDC_LITERAL, tiles[i].length};
        if (tiles[i].base == RDC_LITERAL) {
            if (!rdc_fits(*literals, tiles[i].length))
                goto refused;
            *literals += tiles[i].length;
            continue;
        }
        if (!rdc_fits(tiles[i].place, tiles[i].length))
            goto refused;
        order[copies] = (placed){&tiles[i], i};
        ordered = ordered && (!copies || by_place(order + copies - 1, order + copies) < 0);
        copies++;
    }
    if (!ordered)
        qsort(order, copies, sizeof *order, by_place);
    for (size_t i = 0; i < copies; i++) {
        const rdc_tile *tile = order[i].tile;
        rdc_tile *last = made ? reads + made - 1 : NULL;
        if (last && last->base == tile->base && tile->place <= last->place + last->length + close) {
            const uint64_t length = tile->place + tile->length - last->place;
            last->length = length > last->length ? length : last->length;
        } else {
            if (last) {
                *last = surrounded(*last, around);
                read += last->length;
            }
            last = reads + made++;
            *last = *tile;
        }
        const rdc_tile whole = surrounded(*last, around);
        if (!rdc_fits(read, whole.length))
            goto refused;
        sources[order[i].row].offset = read + (tile->place - whole.place);
    }
    if (made)
        reads[made - 1] = surrounded(reads[made - 1], around);
    free(order);
    return (int64_t)made;
refused:
    free(order);
    return -1;
}

/* The same, and how many of them are literals. */
static int64_t tiled(const rdc_range *sources, size_t count, uint64_t held, uint64_t *literals)
{
    uint64_t made = 0;
    *literals = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t length = sources[i].length;
        if (!rdc_fits(made, length))
            return -1;
        made += length;
        if (sources[i].offset == RDC_LITERAL)
            *literals += length;
        else if (sources[i].offset > held || length > held - sources[i].offset)
            return -1;
    }
    return (int64_t)made;
}

int64_t rdc_image_bytes(const rdc_range *sources, size_t count, uint64_t held)
{
    uint64_t literals;
    return tiled(sources, count, held, &literals);
}

int64_t rdc_tiled_bytes(const rdc_range *sources, size_t count, uint64_t held, uint64_t literals)
{
    uint64_t wanted;
    const int64_t made = tiled(sources, count, held, &wanted);
    return wanted == literals ? made : -1;
}

void rdc_put_images(const rdc_range *sources, size_t count, const uint8_t *held, const uint8_t *bits, size_t size,
                    uint8_t *out, uint8_t *out_bits)
{
    rdc_bits row = {out_bits, 0, 0};
    for (size_t i = 0; i < count; i++) {
        const int literal = sources[i].offset == RDC_LITERAL;
        const size_t from = literal ? 0 : (size_t)sources[i].offset, length = (size_t)sources[i].length;
        if (!length)
            continue;
        if (literal)
            memset(out, 0, length);
        else
            memcpy(out, held + from, length);
        out += length;
        for (size_t at = 0; at < length; at += RDC_BITS) {
            const uint64_t next = literal ? 0 : rdc_bits_at(bits, size, from + at);
            if (length - at < RDC_BITS)
                rdc_add_bits(&row, next & ~(UINT64_MAX << (length - at)), length - at);
            else
                rdc_add_bits(&row, next, RDC_BITS);
        }
    }
    rdc_end_bits(&row);
}

void rdc_put_tiles(const rdc_range *sources, size_t count, const uint8_t *held, const uint8_t *literals, uint8_t *out)
{
    for (size_t i = 0; i < count; i++) {
        const size_t length = (size_t)sources[i].length;
        if (!length)
            continue;
        if (sources[i].offset == RDC_LITERAL) {
            memcpy(out, literals, length);
            literals += length;
        } else
            memcpy(out, held + sources[i].offset, length);
        out += length;
    }
}
