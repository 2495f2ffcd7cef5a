/* vector_filter.h - which of a batch's values pass the filter: a part of vector_body.h.
 *
 * The low halves of the values are turned back into words that index the filter: by gathers where a CPU
 * has quick ones, otherwise by one scalar load each. Few fingerprints are checked all at once in a sieve.
 * Lanes that pass are collected in a list without branches, because their number changes from step to
 * step. The list is then checked again. */

/* Of a batch's steps. */
typedef struct {
    uint8_t before[8][W];      /* as a row of `plane`, of the step before */
    uint8_t plane[BATCH][8][W]; /* the lanes' values, those bytes that the filter says are kept */
    uint64_t hits[BATCH];       /* masks of the lanes that passed */
#ifdef GATHER
    uint32_t low[BATCH][W]; /* the values' low halves as `words` has them */
#endif
} NAME(batch);

FN void NAME(keep)(const V v[8], unsigned value_bytes, uint8_t plane[8][W])
{
    for (unsigned k = 0; k < 8; k++)
        if (k < 4 || k < value_bytes)
            STORE(plane[k], v[k]);
}

/* Returns a mask of the lanes whose fingerprints are equal in both. */
FN uint64_t NAME(repeated)(const uint8_t before[8][W], const uint8_t now[8][W], unsigned value_bytes)
{
    V differ = XOR(LOAD(before[0]), LOAD(now[0]));
    for (unsigned k = 1; k < value_bytes; k++)
        differ = OR(differ, XOR(LOAD(before[k]), LOAD(now[k])));
    return ~ANY(differ);
}

/* Whether enough lanes passed to suspect constant runs: two if few pass by chance. */
#undef MANY
#ifdef GATHER
#define MANY(mask) (__builtin_popcountll(mask) > 8)
#else
#define MANY(mask) ((mask) & ((mask)-1))
#endif

#ifdef GATHER

FN void NAME(batch_by_bits)(const NAME(maps) * maps, V v[8], const uint8_t (*in)[W], const uint8_t (*first)[W],
                           const block_filter *filter, NAME(batch) * batch)
{
    V word[4];
    const uint32_t mask = (uint32_t)filter->position_mask;
    for (int i = 0; i < BATCH; i++) {
        NAME(step)(maps, v, LOAD(in[i]));
        NAME(keep)(v, filter->value_bytes, batch->plane[i]);
        NAME(words)(v, word);
        for (int m = 0; m < 4; m++) {
            STORE(batch->low[i] + m * (W / 4), word[m]);
            word[m] = POSITION(word[m], mask);
        }
        batch->hits[i] = HAS(GATHER(filter->bits, word), OR(BIT_OF(v[0]), BIT_OF(EIGHTHS(v[0]))));
        NAME(drop)(maps, v, LOAD(first[i]));
    }
}

#else

/* Positions and bits are stored first, so that no load waits for a store. */
FN void NAME(batch_by_bits)(const NAME(maps) * maps, V v[8], const uint8_t (*in)[W], const uint8_t (*first)[W],
                           const block_filter *filter, NAME(batch) * batch)
{
    uint8_t bit[BATCH][W], found[BATCH][W];
    uint32_t position[BATCH][W];
    V word[4];
    const uint8_t *const bits = filter->bits;
    const uint32_t mask = (uint32_t)filter->position_mask;
    for (int i = 0; i < BATCH; i++) {
        NAME(step)(maps, v, LOAD(in[i]));
        NAME(keep)(v, filter->value_bytes, batch->plane[i]);
        STORE(bit[i], OR(BIT_OF(v[0]), BIT_OF(EIGHTHS(v[0]))));
        NAME(words)(v, word);
        for (int m = 0; m < 4; m++)
            STORE(position[i] + m * (W / 4), POSITION(word[m], mask));
        NAME(drop)(maps, v, LOAD(first[i]));
    }
    /* Volatile, because compilers tend to collect such bytes in registers, which takes longer than storing
     * them. */
    for (int i = 0; i < BATCH; i++)
        for (int m = 0; m < 4; m++)
            for (int group = 0; group < W / 16; group++)
                for (int e = 0; e < 4; e++)
                    ((volatile uint8_t *)found[i])[LANE_OF(m, group, e)] = bits[position[i][WORD_OF(m, group, e)]];
    for (int i = 0; i < BATCH; i++)
        batch->hits[i] = HAS(LOAD(found[i]), LOAD(bit[i]));
}

#endif

FN void NAME(batch_by_sieve)(const NAME(maps) * maps, V v[8], const uint8_t (*in)[W], const uint8_t (*first)[W],
                            const block_filter *filter, NAME(batch) * batch)
{
    for (int i = 0; i < BATCH; i++) {
        NAME(step)(maps, v, LOAD(in[i]));
        NAME(keep)(v, filter->value_bytes, batch->plane[i]);
        V passed = AND(NIBBLE(filter->sieve[0], v[0]), BIT_OF(HALVED(v[0])));
        for (unsigned k = 1; k < filter->planes; k++) {
            const V byte = LOAD(batch->plane[i][k]);
            passed = MIN(passed, AND(NIBBLE(filter->sieve[k], byte), BIT_OF(HALVED(byte))));
        }
        batch->hits[i] = ANY(passed);
        NAME(drop)(maps, v, LOAD(first[i]));
    }
}

/* Lists the numbers of the lanes that passed in the batch: step * W + lane. `goes_on`: `before` is that of
 * the step before. */
FN size_t NAME(passed)(const NAME(batch) * batch, int goes_on, unsigned value_bytes, uint16_t number[BATCH * W + W])
{
    size_t count = 0;
    uint64_t any = 0;
    for (int i = 0; i < BATCH; i++)
        any |= batch->hits[i];
    if (!any)
        return 0;
    for (int i = 0; i < BATCH; i++) {
        uint64_t left = batch->hits[i];
        /* In constant runs all windows pass; only the first one matters. */
        if (__builtin_expect(MANY(left) && (i || goes_on), 0))
            left &= ~NAME(repeated)(i ? batch->plane[i - 1] : batch->before, batch->plane[i], value_bytes);
#ifdef GATHER
        count += LIST(left, i * W, number + count);
#else
        for (; left; left &= left - 1)
            number[count++] = (uint16_t)(i * W + __builtin_ctzll(left));
#endif
    }
    return count;
}

/* The value's bytes, or as many as are asked for. */
FN uint64_t NAME(value_of)(const NAME(batch) * batch, unsigned number, unsigned value_bytes)
{
    const uint8_t *const from = batch->plane[number / W][0] + number % W;
    uint64_t value = 0;
    for (unsigned k = 0; k < value_bytes; k++)
        value |= (uint64_t)from[k * W] << 8 * k;
    return value;
}

#ifndef GATHER

/* Keeps the numbers that pass a second look. Returns how many. */
FN size_t NAME(look_again)(const NAME(batch) * batch, const block_filter *filter, uint16_t *number, size_t count)
{
    size_t left = 0;
    for (size_t j = 0; j < count; j++) {
        const uint16_t now = number[j];
        number[left] = now;
        left += filter_again(filter, (uint32_t)NAME(value_of)(batch, now, 4));
    }
    return left;
}

#define LOOK_AGAIN(batch, filter, number, count) NAME(look_again)(batch, filter, number, count)

#endif

#define VALUE_OF(lane) ((lane) % 16 / 2 * (W / 8) + (lane) / 16 * 2 + (lane) % 2)

/* The `value_bytes` bytes of all lanes' values, that of a lane at VALUE_OF it. */
FN void NAME(values)(const uint8_t plane[8][W], unsigned value_bytes, uint64_t value[W])
{
    V a[8], b[8];
    for (unsigned k = 0; k < 8; k++)
        a[k] = k < value_bytes ? LOAD(plane[k]) : ZERO;
    for (int i = 0; i < 4; i++)
        b[2 * i] = LOW(a[i], a[i + 4]), b[2 * i + 1] = HIGH(a[i], a[i + 4]);
    for (int i = 0; i < 4; i++)
        a[2 * i] = LOW(b[i], b[i + 4]), a[2 * i + 1] = HIGH(b[i], b[i + 4]);
    for (int i = 0; i < 4; i++)
        b[2 * i] = LOW(a[i], a[i + 4]), b[2 * i + 1] = HIGH(a[i], a[i + 4]);
    for (int m = 0; m < 8; m++)
        STORE(value + m * (W / 8), b[m]);
}

/* From this many passed lanes on, the values of all lanes are turned together. */
#define SOME 3

/* Writes the hits of these numbers, in a batch that begins at `at` in each lane. Returns their number. */
FN size_t NAME(hits_of)(const NAME(batch) * batch, unsigned value_bytes, const uint16_t *number, size_t count,
                        const uint8_t *const row[W], size_t at, const uint8_t *base, block_hit *out)
{
    uint64_t value[W];
    unsigned turned = BATCH; /* the step whose values these are */
    for (size_t j = 0; j < count; j++) {
        const unsigned i = number[j] / W, lane = number[j] % W;
        if (turned != i && j + SOME <= count && number[j + SOME - 1] / W == i) {
            NAME(values)(batch->plane[i], value_bytes, value);
            turned = i;
        }
        out[j].value = turned == i ? value[VALUE_OF(lane)] : NAME(value_of)(batch, number[j], value_bytes);
        out[j].offset = (uint64_t)(row[lane] - base) + at + i;
    }
    return count;
}
