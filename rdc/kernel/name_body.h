/*
 * name_body.h - the compression function of BLAKE3 over the lanes of a vector. Included with FN, NAME, V, LANES, and
 * LOAD_WORDS defined; a lane is a uint32_t of GCC's vector type V.
 *
 * LOAD_WORDS(m, block) sets the vectors m[0 .. 15] from LANES blocks of 64 bytes: lane k of m[w] is word w of block[k].
 */

#define BLOCK 64

enum { CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8 };

#define ROTATE(x, by) ((x) >> (by) | (x) << (32 - (by)))

#define G(a, b, c, d, x, y)              \
    do {                                 \
        v[a] += v[b] + (x);              \
        v[d] = ROTATE(v[d] ^ v[a], 16);  \
        v[c] += v[d];                    \
        v[b] = ROTATE(v[b] ^ v[c], 12);  \
        v[a] += v[b] + (y);              \
        v[d] = ROTATE(v[d] ^ v[a], 8);   \
        v[c] += v[d];                    \
        v[b] = ROTATE(v[b] ^ v[c], 7);   \
    } while (0)

/* One round with the words in the order that the permutation has brought them to. */
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

FN void NAME(group)(const rdc_name_key *key, const rdc_stream *streams, size_t count)
{
    static const uint8_t nothing[BLOCK];
    uint8_t rest[LANES][BLOCK];
    const uint8_t *block[LANES];
    V h[8], m[16], v[16], low, high, length, flags, live;
    size_t most = 0, blocks[LANES];

    for (unsigned i = 0; i < 8; i++)
        h[i] = (V){0} + key->words[i];
    for (unsigned k = 0; k < LANES; k++) {
        blocks[k] = k >= count ? 0 : streams[k].size ? (streams[k].size - 1) / BLOCK + 1 : 1;
        low[k] = k < count ? (uint32_t)streams[k].counter : 0;
        high[k] = k < count ? (uint32_t)(streams[k].counter >> 32) : 0;
        most = blocks[k] > most ? blocks[k] : most;
    }
    for (size_t b = 0; b < most; b++) {
        for (unsigned k = 0; k < LANES; k++) {
            live[k] = b < blocks[k] ? UINT32_MAX : 0;
            length[k] = BLOCK;
            flags[k] = 0;
            block[k] = nothing;
            if (b >= blocks[k])
                continue;
            const rdc_stream *s = streams + k;
            const uint32_t left = s->size - (uint32_t)b * BLOCK;
            block[k] = s->data + b * BLOCK;
            if (left < BLOCK) {
                memset(rest[k], 0, BLOCK);
                memcpy(rest[k], block[k], left);
                block[k] = rest[k];
                length[k] = left;
            }
            if (s->is_parent)
                flags[k] = PARENT;
            else
                flags[k] = (b ? 0 : CHUNK_START) | (b + 1 == blocks[k] ? CHUNK_END : 0);
            if (s->is_root && b + 1 == blocks[k])
                flags[k] |= ROOT;
            flags[k] |= key->flags;
        }
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
            h[i] = ((v[i] ^ v[i + 8]) & live) | (h[i] & ~live);
    }
    for (unsigned k = 0; k < count; k++)
        for (unsigned i = 0; i < 8; i++)
            memcpy(streams[k].out + 4 * i, (const uint8_t *)&h[i] + 4 * k, 4);
}

FN void NAME(compress)(const rdc_name_key *key, const rdc_stream *streams, size_t count)
{
    for (; count > LANES; streams += LANES, count -= LANES)
        NAME(group)(key, streams, LANES);
    NAME(group)(key, streams, count);
}
