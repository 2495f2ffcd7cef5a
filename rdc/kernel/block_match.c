/*
 * block_match.c - keyed fingerprints of fixed blocks, and the search for them at every offset of a base.
 *
 * A form (block_form.h) looks at all offsets through a filter of the fingerprints; what it lets pass is looked up here.
 */
#include "block_match.h"

#include <stdlib.h>
#include <string.h>

#include "block_form.h"

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
    while (length) {
        const size_t part = length < size ? length : size;
        out = put(out, rdc_blocks->value(hash.key, data, part), width);
        data += part;
        length -= part;
    }
}

typedef struct {
    uint64_t value;
    uint64_t first; /* offset, or RDC_NOWHERE */
} target;

/* Targets are dealt out to buckets, about one each, and ordered by value in each: a peer that knows the key can put all
 * of its fingerprints into one bucket, and then has them found by halves. */
typedef struct {
    uint64_t mask; /* of a fingerprint's bits */
    block_filter filter;
    target *targets; /* bucket by bucket, each value once in its own */
    size_t *start;   /* of each bucket, and behind the last */
    unsigned shift;  /* leaves the bits that choose a bucket */
    uint64_t last_value; /* looked up last, and what was found: runs of one byte pass at every offset */
    target *last;
} search;

/* Bytes of the filter's bits: three of a thousand offsets pass them by chance, up to the size that most second-level caches
 * have. With 65,536 fingerprints it is six of a thousand. */
#define FILTER_MIN 512
#define FILTER_MAX (1 << 19)
#define BYTES_A_TARGET 16

/* Fingerprints up to which a sieve lets fewer than one of a hundred offsets pass by chance: of 64 four in a thousand
 * pass six planes, of 24 nine in ten thousand four. */
#define SIEVED_MAX 64

static unsigned planes_for(size_t count, unsigned width)
{
    const unsigned planes = count <= 8 ? 3 : count <= 24 ? 4 : RDC_PLANES;
    return count <= SIEVED_MAX && planes <= width ? planes : 0;
}

#define SORTED_BY_HAND 16

static int by_value(const void *left, const void *right)
{
    const uint64_t u = ((const target *)left)->value, v = ((const target *)right)->value;
    return (u > v) - (u < v);
}

/* Fingerprint i: eight bytes at once where they are there. */
static inline uint64_t wanted(const search *s, const uint8_t *fingerprints, size_t count, unsigned width, size_t i)
{
    const uint8_t *from = fingerprints + i * width;
    return (count - i) * width >= 8 ? rdc_load64(from) & s->mask : fingerprint_at(from, width);
}

static size_t bucket_of(const search *s, uint64_t value)
{
    return (size_t)(value * RDC_GOLDEN >> s->shift);
}

static target *find(const search *s, uint64_t value)
{
    const size_t bucket = bucket_of(s, value);
    size_t low = s->start[bucket], high = s->start[bucket + 1];
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (s->targets[middle].value < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->start[bucket + 1] && s->targets[low].value == value ? &s->targets[low] : NULL;
}

static void note(void *context, uint64_t full, uint64_t offset)
{
    search *s = context;
    const uint64_t value = full & s->mask;
    if (value != s->last_value) {
        s->last_value = value;
        s->last = find(s, value);
    }
    if (s->last && offset < s->last->first)
        s->last->first = offset;
}

static void sort(target *targets, size_t count)
{
    if (count > SORTED_BY_HAND) {
        qsort(targets, count, sizeof *targets, by_value);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        const target moved = targets[i];
        size_t to = i;
        for (; to && targets[to - 1].value > moved.value; to--)
            targets[to] = targets[to - 1];
        targets[to] = moved;
    }
}

/* The targets into their buckets, in order and without repetitions. */
static void deal(search *s, const uint8_t *fingerprints, size_t count, unsigned width, size_t buckets)
{
    for (size_t i = 0; i < count; i++)
        s->start[bucket_of(s, wanted(s, fingerprints, count, width, i)) + 1]++;
    for (size_t i = 0; i < buckets; i++)
        s->start[i + 1] += s->start[i];
    /* From its start on each bucket is filled; its start is then the next one's. */
    for (size_t i = 0; i < count; i++) {
        const uint64_t value = wanted(s, fingerprints, count, width, i);
        s->targets[s->start[bucket_of(s, value)]++] = (target){value, RDC_NOWHERE};
        filter_add(&s->filter, value);
    }
    size_t kept = 0, begin = 0;
    for (size_t i = 0; i < buckets; i++) {
        const size_t end = s->start[i], bucket = kept;
        sort(s->targets + begin, end - begin);
        s->start[i] = kept;
        for (; begin < end; begin++)
            if (kept == bucket || s->targets[kept - 1].value != s->targets[begin].value)
                s->targets[kept++] = s->targets[begin];
    }
    s->start[buckets] = kept;
}

/* Everything that is allocated lies in one piece, the filter's bits. */
static int search_start(search *s, const uint8_t *fingerprints, size_t count, unsigned width)
{
    size_t bytes = FILTER_MIN, buckets = 2;
    while (bytes < FILTER_MAX && bytes / BYTES_A_TARGET < count)
        bytes *= 2;
    s->shift = 63;
    for (; buckets < count; buckets *= 2)
        s->shift--;
    s->mask = fingerprint_mask(width);
    const size_t cleared = bytes + (buckets + 1) * sizeof *s->start;
    uint8_t *const memory = malloc(cleared + count * sizeof *s->targets);
    s->filter = (block_filter){memory, (bytes - 1) & s->mask >> 6, planes_for(count, width), {{0}}};
    if (!memory)
        return -1;
    memset(memory, 0, cleared);
    s->start = (size_t *)(void *)(memory + bytes);
    s->targets = (target *)(void *)(s->start + buckets + 1);
    deal(s, fingerprints, count, width, buckets);
    s->last_value = 0;
    s->last = find(s, 0);
    return 0;
}

int rdc_match_blocks(const uint8_t *key, const uint8_t *base, size_t length, size_t size, unsigned width,
                     const uint8_t *fingerprints, size_t count, uint64_t *out)
{
    search s;
    const int failed = search_start(&s, fingerprints, count, width);
    if (!failed) {
        const size_t offsets = length < size || !count ? 0 : length - size + 1;
        block_hash hash;
        block_hash_start(&hash, key, size);
        if (offsets)
            rdc_blocks->scan(&hash, base, size, offsets, &s.filter, note, &s);
        uint64_t shift = 0; /* of the block found last: its place - its own offset, mod 2^64 */
        int shifted = 0;
        for (size_t i = 0; i < count; i++) {
            const uint64_t value = wanted(&s, fingerprints, count, width, i), next = shift + i * size;
            out[i] = find(&s, value)->first;
            if (out[i] == RDC_NOWHERE)
                continue;
            if (shifted && next != out[i] && next < offsets &&
                (rdc_blocks->value(hash.key, base + next, size) & s.mask) == value)
                out[i] = next;
            shift = out[i] - i * size;
            shifted = 1;
        }
    }
    free(s.filter.bits);
    return failed;
}
