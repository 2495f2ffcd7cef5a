/* matches.c - matches, unmatched runs and ranges, see matches.h. Every loop is linear in its rows. */
#include "recipe/matches.h"

#include <string.h>

/* Returns whether the offset is valid or unknown. */
static int fits_offset(uint64_t base_offset)
{
    return base_offset == RDC_UNPLACED || base_offset <= RDC_END;
}

/* Appends a match, or lengthens the last one if both sides continue. Returns the number of matches. */
static size_t append(rdc_match *out, size_t made, uint64_t offset, uint64_t base_offset, uint64_t length)
{
    if (made) {
        rdc_match *last = out + made - 1;
        if (last->offset + last->length == offset && last->base_offset + last->length == base_offset) {
            last->length += length;
            return made;
        }
    }
    out[made] = (rdc_match){offset, base_offset, length};
    return made + 1;
}

int64_t rdc_fill_offsets(const uint64_t *base_offsets, const uint64_t *more, size_t count, uint64_t shift, uint64_t *out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = base_offsets[i];
        if (base_offsets[i] != RDC_UNPLACED || more[i] == RDC_UNPLACED)
            continue;
        if (!rdc_fits(more[i], shift))
            return -1;
        out[i] = more[i] + shift;
    }
    return (int64_t)count;
}

int64_t rdc_block_matches(uint64_t offset, uint64_t size, const uint64_t *base_offsets, size_t count, rdc_match *out)
{
    size_t made = 0;
    if (!size || !rdc_fits(offset, 0) || count > (RDC_END - offset) / size)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (base_offsets[i] == RDC_UNPLACED)
            continue;
        if (!rdc_fits(base_offsets[i], size))
            return -1;
        made = append(out, made, offset + i * size, base_offsets[i], size);
    }
    return (int64_t)made;
}

int64_t rdc_join_matches(const rdc_match *first, size_t firsts, const rdc_match *second, size_t seconds, rdc_match *out)
{
    size_t made = 0, i = 0, j = 0;
    uint64_t end = 0;
    while (i < firsts || j < seconds) {
        const rdc_match *next =
            j == seconds || (i < firsts && first[i].offset <= second[j].offset) ? &first[i++] : &second[j++];
        if (next->offset < end || !rdc_fits(next->offset, next->length) || !rdc_fits(next->base_offset, next->length))
            return -1;
        end = next->offset + next->length;
        made = append(out, made, next->offset, next->base_offset, next->length);
    }
    return (int64_t)made;
}

/* Returns the offset `length` bytes before this one, or RDC_UNPLACED if that is before the base. */
static uint64_t less(uint64_t base_offset, uint64_t length)
{
    return base_offset != RDC_UNPLACED && base_offset >= length ? base_offset - length : RDC_UNPLACED;
}

/* Writes the parts of one run that are worth asking about, at most 2. Returns their number. */
static size_t open_run(uint64_t start, uint64_t end, uint64_t before, uint64_t behind, const rdc_run_limits *o,
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

int64_t rdc_unmatched_runs(const rdc_match *matches, size_t count, uint64_t start, uint64_t end, uint64_t before,
                      uint64_t behind, const rdc_run_limits *limits, uint64_t most, rdc_run *out)
{
    uint64_t at = start, base_offset = before;
    size_t made = 0;
    if (!limits->size || limits->ends > RDC_END / 2 || end > RDC_END || !fits_offset(before) || !fits_offset(behind))
        return -1;
    for (size_t i = 0; i <= count; i++) {
        const rdc_match match = i < count ? matches[i] : (rdc_match){end, behind, 0};
        if (match.offset < at || match.offset > end || match.length > end - match.offset ||
            (i < count && !rdc_fits(match.base_offset, match.length)))
            return -1;
        if (match.offset - at >= limits->tail && match.offset > at) {
            if (made >= most)
                break;
            made += open_run(at, match.offset, base_offset, match.base_offset, limits, out + made);
        }
        at = match.offset + match.length;
        base_offset = match.base_offset + match.length;
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

int64_t rdc_range_reads(const rdc_range *ranges, size_t count, uint64_t close, uint64_t most, rdc_read *out)
{
    size_t made = 0;
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        const rdc_range *range = &ranges[i];
        rdc_read *last = made ? out + made - 1 : NULL;
        if (range->offset < end || !rdc_fits(range->offset, range->length))
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
        if (range->offset < last || !rdc_fits(range->offset, range->length))
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
    size_t made = 0, at = 0; /* ranges are ordered and disjoint, so no more is made than there is */
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
