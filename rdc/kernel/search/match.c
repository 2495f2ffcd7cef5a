/* match.c - keyed fingerprints of fixed blocks, and their search at every offset of a base.
 *
 * A variant (variant.h) scans all offsets through a filter of the fingerprints. The offsets that pass are
 * looked up here. */
#include "search/match.h"

#include <stdlib.h>
#include <string.h>

#include "mix.h"
#include "search/variant.h"
#include "prefetch.h"

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
        rdc_fetch_all_ahead(data, part);
        out = put(out, rdc_blocks->value(hash.key, data, part), width);
        data += part;
        length -= part;
    }
}

typedef struct {
    uint64_t value;
    uint64_t first; /* offset, or RDC_NOWHERE */
} wanted_value;

/* The wanted values are distributed to buckets, about one each, and sorted within a bucket. A peer that
 * knows the key can put all of its fingerprints into one bucket; binary search then finds them. */
typedef struct {
    uint64_t mask; /* of a fingerprint's bits */
    block_filter filter;
    wanted_value *wanted_values; /* bucket by bucket, each value once in its own */
    size_t *start;   /* of each bucket, and behind the last */
    unsigned shift;  /* leaves the bits that choose a bucket */
    uint64_t last_value; /* the value looked up last and its result: in constant runs, all offsets pass */
    wanted_value *last;
} search;

/* Bytes of the filter's first look: up to the size of most second-level caches. */
#define FILTER_MIN 512
#define FILTER_MAX (1 << 19)

/* The second look has about as many words as fingerprints. One offset in sixty passes it by chance. */
#define AGAIN_MIN_BITS 4
#define AGAIN_MAX_BITS 18

/* Up to this many fingerprints, a sieve lets fewer than one offset in a hundred pass by chance. With 64
 * fingerprints and six planes, four in a thousand pass. With 24 and four planes, nine in ten thousand
 * pass. */
#define SIEVED_MAX 64

static unsigned planes_for(size_t count, unsigned width)
{
    const unsigned planes = count <= 8 ? 3 : count <= 24 ? 4 : RDC_PLANES;
    return count <= SIEVED_MAX && planes <= width ? planes : 0;
}

#define SORTED_BY_HAND 16

static int by_value(const void *left, const void *right)
{
    const uint64_t u = ((const wanted_value *)left)->value, v = ((const wanted_value *)right)->value;
    return (u > v) - (u < v);
}

/* Returns fingerprint i. Reads eight bytes at once if they exist. */
static inline uint64_t wanted(const search *s, const uint8_t *fingerprints, size_t count, unsigned width, size_t i)
{
    const uint8_t *from = fingerprints + i * width;
    return (count - i) * width >= 8 ? rdc_load64(from) & s->mask : fingerprint_at(from, width);
}

static size_t bucket_of(const search *s, uint64_t value)
{
    return (size_t)(value * RDC_GOLDEN >> s->shift);
}

/* A bucket with few values, the common case, is searched without a branch that depends on the values. */
static wanted_value *find(const search *s, uint64_t value)
{
    const size_t bucket = bucket_of(s, value);
    const size_t end = s->start[bucket + 1];
    size_t low = s->start[bucket], high = end;
    while (high - low > 2) {
        const size_t middle = low + (high - low) / 2;
        if (s->wanted_values[middle].value < value)
            low = middle + 1;
        else
            high = middle;
    }
    /* One more than there are can be read. */
    low += (size_t)((low < high) & (s->wanted_values[low].value < value));
    low += (size_t)((low < high) & (s->wanted_values[low].value < value));
    return ((low < end) & (s->wanted_values[low].value == value)) ? &s->wanted_values[low] : NULL;
}

static void note(void *context, const block_hit *hits, size_t count)
{
    search *s = context;
    uint64_t last_value = s->last_value;
    wanted_value *last = s->last;
    for (size_t i = 0; i < count; i++) {
        const uint64_t value = hits[i].value & s->mask;
        if (value != last_value) {
            last_value = value;
            last = find(s, value);
        }
        if (last && hits[i].offset < last->first)
            last->first = hits[i].offset;
    }
    s->last_value = last_value;
    s->last = last;
}

static void sort(wanted_value *wanted_values, size_t count)
{
    if (count > SORTED_BY_HAND) {
        qsort(wanted_values, count, sizeof *wanted_values, by_value);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        const wanted_value moved = wanted_values[i];
        size_t to = i;
        for (; to && wanted_values[to - 1].value > moved.value; to--)
            wanted_values[to] = wanted_values[to - 1];
        wanted_values[to] = moved;
    }
}

/* Puts the wanted values into their buckets, sorted and without repetitions. */
static void deal(search *s, const uint8_t *fingerprints, size_t count, unsigned width, size_t buckets)
{
    for (size_t i = 0; i < count; i++)
        s->start[bucket_of(s, wanted(s, fingerprints, count, width, i)) + 1]++;
    for (size_t i = 0; i < buckets; i++)
        s->start[i + 1] += s->start[i];
    /* Each bucket is filled from its start; its start then is the next bucket's start. */
    for (size_t i = 0; i < count; i++) {
        const uint64_t value = wanted(s, fingerprints, count, width, i);
        s->wanted_values[s->start[bucket_of(s, value)]++] = (wanted_value){value, RDC_NOWHERE};
        filter_add(&s->filter, value);
    }
    size_t unique = 0, begin = 0;
    for (size_t i = 0; i < buckets; i++) {
        const size_t end = s->start[i], bucket = unique;
        sort(s->wanted_values + begin, end - begin);
        s->start[i] = unique;
        for (; begin < end; begin++)
            if (unique == bucket || s->wanted_values[unique - 1].value != s->wanted_values[begin].value)
                s->wanted_values[unique++] = s->wanted_values[begin];
    }
    s->start[buckets] = unique;
    s->wanted_values[unique] = (wanted_value){0, RDC_NOWHERE};
}

/* One allocation holds everything; it begins with the filter's bits. */
static int search_start(search *s, const uint8_t *fingerprints, size_t count, unsigned width)
{
    size_t bytes = FILTER_MIN, buckets = 2;
    while (bytes < FILTER_MAX && 8 * bytes / rdc_blocks->first_look < count)
        bytes *= 2;
    s->shift = 63;
    for (; buckets < count; buckets *= 2)
        s->shift--;
    s->mask = fingerprint_mask(width);
    unsigned again_bits = AGAIN_MIN_BITS;
    while (again_bits < AGAIN_MAX_BITS && (size_t)1 << again_bits < count)
        again_bits++;
    const size_t again = sizeof *s->filter.again << again_bits;
    /* The data behind the filter's bits makes reading past their end safe. */
    const size_t cleared = bytes + again + (buckets + 1) * sizeof *s->start;
    uint8_t *const memory = malloc(cleared + (count + 1) * sizeof *s->wanted_values);
    if (!memory)
        return -1;
    memset(memory, 0, cleared);
    s->filter = (block_filter){width < 4 ? 4 : width,
                               memory,
                               (bytes - 1) & s->mask >> 6,
                               (uint32_t *)(void *)(memory + bytes),
                               (uint32_t)s->mask,
                               32 - again_bits,
                               planes_for(count, width),
                               {{0}}};
    s->start = (size_t *)(void *)(memory + bytes + again);
    s->wanted_values = (wanted_value *)(void *)(s->start + buckets + 1);
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
        uint64_t shift = 0; /* of the block found last: its offset in the base - its own offset, mod 2^64 */
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
    if (!failed)
        free(s.filter.bits);
    return failed;
}
