/*
 * vector_body.h - the block search in vectors of bytes: included by each variant, which says what a vector is.
 *
 * The offsets are dealt out to the bytes of a vector, a stretch to each lane; eight vectors hold the eight bytes of all
 * lanes' values. As the hash shifts by whole bytes, a vector takes the place of the next, and all that is computed are
 * products of one byte with a constant, of eight bytes: for the byte shifted out, the one that enters, the one that
 * leaves. Such a product is linear in the byte's bits: eight bit matrices, or eight pairs of tables by half a byte.
 *
 * Sixteen steps make a batch. Its bytes are turned, so that a vector has those of one step; vector_filter.h says which lanes
 * pass the filter. All loads are in bounds because a lane has a multiple of sixteen offsets, and the last one ends where the
 * base does.
 *
 * V   a vector of W bytes, W a multiple of 16, W/16 independent groups of 16 lanes
 * FN  the attributes of a function, NAME(f) its name, VALUE the variant's function of one block
 * LOAD(p), STORE(p, v), XOR(a, b), ZERO
 * ROWS(row, i, at)    in group g the 16 bytes at row[16 g + i] + at
 * LOW(a, b), HIGH(a, b)    in each group the lower, the upper halves' bytes by turns
 * MAP, MAKE(map, table), INDEX, SPLIT(v), PRODUCT(map, k, index)    a product's byte k
 * BIT_OF(v)    1 << the three lowest bits, in each byte
 * POSITION(v, mask) v >> 6 & mask, in words of 32 bits; EIGHTHS(v) v >> 3 in bytes with anything above
 * OR(a, b), HAS(all, some)    a mask of the lanes where all bits of some are set in all
 * AND(a, b), MIN(a, b), HALVED(v)    of unsigned bytes; the high halves of bytes with anything above them
 * NIBBLE(table, v)    the table's byte (of 16) at each byte's low half
 * ANY(v)    a mask of the lanes that are not 0
 * SAME(v, mask, wanted)    that of the bytes of words of 32 bits that are `wanted` under a mask
 *
 * And where gathers are quick:
 * GATHER(bits, position) the bytes at the positions of the lanes, as `words` has them
 * LIST(mask, first, to)    writes first + the number of each lane in the mask, of 16 bits, and up to W more; how many
 * LOOK_AGAIN(batch, filter, number, count)    what `look_again` does
 */

#define BATCH 16

/* Bytes of a window up to which its lanes' bytes are kept turned: of longer ones they would fill the second-level cache. */
#define RING_MAX 4096

/* Offsets of a lane from which on that pays. */
#define RING_MIN 512

typedef struct {
    MAP out, in, gone; /* of the byte shifted out, that enters, that leaves */
} NAME(maps);

FN void NAME(turn)(const uint8_t *const row[W], size_t at, uint8_t turned[BATCH][W])
{
    V a[BATCH], b[BATCH];
    for (int i = 0; i < BATCH; i++)
        a[i] = ROWS(row, i, at);
    /* Each round moves the highest bit of a row's number to the lowest of a column's: four exchange them. */
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < BATCH / 2; i++)
            b[2 * i] = LOW(a[i], a[i + 8]), b[2 * i + 1] = HIGH(a[i], a[i + 8]);
        for (int i = 0; i < BATCH / 2; i++)
            a[2 * i] = LOW(b[i], b[i + 8]), a[2 * i + 1] = HIGH(b[i], b[i + 8]);
    }
    for (int i = 0; i < BATCH; i++)
        STORE(turned[i], a[i]);
}

FN void NAME(step)(const NAME(maps) * maps, V v[8], V in)
{
    const INDEX out = SPLIT(v[7]), entering = SPLIT(in);
    for (int k = 7; k > 0; k--)
        v[k] = XOR(v[k - 1], XOR(PRODUCT(maps->out, k, out), PRODUCT(maps->in, k, entering)));
    v[0] = XOR(PRODUCT(maps->out, 0, out), PRODUCT(maps->in, 0, entering));
}

FN void NAME(drop)(const NAME(maps) * maps, V v[8], V first)
{
    const INDEX gone = SPLIT(first);
    for (int k = 0; k < 8; k++)
        v[k] = XOR(v[k], PRODUCT(maps->gone, k, gone));
}

/* The low halves as words: group g of word[m] has those of the lanes 16 g + 4 m to 16 g + 4 m + 3. */
FN void NAME(words)(const V v[4], V word[4])
{
    const V a = LOW(v[0], v[2]), b = HIGH(v[0], v[2]), c = LOW(v[1], v[3]), d = HIGH(v[1], v[3]);
    word[0] = LOW(a, c), word[1] = HIGH(a, c), word[2] = LOW(b, d), word[3] = HIGH(b, d);
}

#define LANE_OF(m, group, e) (16 * (group) + 4 * (m) + (e))
#define WORD_OF(m, group, e) ((m) * (W / 4) + 4 * (group) + (e))

/* The lanes' bytes, turned, from their entering to their leaving: turning them once more takes as long as both products.
 * Row n has those that enter at offsets n, n + rows, ..; the first BATCH rows are repeated behind the last, so that any BATCH
 * in a row lie behind each other. */
typedef struct {
    void *memory;
    uint8_t (*row)[W];
    size_t rows; /* a multiple of BATCH; 0: longer windows are turned twice */
} NAME(ring);

static inline NAME(ring) NAME(ring_for)(size_t size, size_t offsets)
{
    NAME(ring) ring = {NULL, NULL, (size + 2 * BATCH - 2) / BATCH * BATCH};
    if (size <= RING_MAX && offsets / W >= RING_MIN)
        ring.memory = malloc((ring.rows + BATCH) * W + W - 1);
    if (ring.memory)
        ring.row = (void *)(((uintptr_t)ring.memory + W - 1) / W * W);
    else
        ring.rows = 0;
    return ring;
}

/* The lanes' first bytes, and their values of the size - 1 bytes from there on, which are kept in the ring. */
FN void NAME(begin)(const NAME(maps) * maps, const uint8_t *base, size_t size, size_t offsets, size_t a_lane,
                    const uint8_t *row[W], V v[8], const NAME(ring) * ring)
{
    uint8_t turned[BATCH][W];
    for (size_t lane = 0; lane < W; lane++)
        row[lane] = base + (lane * a_lane < offsets - a_lane ? lane * a_lane : offsets - a_lane);
    for (int k = 0; k < 8; k++)
        v[k] = ZERO;
    for (size_t at = 0; at + 1 < size; at += BATCH) {
        const size_t steps = size - 1 - at < BATCH ? size - 1 - at : BATCH;
        uint8_t(*const in)[W] = ring->rows ? ring->row + (ring->rows - (size - 1) + at) : turned;
        NAME(turn)(row, at, in);
        for (size_t i = 0; i < steps; i++)
            NAME(step)(maps, v, LOAD(in[i]));
    }
}

FN void NAME(make)(NAME(maps) * maps, const block_hash *hash)
{
    MAKE(maps->out, hash->key->reduce[0]);
    MAKE(maps->in, hash->key->scaled[0]);
    MAKE(maps->gone, hash->leaving);
}

/* Whether the lanes' way is the faster one: what they cost besides, in offsets. There are at least W * BATCH then, and a lane
 * has no more offsets than there are. */
static inline int NAME(pays)(size_t size, size_t offsets)
{
    return offsets >= PAYS_FROM + size * PAYS_FACTOR;
}

/* Offsets to look through at a time: long bases in equal parts that stay in the second-level cache, each worth its lanes'
 * beginning. */
static inline size_t NAME(part)(size_t size, size_t offsets)
{
    const size_t most = W * (size < 256 ? 1024 : 8 * size), parts = (offsets + most - 1) / most;
    return (offsets + parts - 1) / parts;
}

/* Offsets of a lane, at most those of the part. An odd number of batches lets the lanes lie in different sets of the
 * caches. */
static inline size_t NAME(lane)(size_t part)
{
    const size_t batches = (part + W * BATCH - 1) / (W * BATCH);
    return (batches < 16 ? batches : batches | 1) * BATCH;
}

#include "search/vector_filter.h"

/* Hits that are handed over together, and more from one batch. */
#define TOGETHER 64

FN void NAME(scan)(const block_hash *hash, const uint8_t *base, size_t size, size_t offsets, const block_filter *filter,
                   block_hits take, void *search)
{
    NAME(maps) maps;
    const uint8_t *row[W];
    V v[8];
    uint8_t entering[BATCH][W], leaving[BATCH][W];
    NAME(batch) batch;
    uint16_t number[BATCH * W + W];
    block_hit collected[TOGETHER + BATCH * W];
    size_t holds = 0;
    if (!NAME(pays)(size, offsets)) {
        rdc_scan_plain(VALUE, hash, base, size, offsets, filter, take, search);
        return;
    }
    NAME(make)(&maps, hash);
    const NAME(ring) ring = NAME(ring_for)(size, offsets);
    const size_t most = NAME(part)(size, offsets);
    for (size_t begin = 0, part; begin < offsets; begin += part) {
        /* A rest too short for the lanes goes with the last part. */
        part = offsets - begin < most + W * BATCH ? offsets - begin : most;
        const size_t a_lane = NAME(lane)(part);
        NAME(begin)(&maps, base + begin, size, part, a_lane, row, v, &ring);
        int goes_on = 0; /* something passed in the step before the batch */
        size_t newest = 0, oldest = ring.rows ? ring.rows - (size - 1) : 0; /* rows of the ring */
        for (size_t at = 0; at < a_lane; at += BATCH) {
            /* The next part, in the order it lies. */
            const size_t ahead = begin + part + size + W * at;
            for (size_t i = 0; i < W * BATCH && ahead + i < offsets; i += 64)
                __builtin_prefetch(base + ahead + i);
            uint8_t(*in)[W] = entering, (*first)[W] = leaving;
            if (ring.rows) {
                in = ring.row + newest;
                first = ring.row + oldest;
                newest = newest + BATCH < ring.rows ? newest + BATCH : 0;
                oldest = oldest + BATCH < ring.rows ? oldest + BATCH : oldest + BATCH - ring.rows;
            } else {
                NAME(turn)(row, at, first);
            }
            NAME(turn)(row, at + size - 1, in);
            if (in == ring.row)
                memcpy(ring.row + ring.rows, in, sizeof *in * BATCH);
            if (filter->planes)
                NAME(batch_by_sieve)(&maps, v, (const uint8_t(*)[W])in, (const uint8_t(*)[W])first, filter, &batch);
            else
                NAME(batch_by_bits)(&maps, v, (const uint8_t(*)[W])in, (const uint8_t(*)[W])first, filter, &batch);
            size_t count = NAME(passed)(&batch, goes_on, filter->value_bytes, number);
            /* A sieve lets few others pass, and where nearly all pass they are what is searched for. */
            if (!filter->planes && count < BATCH * W / 8 * 7)
                count = LOOK_AGAIN(&batch, filter, number, count);
            holds += NAME(hits_of)(&batch, filter->value_bytes, number, count, row, at, base, collected + holds);
            goes_on = batch.hits[BATCH - 1] != 0;
            if (goes_on)
                memcpy(batch.before, batch.plane[BATCH - 1], sizeof batch.before);
            if (holds >= TOGETHER) {
                take(search, collected, holds);
                holds = 0;
            }
        }
    }
    free(ring.memory);
    take(search, collected, holds);
}

FN void NAME(lows)(const block_hash *hash, const uint8_t *base, size_t size, size_t offsets, uint32_t *low)
{
    NAME(maps) maps;
    const uint8_t *row[W];
    V v[8], word[4];
    uint8_t in[BATCH][W], first[BATCH][W];
    uint32_t part[BATCH][W];
    const size_t a_lane = NAME(lane)(offsets);
    if (!NAME(pays)(size, offsets)) {
        rdc_lows_plain(VALUE, hash, base, size, offsets, low);
        return;
    }
    NAME(make)(&maps, hash);
    NAME(begin)(&maps, base, size, offsets, a_lane, row, v, &(const NAME(ring)){NULL, NULL, 0});
    for (size_t at = 0; at < a_lane; at += BATCH) {
        NAME(turn)(row, at + size - 1, in);
        NAME(turn)(row, at, first);
        for (int i = 0; i < BATCH; i++) {
            NAME(step)(&maps, v, LOAD(in[i]));
            NAME(words)(v, word);
            for (int m = 0; m < 4; m++)
                STORE(part[i] + m * (W / 4), word[m]);
            NAME(drop)(&maps, v, LOAD(first[i]));
        }
        for (int lane = 0; lane < W; lane++) {
            uint32_t *const to = low + (row[lane] - base) + at;
            const int word = WORD_OF(lane % 16 / 4, lane / 16, lane % 4);
            for (int i = 0; i < BATCH; i++)
                to[i] = part[i][word];
        }
    }
}

FN size_t NAME(find)(const uint32_t *number, size_t count, uint32_t mask, uint32_t wanted)
{
    size_t i = 0;
    for (; count - i >= W / 4; i += W / 4) {
        const uint64_t same = SAME(LOAD(number + i), mask, wanted);
        if (same)
            return i + (size_t)__builtin_ctzll(same) / 4;
    }
    while (i < count && (number[i] & mask) != wanted)
        i++;
    return i;
}
