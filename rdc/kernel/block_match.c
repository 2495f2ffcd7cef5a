/*
 * block_match.c - keyed fingerprints of fixed blocks, and the search for them at every offset of a base.
 *
 * A product with x is the one dependency from byte to byte, so four independent windows advance at a time.
 */
#include "block_match.h"

#include <stdlib.h>
#include <string.h>

#include "block_hash.h"

#define LANES 4

/* `LANES` windows of `size` bytes, `stride` bytes apart; lazy values. */
static void lane_values(const block_hash *hash, const uint8_t *data, size_t stride, size_t size, uint64_t *v)
{
    for (unsigned lane = 0; lane < LANES; lane++)
        v[lane] = hash->start;
    for (size_t i = 0; i < size; i++)
        for (unsigned lane = 0; lane < LANES; lane++)
            v[lane] = enter(hash, v[lane], data[lane * stride + i]);
}

static uint8_t *put(uint8_t *out, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width; i++)
        *out++ = (uint8_t)(value >> 8 * i);
    return out;
}

void rdc_block_fingerprints(const uint8_t *key, const uint8_t *data, size_t length, size_t size, unsigned width,
                            uint8_t *out)
{
    block_hash hash;
    block_hash_start(&hash, key, size);
    for (; length / LANES >= size; data += LANES * size, length -= LANES * size) {
        uint64_t v[LANES];
        lane_values(&hash, data, size, size, v);
        for (unsigned lane = 0; lane < LANES; lane++)
            out = put(out, canonical(v[lane]), width);
    }
    while (length) {
        const size_t part = length < size ? length : size;
        out = put(out, block_value(&hash, data, part), width);
        data += part;
        length -= part;
    }
}

typedef struct {
    uint64_t value;
    uint64_t first; /* offset, or RDC_NOWHERE */
} target;

typedef struct {
    block_hash hash;
    uint64_t mask;   /* of a fingerprint's bits */
    uint8_t *filter; /* a bit a slot */
    uint64_t filter_mask; /* of the low bits of a fingerprint that choose a slot of the filter */
    target *targets;      /* by value, each once */
    size_t count;
} search;

/* Slots of the filter: the fewest take 4 KiB, the most half a second-level cache. */
#define SLOTS_MIN (1 << 15)
#define SLOTS_MAX (1 << 22)
#define SLOTS_A_TARGET 256

static int by_value(const void *left, const void *right)
{
    const uint64_t u = ((const target *)left)->value, v = ((const target *)right)->value;
    return (u > v) - (u < v);
}

static target *find(const search *s, uint64_t value)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (s->targets[middle].value < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->count && s->targets[low].value == value ? &s->targets[low] : NULL;
}

/* Other bits of a masked fingerprint for a second look at the filter: the search among the targets is slow. */
static inline uint64_t second(uint64_t value)
{
    return value * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

static inline unsigned look(const uint8_t *filter, uint64_t slot)
{
    return filter[slot >> 3] >> (slot & 7);
}

static void set(const search *s, uint64_t value)
{
    const uint64_t slot = value & s->filter_mask;
    s->filter[slot >> 3] |= (uint8_t)(1 << (slot & 7));
}

static void admit(const search *s, uint64_t value)
{
    set(s, value);
    if (value < 4)
        set(s, value - 1); /* see folded() */
    set(s, second(value));
}

static void note(const search *s, uint64_t lazy, uint64_t offset)
{
    const uint64_t value = canonical(lazy) & s->mask;
    if (!(look(s->filter, second(value) & s->filter_mask) & 1))
        return;
    target *found = find(s, value);
    if (found && offset < found->first)
        found->first = offset;
}

/* The windows at `offsets` consecutive offsets from the start on, in every lane, the lanes as many bytes apart. */
static void scan_lanes(const search *s, const uint8_t *base, size_t size, size_t offsets)
{
    uint64_t warm[LANES];
    lane_values(&s->hash, base, offsets, size, warm);
    /* Four names, so that they stay in registers; one branch for all of them, hardly ever taken. */
    uint64_t v0 = warm[0], v1 = warm[1], v2 = warm[2], v3 = warm[3];
    const uint8_t *const filter = s->filter;
    const uint64_t mask = s->filter_mask;
    const uint8_t *w0 = base, *w1 = w0 + offsets, *w2 = w1 + offsets, *w3 = w2 + offsets;
    for (size_t i = 0;; i++) {
        const unsigned looks = look(filter, folded(v0) & mask) | look(filter, folded(v1) & mask) |
                               look(filter, folded(v2) & mask) | look(filter, folded(v3) & mask);
        if (__builtin_expect(looks & 1, 0)) {
            note(s, v0, i);
            note(s, v1, i + offsets);
            note(s, v2, i + 2 * offsets);
            note(s, v3, i + 3 * offsets);
        }
        if (i + 1 == offsets)
            return;
        v0 = slide(&s->hash, v0, w0[i + size], w0[i]);
        v1 = slide(&s->hash, v1, w1[i + size], w1[i]);
        v2 = slide(&s->hash, v2, w2[i + size], w2[i]);
        v3 = slide(&s->hash, v3, w3[i + size], w3[i]);
    }
}

static void scan_one(const search *s, const uint8_t *base, size_t size, size_t begin, size_t end)
{
    uint64_t v = s->hash.start;
    for (size_t i = 0; i < size; i++)
        v = enter(&s->hash, v, base[begin + i]);
    for (size_t i = begin;; i++) {
        if (__builtin_expect(look(s->filter, folded(v) & s->filter_mask) & 1, 0))
            note(s, v, i);
        if (i + 1 == end)
            return;
        v = slide(&s->hash, v, base[i + size], base[i]);
    }
}

static int search_start(search *s, const uint8_t *fingerprints, size_t count, unsigned width)
{
    size_t slots = SLOTS_MIN;
    while (slots < SLOTS_MAX && slots / SLOTS_A_TARGET < count)
        slots *= 2;
    s->mask = fingerprint_mask(width);
    s->filter_mask = (slots - 1) & s->mask;
    s->filter = calloc(slots / 8, 1);
    s->targets = malloc((count ? count : 1) * sizeof *s->targets);
    if (!s->filter || !s->targets)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const uint64_t value = fingerprint_at(fingerprints + i * width, width);
        s->targets[i] = (target){value, RDC_NOWHERE};
        admit(s, value);
    }
    qsort(s->targets, count, sizeof *s->targets, by_value);
    s->count = 0;
    for (size_t i = 0; i < count; i++)
        if (!s->count || s->targets[s->count - 1].value != s->targets[i].value)
            s->targets[s->count++] = s->targets[i];
    return 0;
}

int rdc_match_blocks(const uint8_t *key, const uint8_t *base, size_t length, size_t size, unsigned width,
                     const uint8_t *fingerprints, size_t count, uint64_t *out)
{
    search s;
    const int failed = search_start(&s, fingerprints, count, width);
    if (!failed) {
        block_hash_start(&s.hash, key, size);
        const size_t offsets = length < size || !count ? 0 : length - size + 1;
        /* Each lane reads `size` bytes before its first window is whole: worth it where there are more windows. */
        const size_t a_lane = offsets / LANES >= size ? offsets / LANES : 0;
        if (a_lane)
            scan_lanes(&s, base, size, a_lane);
        if (a_lane * LANES < offsets)
            scan_one(&s, base, size, a_lane * LANES, offsets);
        uint64_t shift = 0; /* of the block found last: its place - its own offset, mod 2^64 */
        int shifted = 0;
        for (size_t i = 0; i < count; i++) {
            const uint64_t value = fingerprint_at(fingerprints + i * width, width), next = shift + i * size;
            out[i] = find(&s, value)->first;
            if (out[i] == RDC_NOWHERE)
                continue;
            if (shifted && next != out[i] && next < offsets &&
                (block_value(&s.hash, base + next, size) & s.mask) == value)
                out[i] = next;
            shift = out[i] - i * size;
            shifted = 1;
        }
    }
    free(s.filter);
    free(s.targets);
    return failed;
}
