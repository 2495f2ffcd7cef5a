/*
 * blake3_body.h - the compression function of BLAKE3 over the lanes of a vector. Included with FN, NAME, V, LANES, and
 * LOAD_WORDS defined; a lane is a uint32_t of GCC's vector type V.
 *
 * LOAD_WORDS(m, block) sets the vectors m[0 .. 15] from LANES blocks of 64 bytes: lane k of m[w] is word w of block[k].
 */

#define BLOCK 64

enum { CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8 };

#define ROTATE(x, by) ((x) >> (by) | (x) << (32 - (by)))

#define G(a, b, c, d, x, y)              \
    do {                                 \
        v[a] = v[a] + (x) + v[b];        \
        v[d] = ROTATE(v[d] ^ v[a], 16);  \
        v[c] += v[d];                    \
        v[b] = ROTATE(v[b] ^ v[c], 12);  \
        v[a] = v[a] + (y) + v[b];        \
        v[d] = ROTATE(v[d] ^ v[a], 8);   \
        v[c] += v[d];                    \
        v[b] = ROTATE(v[b] ^ v[c], 7);   \
    } while (0)

/* One round, with the words in the order of the permutation. */
#define ROUND(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15) \
    do {                                                                            \
        G(0, 4, 8, 12, m[s0], m[s1]);                                               \
        G(1, 5, 9, 13, m[s2], m[s3]);                                               \
        G(2, 6, 10, 14, m[s4], m[s5]);                                              \
        G(3, 7, 11, 15, m[s6], m[s7]);                                              \
        G(0, 5, 10, 15, m[s8], m[s9]);                                              \
        G(1, 6, 11, 12, m[s10], m[s11]);                                            \
        G(2, 7, 8, 13, m[s12], m[s13]);                                             \
        G(3, 4, 9, 14, m[s14], m[s15]);                                             \
    } while (0)

static const uint32_t NAME(iv)[4] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A};

FN V NAME(column)(const uint32_t *lane)
{
    V column;
    memcpy(&column, lane, sizeof column);
    return column;
}

/* Compresses one block of each lane into `out`. It is inlined so that the words stay in registers. */
FN inline __attribute__((always_inline)) void NAME(mix)(V out[8], const V h[8], const uint8_t *const block[LANES],
                                                       V low, V high, V length, V flags)
{
    V m[16], v[16];

    LOAD_WORDS(m, block);
    for (unsigned i = 0; i < 8; i++)
        v[i] = h[i];
    for (unsigned i = 0; i < 4; i++)
        v[8 + i] = (V){0} + NAME(iv)[i];
    v[12] = low;
    v[13] = high;
    v[14] = length;
    v[15] = flags;
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    ROUND(2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8);
    ROUND(3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1);
    ROUND(10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6);
    ROUND(12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4);
    ROUND(9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7);
    ROUND(11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13);
    for (unsigned i = 0; i < 8; i++)
        out[i] = v[i] ^ v[i + 8];
}

FN void NAME(store)(const V h[8], const rdc_stream *streams, size_t count)
{
    for (unsigned k = 0; k < count; k++)
        for (unsigned i = 0; i < 8; i++)
            memcpy(streams[k].out + 4 * i, (const uint8_t *)&h[i] + 4 * k, 4);
}

FN void NAME(parents)(const rdc_name_key *key, const rdc_stream *streams, size_t count)
{
    const uint8_t *block[LANES];
    uint32_t flags[LANES];
    V h[8];

    for (unsigned k = 0; k < LANES; k++) {
        const rdc_stream *s = streams + (k < count ? k : 0);
        block[k] = s->data;
        flags[k] = key->flags | PARENT | (s->is_root ? ROOT : 0);
    }
    for (unsigned i = 0; i < 8; i++)
        h[i] = (V){0} + key->words[i];
    NAME(mix)(h, h, block, (V){0}, (V){0}, (V){0} + BLOCK, NAME(column)(flags));
    NAME(store)(h, streams, count);
}

/* Chunks, one in each lane. */
typedef struct {
    const uint8_t *data[LANES];
    const uint8_t *last[LANES]; /* the last block, in `rest` where it is not whole */
    size_t before[LANES];       /* blocks before that one */
    uint8_t rest[LANES][BLOCK];
    size_t most, least; /* blocks of a lane */
    V blocks;           /* none in a lane without a chunk */
    V tail, end;        /* bytes of the last block, and the flags that it has besides */
    V low, high;        /* halves of the counters */
} NAME(lanes);

FN void NAME(describe)(NAME(lanes) *lanes, const rdc_stream *streams, size_t count)
{
    uint32_t blocks[LANES], tail[LANES], end[LANES], low[LANES], high[LANES];

    lanes->most = 0;
    lanes->least = SIZE_MAX;
    for (size_t k = 0; k < LANES; k++) {
        const rdc_stream *s = streams + (k < count ? k : 0);
        const size_t before = s->size ? (s->size - 1) / BLOCK : 0;
        lanes->data[k] = s->data;
        lanes->before[k] = before;
        lanes->last[k] = s->data + before * BLOCK;
        blocks[k] = k < count ? (uint32_t)before + 1 : 0;
        tail[k] = s->size - (uint32_t)before * BLOCK;
        if (tail[k] < BLOCK) {
            memset(lanes->rest[k], 0, BLOCK);
            memcpy(lanes->rest[k], lanes->last[k], tail[k]);
            lanes->last[k] = lanes->rest[k];
        }
        end[k] = CHUNK_END | (s->is_root ? ROOT : 0);
        low[k] = (uint32_t)s->counter;
        high[k] = (uint32_t)(s->counter >> 32);
        lanes->most = before >= lanes->most ? before + 1 : lanes->most;
        lanes->least = before < lanes->least ? before + 1 : lanes->least;
    }
    lanes->blocks = NAME(column)(blocks);
    lanes->tail = NAME(column)(tail);
    lanes->end = NAME(column)(end);
    lanes->low = NAME(column)(low);
    lanes->high = NAME(column)(high);
}

/* `next` further streams follow; their blocks are prefetched. */
FN void NAME(chunks)(const rdc_name_key *key, const rdc_stream *streams, size_t count, size_t next)
{
    const uint8_t *block[LANES];
    NAME(lanes) lanes;
    V h[8], mixed[8];

    NAME(describe)(&lanes, streams, count);
    for (unsigned i = 0; i < 8; i++)
        h[i] = (V){0} + key->words[i];
    for (size_t b = 0; b < lanes.most; b++) {
        if (b + 1 < lanes.least)
            for (unsigned k = 0; k < LANES; k++)
                block[k] = lanes.data[k] + b * BLOCK;
        else /* A lane without further blocks mixes its last one again, and the result is dropped. */
            for (unsigned k = 0; k < LANES; k++)
                block[k] = b < lanes.before[k] ? lanes.data[k] + b * BLOCK : lanes.last[k];
        /* Built as vectors: reading a vector that was written lane by lane would stall. */
        const V is_last = (V)(lanes.blocks == (uint32_t)b + 1), live = (V)(lanes.blocks > (uint32_t)b);
        const V length = (lanes.tail & is_last) | (((V){0} + BLOCK) & ~is_last);
        const V flags = (lanes.end & is_last) | ((V){0} + (key->flags | (b ? 0 : CHUNK_START)));
        for (size_t k = 0; k < next; k++)
            __builtin_prefetch(streams[LANES + k].data + b * BLOCK);
        NAME(mix)(mixed, h, block, lanes.low, lanes.high, length, flags);
        for (unsigned i = 0; i < 8; i++)
            h[i] = (mixed[i] & live) | (h[i] & ~live);
    }
    NAME(store)(h, streams, count);
}

FN void NAME(compress)(const rdc_name_key *key, const rdc_stream *streams, size_t count)
{
    while (count) {
        const size_t some = count < LANES ? count : LANES;
        if (streams->is_parent)
            NAME(parents)(key, streams, some);
        else
            NAME(chunks)(key, streams, some, count - some < LANES ? count - some : LANES);
        streams += some;
        count -= some;
    }
}
