/* scalar.c - the block search in scalar C.
 *
 * A look-up is the only dependency from byte to byte. So four windows advance at a time, each over a
 * quarter of the offsets. */
#include "search/variant.h"

#define LANES 4

/* Compilers tend to put two lanes into one vector and extract each index again. */
#define SCALAR(v) __asm__("" : "+r"(v))

static uint64_t value_plain(const rdc_block_key *key, const uint8_t *data, size_t length)
{
    return scaled_value(key, plain_value(key, data, length));
}

/* Where the lanes begin, and the values of what precedes each window's last byte. The last lane ends at the last offset:
 * where the lanes do not divide the offsets, some are looked at twice. Returns the offsets of a lane. */
static size_t lanes(block_value value, const block_hash *hash, const uint8_t *base, size_t size, size_t offsets,
                    size_t start[LANES], uint64_t v[LANES])
{
    const size_t a_lane = (offsets + LANES - 1) / LANES;
    for (size_t lane = 0; lane < LANES; lane++) {
        start[lane] = lane * a_lane < offsets - a_lane ? lane * a_lane : offsets - a_lane;
        v[lane] = value(hash->key, base + start[lane], size - 1);
    }
    return a_lane;
}

/* A separate function, because its registers would be missing in the loop. Lanes follow each other: of
 * equal values the first suffices. */
__attribute__((noinline)) static void hand_over(const block_filter *filter, const uint64_t now[LANES],
                                                const size_t start[LANES], size_t at, block_hits take, void *search)
{
    block_hit hits[LANES];
    size_t count = 0;
    for (size_t lane = 0; lane < LANES; lane++)
        if ((filter_look_twice(filter, now[lane]) & 1) && !(count && hits[count - 1].value == now[lane]))
            hits[count++] = (block_hit){now[lane], start[lane] + at};
    take(search, hits, count);
}

void rdc_scan_plain(block_value value, const block_hash *hash, const uint8_t *base, size_t size, size_t offsets,
                    const block_filter *filter, block_hits take, void *search)
{
    size_t start[LANES];
    uint64_t v[LANES];
    const size_t a_lane = lanes(value, hash, base, size, offsets, start, v);
    /* Four names, so that they stay in registers. One branch for all of them is hardly ever taken. */
    uint64_t v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3];
    const uint8_t *w0 = base, *w1 = base + start[1], *w2 = base + start[2], *w3 = base + start[3];
    for (size_t i = 0; i < a_lane; i++) {
        v0 = enter(hash, v0, w0[i + size - 1]);
        v1 = enter(hash, v1, w1[i + size - 1]);
        v2 = enter(hash, v2, w2[i + size - 1]);
        v3 = enter(hash, v3, w3[i + size - 1]);
        SCALAR(v0);
        SCALAR(v1);
        SCALAR(v2);
        SCALAR(v3);
        const unsigned looks = filter_look(filter, v0) | filter_look(filter, v1) | filter_look(filter, v2) |
                               filter_look(filter, v3);
        if (__builtin_expect(looks & 1, 0)) {
            const uint64_t now[LANES] = {v0, v1, v2, v3};
            hand_over(filter, now, start, i, take, search);
        }
        v0 = leave(hash, v0, w0[i]);
        v1 = leave(hash, v1, w1[i]);
        v2 = leave(hash, v2, w2[i]);
        v3 = leave(hash, v3, w3[i]);
    }
}

void rdc_lows_plain(block_value value, const block_hash *hash, const uint8_t *base, size_t size, size_t offsets,
                    uint32_t *low)
{
    size_t start[LANES];
    uint64_t v[LANES];
    const size_t a_lane = lanes(value, hash, base, size, offsets, start, v);
    for (size_t i = 0; i < a_lane; i++)
        for (size_t lane = 0; lane < LANES; lane++) {
            const uint8_t *window = base + start[lane] + i;
            v[lane] = enter(hash, v[lane], window[size - 1]);
            SCALAR(v[lane]);
            low[start[lane] + i] = (uint32_t)v[lane];
            v[lane] = leave(hash, v[lane], window[0]);
        }
}

static int usable(void)
{
    return 1;
}

static void scan(const block_hash *hash, const uint8_t *base, size_t size, size_t offsets, const block_filter *filter,
                 block_hits take, void *search)
{
    rdc_scan_plain(value_plain, hash, base, size, offsets, filter, take, search);
}

static void lows(const block_hash *hash, const uint8_t *base, size_t size, size_t offsets, uint32_t *low)
{
    rdc_lows_plain(value_plain, hash, base, size, offsets, low);
}

static size_t find(const uint32_t *number, size_t count, uint32_t mask, uint32_t wanted)
{
    size_t i = 0;
    /* Eight at a time, without a branch for each. */
    for (; count - i >= 8; i += 8) {
        unsigned any = 0;
        for (unsigned j = 0; j < 8; j++)
            any |= (number[i + j] & mask) == wanted;
        if (any)
            break;
    }
    while (i < count && (number[i] & mask) != wanted)
        i++;
    return i;
}

const rdc_block_variant rdc_blocks_plain = {"c", usable, 128, value_plain, scan, lows, find};
