/* match_near.c - searches blocks near the offsets that their neighbours predict. A fingerprint meets few
 * candidates there, so it can be short. */
#include "search/match_near.h"

#include <stdlib.h>

#include "search/variant.h"

typedef struct {
    block_hash hash;
    const uint8_t *base;
    uint64_t origin, length; /* the base's bytes origin to origin + length */
    size_t size, reach;
    uint64_t mask;
} searched_base;

/* Low halves of the values of all whole blocks of the base from `first` on. */
typedef struct {
    uint32_t *low;
    size_t room, count;
    uint64_t first;
    int filled;
} window;

static int fits(const searched_base *s, uint64_t base_offset, uint64_t length)
{
    return base_offset >= s->origin && base_offset - s->origin <= s->length && length <= s->length - (base_offset - s->origin);
}

static int matches(const searched_base *s, uint64_t base_offset, size_t length, uint64_t value)
{
    return fits(s, base_offset, length) &&
           (rdc_blocks->value(s->hash.key, s->base + (base_offset - s->origin), length) & s->mask) == value;
}

/* Fills the window with the values of blocks that begin at `start` - reach to `last` + reach, within the
 * base. */
static int fill(const searched_base *s, window *w, uint64_t start, uint64_t last)
{
    uint64_t first = start > s->reach ? start - s->reach : 0;
    if (first < s->origin)
        first = s->origin;
    w->filled = 1;
    w->count = 0;
    w->first = first;
    if (!fits(s, first, s->size))
        return 0;
    const uint64_t end = s->origin + s->length - s->size, most = last + s->reach;
    if (most < first)
        return 0;
    const size_t count = (size_t)((most < end ? most : end) - first + 1);
    if (count > w->room) {
        uint32_t *grown = realloc(w->low, count * sizeof *grown);
        if (!grown)
            return -1;
        w->low = grown;
        w->room = count;
    }
    rdc_blocks->lows(&s->hash, s->base + (first - s->origin), s->size, count, w->low);
    w->count = count;
    return 0;
}

/* Returns the first matching offset in the window between `from` and `to`. */
static uint64_t first_between(const searched_base *s, const window *w, uint64_t from, uint64_t to, uint64_t value)
{
    if (!w->count || to < w->first || to < from || from >= w->first + w->count)
        return RDC_UNPLACED;
    size_t i = from > w->first ? (size_t)(from - w->first) : 0, stop = (size_t)(to - w->first) + 1;
    if (stop > w->count)
        stop = w->count;
    for (; i < stop; i++) {
        i += rdc_blocks->find(w->low + i, stop - i, (uint32_t)s->mask, (uint32_t)value);
        if (i < stop && (s->mask <= UINT32_MAX || matches(s, w->first + i, s->size, value)))
            return w->first + i;
    }
    return RDC_UNPLACED;
}

typedef struct {
    rdc_match *row;
    size_t count;
} match_list;

static void add(match_list *found, uint64_t offset, uint64_t base_offset, uint64_t length)
{
    if (found->count) {
        rdc_match *last = &found->row[found->count - 1];
        if (last->offset + last->length == offset && last->base_offset + last->length == base_offset) {
            last->length += length;
            return;
        }
    }
    found->row[found->count++] = (rdc_match){offset, base_offset, length};
}

static uint64_t less(uint64_t base_offset, uint64_t by)
{
    return base_offset > by ? base_offset - by : 0;
}

/* Searches a whole block, which lies `left` bytes before the end of a run, within reach of the offsets its
 * neighbours predict. If both predict about the same offset, one window serves both, and no offset is
 * examined twice. Returns 0, or -1 without memory. */
static int find_near(const searched_base *s, const rdc_run *run, uint64_t left, uint64_t value, window *before, window *behind,
                     uint64_t *base_offset)
{
    const int ahead = run->before != RDC_UNPLACED, back = run->behind != RDC_UNPLACED && run->behind >= left;
    const uint64_t here = run->before + (run->length - left), there = run->behind - left, reach = s->reach;
    const uint64_t go_on = run->before + run->length;
    const int close = ahead && run->behind != RDC_UNPLACED &&
                      (go_on < run->behind ? run->behind - go_on : go_on - run->behind) <= 2 * reach;
    uint64_t from = less(here, reach), to = here + reach;

    *base_offset = RDC_UNPLACED;
    if (ahead) {
        if (!before->filled) {
            const uint64_t start = close && run->behind < go_on ? less(run->behind, left) : here;
            if (fill(s, before, start, (close && run->behind > go_on ? run->behind : go_on) - s->size))
                return -1;
        }
        *base_offset = first_between(s, before, from, to, value);
    }
    if (*base_offset != RDC_UNPLACED || !back)
        return 0;
    if (!close && !behind->filled && fill(s, behind, there, run->behind - s->size))
        return -1;
    const uint64_t low = from, high = to;
    from = less(there, reach);
    to = there + reach;
    if (ahead && here <= there && from <= high)
        from = high + 1;
    if (ahead && there < here && to >= low) {
        if (!low)
            return 0;
        to = low - 1;
    }
    *base_offset = first_between(s, close ? before : behind, from, to, value);
    return 0;
}

/* Searches all blocks of one run. Returns -1 without memory. */
static int match_run(const searched_base *s, const rdc_run *run, const uint8_t *fingerprints, unsigned width, window *before,
                     window *behind, match_list *found)
{
    uint64_t shift = run->before; /* of the match found last: offset in the base - (its distance from the run's start), mod 2^64 */
    int shifted = run->before != RDC_UNPLACED;
    before->filled = behind->filled = 0;
    for (uint64_t at = 0; at < run->length; at += s->size, fingerprints += width) {
        const uint64_t value = fingerprint_at(fingerprints, width), left = run->length - at;
        const size_t length = left < s->size ? (size_t)left : s->size;
        const int anchored = run->behind != RDC_UNPLACED && run->behind >= left;
        uint64_t base_offset = RDC_UNPLACED;
        if (shifted && matches(s, shift + at, length, value))
            base_offset = shift + at;
        else if (anchored && matches(s, run->behind - left, length, value))
            base_offset = run->behind - left;
        else if (s->reach && length == s->size && find_near(s, run, left, value, before, behind, &base_offset))
            return -1;
        if (base_offset == RDC_UNPLACED)
            continue;
        add(found, run->offset + at, base_offset, length);
        shift = base_offset - at;
        shifted = 1;
    }
    return 0;
}

int64_t rdc_match_runs(const uint8_t *key, const uint8_t *base, size_t base_length, uint64_t origin, size_t size,
                       unsigned width, size_t reach, const rdc_run *runs, size_t count, const uint8_t *fingerprints,
                       rdc_match *out)
{
    searched_base s = {.base = base,
                .origin = origin,
                .length = base_length,
                .size = size,
                .reach = reach,
                .mask = fingerprint_mask(width)};
    window before = {0}, behind = {0};
    match_list found = {out, 0};
    int failed = 0;
    block_hash_start(&s.hash, key, size);
    for (size_t i = 0; i < count && !failed; i++) {
        failed = match_run(&s, &runs[i], fingerprints, width, &before, &behind, &found);
        fingerprints += (runs[i].length / size + (runs[i].length % size != 0)) * width;
    }
    free(before.low);
    free(behind.low);
    return failed ? -1 : (int64_t)found.count;
}
