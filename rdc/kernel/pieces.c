/* pieces.c - see pieces.h. Every loop is linear in its rows, but for the sort of one chunk's tiles. */
#include "pieces.h"

#include "bits.h"

#include <stdlib.h>
#include <string.h>

/* Both ends of `length` bytes from `start` on are numbers that may be added to each other. */
static int fits(uint64_t start, uint64_t length)
{
    return start <= RDC_END && length <= RDC_END - start;
}

/* A place that is known, or none. */
static int fits_place(uint64_t place)
{
    return place == RDC_UNPLACED || place <= RDC_END;
}

/* Appends, or lengthens the last one where both sides go on. */
static size_t append(rdc_piece *out, size_t made, uint64_t offset, uint64_t place, uint64_t length)
{
    if (made) {
        rdc_piece *last = out + made - 1;
        if (last->offset + last->length == offset && last->place + last->length == place) {
            last->length += length;
            return made;
        }
    }
    out[made] = (rdc_piece){offset, place, length};
    return made + 1;
}

int64_t rdc_fill_places(const uint64_t *places, const uint64_t *more, size_t count, uint64_t shift, uint64_t *out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = places[i];
        if (places[i] != RDC_UNPLACED || more[i] == RDC_UNPLACED)
            continue;
        if (!fits(more[i], shift))
            return -1;
        out[i] = more[i] + shift;
    }
    return (int64_t)count;
}

int64_t rdc_place_blocks(uint64_t offset, uint64_t size, const uint64_t *places, size_t count, rdc_piece *out)
{
    size_t made = 0;
    if (!size || !fits(offset, 0) || count > (RDC_END - offset) / size)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (places[i] == RDC_UNPLACED)
            continue;
        if (!fits(places[i], size))
            return -1;
        made = append(out, made, offset + i * size, places[i], size);
    }
    return (int64_t)made;
}

int64_t rdc_join_pieces(const rdc_piece *first, size_t firsts, const rdc_piece *second, size_t seconds, rdc_piece *out)
{
    size_t made = 0, i = 0, j = 0;
    uint64_t end = 0;
    while (i < firsts || j < seconds) {
        const rdc_piece *next =
            j == seconds || (i < firsts && first[i].offset <= second[j].offset) ? &first[i++] : &second[j++];
        if (next->offset < end || !fits(next->offset, next->length) || !fits(next->place, next->length))
            return -1;
        end = next->offset + next->length;
        made = append(out, made, next->offset, next->place, next->length);
    }
    return (int64_t)made;
}

/* So many bytes before a place, if that is in the base. */
static uint64_t less(uint64_t place, uint64_t length)
{
    return place != RDC_UNPLACED && place >= length ? place - length : RDC_UNPLACED;
}

/* The parts of one run that are worth asking about: 2 at most. */
static size_t open_run(uint64_t start, uint64_t end, uint64_t before, uint64_t behind, const rdc_opening *o,
                       rdc_run *out)
{
    const uint64_t length = end - start, ahead = before == RDC_UNPLACED ? RDC_UNPLACED : before + length;
    rdc_run parts[2];
    size_t count = 0, made = 0;
    if (before == RDC_UNPLACED || behind == RDC_UNPLACED ||
        (ahead > behind ? ahead - behind : behind - ahead) <= o->far) {
        if (length <= 2 * o->ends)
            parts[count++] = (rdc_run){start, length, before, behind};
        else {
            if (before != RDC_UNPLACED)
                parts[count++] = (rdc_run){start, o->ends, before, less(behind, length - o->ends)};
            if (behind != RDC_UNPLACED)
                parts[count++] = (rdc_run){end - o->ends, o->ends, less(ahead, o->ends), behind};
        }
    } else {
        const uint64_t reach = o->ends < length / 2 ? o->ends : length / 2;
        parts[count++] = (rdc_run){start, reach, before, RDC_UNPLACED};
        parts[count++] = (rdc_run){end - reach, reach, RDC_UNPLACED, behind};
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t rest = parts[i].length % o->size, cut = rest < o->tail ? rest : 0;
        parts[i].length -= cut;
        parts[i].behind = less(parts[i].behind, cut);
        if (parts[i].length && (parts[i].before != RDC_UNPLACED || parts[i].behind != RDC_UNPLACED))
            out[made++] = parts[i];
    }
    return made;
}

int64_t rdc_open_runs(const rdc_piece *pieces, size_t count, uint64_t start, uint64_t end, uint64_t before,
                      uint64_t behind, const rdc_opening *opening, uint64_t most, rdc_run *out)
{
    uint64_t at = start, place = before;
    size_t made = 0;
    if (!opening->size || opening->ends > RDC_END / 2 || end > RDC_END || !fits_place(before) || !fits_place(behind))
        return -1;
    for (size_t i = 0; i <= count; i++) {
        const rdc_piece piece = i < count ? pieces[i] : (rdc_piece){end, behind, 0};
        if (piece.offset < at || piece.offset > end || piece.length > end - piece.offset ||
            (i < count && !fits(piece.place, piece.length)))
            return -1;
        if (piece.offset - at >= opening->tail && piece.offset > at) {
            if (made >= most)
                break;
            made += open_run(at, piece.offset, place, piece.place, opening, out + made);
        }
        at = piece.offset + piece.length;
        place = piece.place + piece.length;
    }
    return (int64_t)made;
}

int64_t rdc_run_spans(const rdc_run *runs, size_t count, uint64_t size, uint64_t reach, uint64_t close, uint64_t most,
                      rdc_span *out)
{
    size_t made = 0;
    if (!size || size > RDC_END / 4 || reach > RDC_END / 4 || close > RDC_END)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const rdc_run *run = &runs[i];
        uint64_t low = UINT64_MAX, high = 0;
        if (run->length > RDC_END / 4 || (run->before == RDC_UNPLACED && run->behind == RDC_UNPLACED))
            return -1;
        if (run->before != RDC_UNPLACED) {
            if (run->before > RDC_END / 4)
                return -1;
            low = run->before;
            high = run->before + run->length;
        }
        if (run->behind != RDC_UNPLACED) {
            const uint64_t begin = run->behind > run->length ? run->behind - run->length : 0;
            if (run->behind > RDC_END / 4)
                return -1;
            low = begin < low ? begin : low;
            high = run->behind > high ? run->behind : high;
        }
        low = low > reach ? low - reach : 0;
        high += reach + size;
        const uint64_t blocks = run->length / size + (run->length % size != 0);
        rdc_span *last = made ? out + made - 1 : NULL;
        if (last && low <= last->stop + close && last->start <= high + close) {
            const uint64_t start = low < last->start ? low : last->start;
            const uint64_t stop = high > last->stop ? high : last->stop;
            if (stop - start <= most) {
                *last = (rdc_span){last->count + 1, start, stop, last->blocks + blocks};
                continue;
            }
        }
        out[made++] = (rdc_span){1, low, high, blocks};
    }
    return (int64_t)made;
}

int64_t rdc_tile_range(const rdc_copy *copies, size_t count, uint64_t offset, uint64_t length, rdc_tile *out)
{
    size_t first = 0, stop = count, made = 0;
    if (!fits(offset, length))
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
        if (copy->base == RDC_LITERAL || !fits(copy->offset, copy->length) || !fits(copy->place, copy->length))
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
        if (!fits(offset, tiles[i].length))
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
        if (!fits(offset, tiles[i].length))
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
            if (!fits(*literals, tiles[i].length))
                goto refused;
            *literals += tiles[i].length;
            continue;
        }
        if (!fits(tiles[i].place, tiles[i].length))
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
        if (!fits(read, whole.length))
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
        if (!fits(made, length))
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

int64_t rdc_range_reads(const rdc_range *ranges, size_t count, uint64_t close, uint64_t most, rdc_read *out)
{
    size_t made = 0;
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        const rdc_range *range = &ranges[i];
        rdc_read *last = made ? out + made - 1 : NULL;
        if (range->offset < end || !fits(range->offset, range->length))
            return -1;
        const uint64_t gap = range->offset - end;
        end = range->offset + range->length;
        if (last && gap <= close && end - last->start <= most) {
            last->count++;
            last->length = end - last->start;
        } else
            out[made++] = (rdc_read){1, range->offset, range->length};
    }
    return (int64_t)made;
}

int64_t rdc_around_ranges(const rdc_range *ranges, size_t count, uint64_t reach, uint64_t size, rdc_range *out)
{
    size_t made = 0;
    uint64_t at = 0, last = 0;
    for (size_t i = 0; i < count; i++) {
        const rdc_range *range = &ranges[i];
        if (range->offset < last || !fits(range->offset, range->length))
            return -1;
        const uint64_t end = last = range->offset + range->length;
        const uint64_t low = range->offset > reach ? range->offset - reach : 0, start = low > at ? low : at;
        uint64_t stop = size;
        if (i + 1 < count && ranges[i + 1].offset < stop)
            stop = ranges[i + 1].offset;
        if (stop > end && stop - end > reach)
            stop = end + reach;
        if (start < range->offset)
            out[made++] = (rdc_range){start, range->offset - start};
        if (end < stop)
            out[made++] = (rdc_range){end, stop - end};
        at = end < stop ? stop : end;
    }
    return (int64_t)made;
}

int64_t rdc_take_ranges(const rdc_range *ranges, size_t count, uint64_t start, const uint8_t *data, size_t length,
                        uint8_t *out)
{
    size_t made = 0, at = 0; /* in order and not over each other, so that no more is made than there is */
    for (size_t i = 0; i < count; i++) {
        const rdc_range *range = &ranges[i];
        if (range->offset < start || range->offset - start < at || range->offset - start > length ||
            range->length > length - (range->offset - start))
            return -1;
        at = (size_t)(range->offset - start);
        if (range->length)
            memcpy(out + made, data + at, (size_t)range->length);
        made += (size_t)range->length;
        at += (size_t)range->length;
    }
    return (int64_t)made;
}
