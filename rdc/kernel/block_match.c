/*
 * block_match.c - keyed fingerprints of fixed blocks, and the search for them at every offset of a base.
 *
 * f(d) = (b + a * (d[0] x^(s-1) + ... + d[s-1])) mod p with p = 2^61 - 1 and x, a, b from the session's key; its low
 * bytes travel. rdc/kernel/pure.py argues its bounds. A product with x is the one dependency from byte to byte, so four
 * independent windows advance at a time.
 */
#include "block_match.h"

#include <stdlib.h>
#include <string.h>

#include "sip.h"

#define P ((UINT64_C(1) << 61) - 1)
#define LANES 4

typedef struct {
    uint64_t x8;           /* 8 x, where x < 2^56 */
    uint64_t start;        /* f of nothing, and of zeros */
    uint64_t entering[256];
    uint64_t leaving[256]; /* both < p, for windows of one size */
} block_hash;

/* Any factors whose product is below 2^122. */
static inline uint64_t product(uint64_t u, uint64_t v)
{
    const unsigned __int128 full = (unsigned __int128)u * v;
    const uint64_t sum = ((uint64_t)full & P) + (uint64_t)(full >> 61);
    return sum >= P ? sum - P : sum;
}

static inline uint64_t sum(uint64_t u, uint64_t v)
{
    return u + v >= P ? u + v - P : u + v;
}

/* 0 <= v < p from any lazy value below 2^63: the fold leaves at most p + 3. */
static inline uint64_t canonical(uint64_t v)
{
    v = (v & P) + (v >> 61);
    return v >= P ? v - P : v;
}

/* The low bits of canonical(v), but for values 0 to 3, which may come out one less. */
static inline uint64_t folded(uint64_t v)
{
    return v + (v >> 61);
}

/* Lazy: v < 2^63 and x < 2^56 give less than 2^61 + 2^58, and two table entries keep the result below 2^63. Of 8 v x
 * the upper word is v x / 2^61, and the lower word has the 61 bits below that. */
static inline uint64_t times(uint64_t v, uint64_t x8)
{
    const unsigned __int128 full = (unsigned __int128)v * x8;
    return (uint64_t)(full >> 64) + ((uint64_t)full >> 3);
}

static uint64_t drawn(const rdc_sip *keyed, uint64_t number)
{
    rdc_sip state = *keyed;
    return rdc_sip_end(&state, number, 1);
}

static void block_hash_start(block_hash *hash, const uint8_t *key, size_t size)
{
    const rdc_sip keyed = rdc_sip_start(key);
    const uint64_t x = drawn(&keyed, 1) >> 8, a = drawn(&keyed, 2) % (P - 1) + 1, b = drawn(&keyed, 3) % P;
    uint64_t power = 1, square = x;

    for (size_t rest = size; rest; rest >>= 1, square = product(square, square))
        if (rest & 1)
            power = product(power, square);
    hash->x8 = 8 * x;
    hash->start = b;
    /* b is part of the rolling value: b x comes out and b goes in with every byte. */
    const uint64_t steady = sum(b, P - product(b, x));
    for (unsigned v = 0; v < 256; v++) {
        hash->entering[v] = sum(product(a, v), steady);
        const uint64_t gone = product(product(a, v), power);
        hash->leaving[v] = gone ? P - gone : 0;
    }
}

static inline uint64_t enter(const block_hash *hash, uint64_t v, uint8_t in)
{
    return times(v, hash->x8) + hash->entering[in];
}

static inline uint64_t slide(const block_hash *hash, uint64_t v, uint8_t in, uint8_t out)
{
    return times(v, hash->x8) + hash->entering[in] + hash->leaving[out];
}

static uint64_t block_value(const block_hash *hash, const uint8_t *data, size_t length)
{
    uint64_t v = hash->start;
    for (size_t i = 0; i < length; i++)
        v = enter(hash, v, data[i]);
    return canonical(v);
}

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
    s->mask = width == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * width) - 1;
    s->filter_mask = (slots - 1) & s->mask;
    s->filter = calloc(slots / 8, 1);
    s->targets = malloc((count ? count : 1) * sizeof *s->targets);
    if (!s->filter || !s->targets)
        return -1;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;
        for (unsigned j = 0; j < width; j++)
            value |= (uint64_t)fingerprints[i * width + j] << 8 * j;
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
        for (size_t i = 0; i < count; i++) {
            uint64_t value = 0;
            for (unsigned j = 0; j < width; j++)
                value |= (uint64_t)fingerprints[i * width + j] << 8 * j;
            out[i] = find(&s, value)->first;
            if (!i || out[i] == RDC_NOWHERE || out[i - 1] == RDC_NOWHERE)
                continue;
            const uint64_t next = out[i - 1] + size;
            if (next != out[i] && next < offsets && (block_value(&s.hash, base + next, size) & s.mask) == value)
                out[i] = next;
        }
    }
    free(s.filter);
    free(s.targets);
    return failed;
}
