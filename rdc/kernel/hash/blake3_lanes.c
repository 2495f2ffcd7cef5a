/* blake3_lanes.c - BLAKE3 of many inputs at once, one per lane of a vector.
 *
 * The package blake3 spreads the chunks of ONE input over the lanes. An input of 4 KiB fills only four
 * lanes of sixteen and needs a call of its own. Here the chunks of all inputs are streams of one list.
 *
 * BLAKE3 (O'Connor, Aumasson, Neves, Wilcox-O'Hearn 2020, section 2) cuts an input into chunks of 1024
 * bytes and compresses each to a chaining value. It joins these in a binary tree whose left subtrees hold
 * a power of two of them. Joining neighbours pair by pair, level by level, with an odd last one moved up
 * unchanged, gives that tree. The pairs of one level are streams again. Whole chunks come first in the
 * list; the last chunks of the inputs follow, ordered by their number of blocks, so few lanes idle. */
#include "hash/blake3_lanes.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK 1024
#define BLOCK 64
#define KEYED 16

#if defined(__x86_64__)
extern const rdc_naming rdc_naming_avx512, rdc_naming_avx2;
#endif

static size_t chunks_of(size_t size)
{
    return size ? (size - 1) / CHUNK + 1 : 1;
}

static size_t blocks_of(size_t size)
{
    return size ? (size - 1) / BLOCK + 1 : 1;
}

/* Chaining values are in `value`, 32 bytes each, those of one input one after another. */
static void compress_chunks(const rdc_naming *naming, const rdc_name_key *key, const rdc_input *inputs, size_t count,
                            rdc_stream *streams, uint8_t *value)
{
    size_t whole = 0, start[CHUNK / BLOCK + 2] = {0};

    for (size_t i = 0; i < count; i++) {
        const size_t chunks = chunks_of(inputs[i].size);
        whole += chunks - 1;
        start[blocks_of(inputs[i].size - (chunks - 1) * CHUNK) + 1]++;
    }
    start[0] = whole;
    for (size_t i = 1; i < sizeof start / sizeof *start; i++)
        start[i] += start[i - 1];
    size_t next = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t chunks = chunks_of(inputs[i].size);
        for (size_t chunk = 0; chunk < chunks; chunk++, value += RDC_NAME_BYTES) {
            const size_t left = inputs[i].size - chunk * CHUNK;
            rdc_stream *s = streams + (chunk + 1 < chunks ? next++ : start[blocks_of(left)]++);
            *s = (rdc_stream){inputs[i].data + chunk * CHUNK, value, chunk, left < CHUNK ? (uint32_t)left : CHUNK,
                              chunks == 1, 0};
        }
    }
    naming->compress(key, streams, start[CHUNK / BLOCK]);
}

static rdc_name_key key_of(const uint8_t *key)
{
    rdc_name_key words = {{0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19},
                          0};
    if (key) {
        memcpy(words.words, key, sizeof words.words); /* the variants are of little-endian machines */
        words.flags = KEYED;
    }
    return words;
}

int rdc_name_inputs(const rdc_naming *naming, const uint8_t *key, const rdc_input *inputs, size_t count, uint8_t *out)
{
    const rdc_name_key words = key_of(key);
    size_t chunks = 0, most = 1;
    for (size_t i = 0; i < count; i++) {
        const size_t own = chunks_of(inputs[i].size);
        chunks += own;
        most = own > most ? own : most;
    }
    if (!count)
        return 0;
    rdc_stream *streams = malloc(chunks * sizeof *streams);
    uint8_t *values = malloc(2 * chunks * RDC_NAME_BYTES);
    size_t *left = malloc(count * sizeof *left);
    if (!streams || !values || !left) {
        free(streams);
        free(values);
        free(left);
        return -1;
    }
    uint8_t *from = values, *to = values + chunks * RDC_NAME_BYTES;
    compress_chunks(naming, &words, inputs, count, streams, from);
    for (size_t i = 0; i < count; i++)
        left[i] = chunks_of(inputs[i].size);
    /* Each level's values of an input begin where the values of its chunks began. */
    for (; most > 1; most = (most + 1) / 2) {
        size_t parents = 0, begin = 0;
        for (size_t i = 0; i < count; i++) {
            const uint8_t *source = from + begin * RDC_NAME_BYTES;
            uint8_t *destination = to + begin * RDC_NAME_BYTES;
            for (size_t pair = 0; pair < left[i] / 2; pair++)
                streams[parents++] = (rdc_stream){source + 2 * pair * RDC_NAME_BYTES, destination + pair * RDC_NAME_BYTES, 0,
                                                  BLOCK, left[i] == 2, 1};
            if (left[i] % 2)
                memcpy(destination + left[i] / 2 * RDC_NAME_BYTES, source + (left[i] - 1) * RDC_NAME_BYTES, RDC_NAME_BYTES);
            left[i] = (left[i] + 1) / 2;
            begin += chunks_of(inputs[i].size);
        }
        naming->compress(&words, streams, parents);
        uint8_t *swapped = from;
        from = to;
        to = swapped;
    }
    for (size_t i = 0, begin = 0; i < count; begin += chunks_of(inputs[i++].size))
        memcpy(out + i * RDC_NAME_BYTES, from + begin * RDC_NAME_BYTES, RDC_NAME_BYTES);
    free(streams);
    free(values);
    free(left);
    return 0;
}

const rdc_naming *const rdc_namings[] = {
#if defined(__x86_64__)
    &rdc_naming_avx512,
    &rdc_naming_avx2,
#endif
    NULL,
};
