/*
 * block_body.h - the block search in vectors of bytes: included by each form, which says what a vector is.
 *
 * The offsets are dealt out to the bytes of a vector, a stretch to each lane; eight vectors hold the eight bytes of all
 * lanes' values. As the hash shifts by whole bytes, a vector takes the place of the next, and all that is computed are
 * products of one byte with a constant, of eight bytes: for the byte shifted out, the one that enters, the one that
 * leaves. Such a product is linear in the byte's bits: eight bit matrices, or eight pairs of tables by half a byte.
 *
 * Sixteen steps make a tile. Its bytes are turned, so that a vector has those of one step; its values' low halves are
 * turned back into words, by which the filter is looked at, a scalar load each: gathers are slower. All loads are in
 * bounds because a lane has a multiple of sixteen offsets, and the last one ends where the base does.
 *
 * V   a vector of W bytes, W a multiple of 16, W/16 independent groups of 16 lanes
 * FN  the attributes of a function, NAME(f) its name
 * LOAD(p), STORE(p, v), XOR(a, b), ZERO
 * ROWS(row, i, at)    in group g the 16 bytes at row[16 g + i] + at
 * LOW(a, b), HIGH(a, b)    in each group the lower, the upper halves' bytes by turns
 * MAP, MAKE(map, table), INDEX, SPLIT(v), PRODUCT(map, k, index)    a product's byte k
 * BIT_OF(v)    1 << the three lowest bits, in each byte
 * PLACE(v, mask)    v >> 6 & mask, in words of 32 bits; EIGHTHS(v) v >> 3 in bytes with anything above
 * OR(a, b), HAS(all, some)    a mask of the lanes where all bits of some are set in all
 * AND(a, b), MIN(a, b), HALVED(v)    of unsigned bytes; the high halves of bytes with anything above them
 * NIBBLE(table, v)    the table's byte (of 16) at each byte's low half
 * ANY(v)    a mask of the lanes that are not 0
 * SAME(v, mask, wanted)    that of the bytes of words of 32 bits that are `wanted` under a mask
 */

#define TILE 16


typedef struct {
    MAP out, in, gone; /* of the byte shifted out, that enters, that leaves */
} NAME(maps);

FN void NAME(turn)(const uint8_t *const row[W], size_t at, uint8_t turned[TILE][W])
{
    V a[TILE], b[TILE];
    for (int i = 0; i < TILE; i++)
        a[i] = ROWS(row, i, at);
    /* Each round moves the highest bit of a row's number to the lowest of a column's: four exchange them. */
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < TILE / 2; i++)
            b[2 * i] = LOW(a[i], a[i + 8]), b[2 * i + 1] = HIGH(a[i], a[i + 8]);
        for (int i = 0; i < TILE / 2; i++)
            a[2 * i] = LOW(b[i], b[i + 8]), a[2 * i + 1] = HIGH(b[i], b[i + 8]);
    }
    for (int i = 0; i < TILE; i++)
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

#define VALUE_OF(lane) ((lane) % 16 / 2 * (W / 8) + (lane) / 16 * 2 + (lane) % 2)

/* Whole values of all lanes, that of a lane at VALUE_OF it. */
FN void NAME(values)(const uint8_t plane[8][W], uint64_t value[W])
{
    V a[8], b[8];
    for (int k = 0; k < 8; k++)
        a[k] = LOAD(plane[k]);
    for (int i = 0; i < 4; i++)
        b[2 * i] = LOW(a[i], a[i + 4]), b[2 * i + 1] = HIGH(a[i], a[i + 4]);
    for (int i = 0; i < 4; i++)
        a[2 * i] = LOW(b[i], b[i + 4]), a[2 * i + 1] = HIGH(b[i], b[i + 4]);
    for (int i = 0; i < 4; i++)
        b[2 * i] = LOW(a[i], a[i + 4]), b[2 * i + 1] = HIGH(a[i], a[i + 4]);
    for (int m = 0; m < 8; m++)
        STORE(value + m * (W / 8), b[m]);
}

/* The lanes' first bytes, and their values of the size - 1 bytes from there on. */
FN void NAME(begin)(const NAME(maps) * maps, const uint8_t *base, size_t size, size_t offsets, size_t a_lane,
                    const uint8_t *row[W], V v[8])
{
    uint8_t in[TILE][W];
    for (size_t lane = 0; lane < W; lane++)
        row[lane] = base + (lane * a_lane < offsets - a_lane ? lane * a_lane : offsets - a_lane);
    for (int k = 0; k < 8; k++)
        v[k] = ZERO;
    for (size_t at = 0; at + 1 < size; at += TILE) {
        const size_t steps = size - 1 - at < TILE ? size - 1 - at : TILE;
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

/* A mask of the lanes whose values are the same in both. */
FN uint64_t NAME(repeated)(const uint8_t before[8][W], const uint8_t now[8][W])
{
    V differ = XOR(LOAD(before[0]), LOAD(now[0]));
    for (int k = 1; k < 8; k++)
        differ = OR(differ, XOR(LOAD(before[k]), LOAD(now[k])));
    return ~ANY(differ);
}

/* Whether the lanes' way is the faster one: what they cost besides, in offsets. There are at least W * TILE then, and a lane
 * has no more offsets than there are. */
static inline int NAME(pays)(size_t size, size_t offsets)
{
    return offsets >= PAYS_FROM + size * PAYS_FACTOR;
}

/* Offsets to look through at a time: long bases in equal parts that stay in the second-level cache, each worth its lanes'
 * beginning. */
static inline size_t NAME(part)(size_t size, size_t offsets)
{
    const size_t most = W * (size < 256 ? 1024 : 4 * size), parts = (offsets + most - 1) / most;
    return (offsets + parts - 1) / parts;
}

/* Offsets of a lane, at most those of the part. An odd number of tiles lets the lanes lie in different sets of the
 * caches. */
static inline size_t NAME(lane)(size_t part)
{
    const size_t tiles = (part + W * TILE - 1) / (W * TILE);
    return (tiles < 16 ? tiles : tiles | 1) * TILE;
}

/* Through the bits: a scalar load for each lane and step. Places and bits first, so that no load waits for a store. */
FN void NAME(tile_by_bits)(const NAME(maps) * maps, V v[8], const uint8_t in[TILE][W], const uint8_t first[TILE][W],
                           const block_filter *filter, uint8_t plane[TILE][8][W], uint64_t hits[TILE])
{
    uint8_t bit[TILE][W], found[TILE][W];
    uint32_t place[TILE][W];
    V word[4];
    const uint8_t *const bits = filter->bits;
    const uint32_t mask = (uint32_t)filter->places;
    for (int i = 0; i < TILE; i++) {
        NAME(step)(maps, v, LOAD(in[i]));
        for (int k = 0; k < 8; k++)
            STORE(plane[i][k], v[k]);
        STORE(bit[i], OR(BIT_OF(v[0]), BIT_OF(EIGHTHS(v[0]))));
        NAME(words)(v, word);
        for (int m = 0; m < 4; m++)
            STORE(place[i] + m * (W / 4), PLACE(word[m], mask));
        NAME(drop)(maps, v, LOAD(first[i]));
    }
    /* Volatile, because compilers like to put such bytes together in registers, which takes longer than storing them. */
    for (int i = 0; i < TILE; i++)
        for (int m = 0; m < 4; m++)
            for (int group = 0; group < W / 16; group++)
                for (int e = 0; e < 4; e++)
                    ((volatile uint8_t *)found[i])[LANE_OF(m, group, e)] = bits[place[i][WORD_OF(m, group, e)]];
    for (int i = 0; i < TILE; i++)
        hits[i] = HAS(LOAD(found[i]), LOAD(bit[i]));
}

FN void NAME(tile_by_sieve)(const NAME(maps) * maps, V v[8], const uint8_t in[TILE][W], const uint8_t first[TILE][W],
                            const block_filter *filter, uint8_t plane[TILE][8][W], uint64_t hits[TILE])
{
    for (int i = 0; i < TILE; i++) {
        NAME(step)(maps, v, LOAD(in[i]));
        for (int k = 0; k < 8; k++)
            STORE(plane[i][k], v[k]);
        V passed = AND(NIBBLE(filter->sieve[0], v[0]), BIT_OF(HALVED(v[0])));
        for (unsigned k = 1; k < filter->planes; k++) {
            const V byte = LOAD(plane[i][k]);
            passed = MIN(passed, AND(NIBBLE(filter->sieve[k], byte), BIT_OF(HALVED(byte))));
        }
        hits[i] = ANY(passed);
        NAME(drop)(maps, v, LOAD(first[i]));
    }
}

FN void NAME(scan)(const block_hash *hash, const uint8_t *base, size_t size, size_t offsets, const block_filter *filter,
                   block_hit hit, void *search)
{
    NAME(maps) maps;
    const uint8_t *row[W];
    V v[8];
    uint8_t in[TILE][W], first[TILE][W], plane[TILE][8][W];
    uint64_t hits[TILE], value[W];
    if (!NAME(pays)(size, offsets)) {
        rdc_scan_plain(NAME(value), hash, base, size, offsets, filter, hit, search);
        return;
    }
    NAME(make)(&maps, hash);
    const size_t most = NAME(part)(size, offsets);
    for (size_t begin = 0, part; begin < offsets; begin += part) {
        /* A rest too short for the lanes goes with the last part. */
        part = offsets - begin < most + W * TILE ? offsets - begin : most;
        const size_t a_lane = NAME(lane)(part);
        NAME(begin)(&maps, base + begin, size, part, a_lane, row, v);
        for (size_t at = 0; at < a_lane; at += TILE) {
            /* The next part, in the order it lies. */
            const size_t ahead = begin + part + size + W * at;
            for (size_t i = 0; i < W * TILE && ahead + i < offsets; i += 64)
                __builtin_prefetch(base + ahead + i);
            NAME(turn)(row, at + size - 1, in);
            NAME(turn)(row, at, first);
            if (filter->planes)
                NAME(tile_by_sieve)(&maps, v, in, first, filter, plane, hits);
            else
                NAME(tile_by_bits)(&maps, v, in, first, filter, plane, hits);
            for (int i = 0; i < TILE; i++) {
                if (__builtin_expect(!hits[i], 1))
                    continue;
                uint64_t left = hits[i];
                /* In runs of one byte all windows pass; only the first says anything. */
                if (i && (left & (left - 1)))
                    left &= ~NAME(repeated)(plane[i - 1], plane[i]);
                if (!left)
                    continue;
                NAME(values)(plane[i], value);
                for (; left; left &= left - 1) {
                    const int lane = __builtin_ctzll(left);
                    hit(search, value[VALUE_OF(lane)], (uint64_t)(row[lane] - base) + at + (size_t)i);
                }
            }
        }
    }
}

FN void NAME(lows)(const block_hash *hash, const uint8_t *base, size_t size, size_t offsets, uint32_t *low)
{
    NAME(maps) maps;
    const uint8_t *row[W];
    V v[8], word[4];
    uint8_t in[TILE][W], first[TILE][W];
    uint32_t part[TILE][W];
    const size_t a_lane = NAME(lane)(offsets);
    if (!NAME(pays)(size, offsets)) {
        rdc_lows_plain(NAME(value), hash, base, size, offsets, low);
        return;
    }
    NAME(make)(&maps, hash);
    NAME(begin)(&maps, base, size, offsets, a_lane, row, v);
    for (size_t at = 0; at < a_lane; at += TILE) {
        NAME(turn)(row, at + size - 1, in);
        NAME(turn)(row, at, first);
        for (int i = 0; i < TILE; i++) {
            NAME(step)(&maps, v, LOAD(in[i]));
            NAME(words)(v, word);
            for (int m = 0; m < 4; m++)
                STORE(part[i] + m * (W / 4), word[m]);
            NAME(drop)(&maps, v, LOAD(first[i]));
        }
        for (int lane = 0; lane < W; lane++) {
            uint32_t *const to = low + (row[lane] - base) + at;
            const int word = WORD_OF(lane % 16 / 4, lane / 16, lane % 4);
            for (int i = 0; i < TILE; i++)
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
