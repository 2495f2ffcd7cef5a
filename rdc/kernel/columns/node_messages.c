/* node_messages.c - the input of the digests of nodes, for many streams at once.
 *
 * rdc/signature/tree.py builds one tree from chunks as they come. Here all chunks are known, and one call makes one
 * level of many trees. Their messages are hashed together, one in each lane of a vector. */
#include "columns/columns.h"

#include <stdlib.h>
#include <string.h>

#include "cut/winnow.h"

#define DIGEST 32
#define RECORD (DIGEST + 16)

static size_t items_of(const rdc_short_streams *s)
{
    size_t items = 0;
    for (size_t i = 0; i < s->streams; i++)
        items += s->counts[i];
    return items;
}

size_t rdc_nodes_most(const rdc_short_streams *s, uint64_t min)
{
    /* Each group but a stream's last has more than `min` records. */
    return items_of(s) / (size_t)(min + 1) + s->streams;
}

size_t rdc_node_messages_most(const rdc_short_streams *s)
{
    return items_of(s) * (RECORD + 1);
}

static void put_u64(uint8_t *out, uint64_t value)
{
    for (unsigned k = 0; k < 8; k++)
        out[k] = (uint8_t)(value >> 8 * k);
}

/* Finds the runs: the number of the first item of each, `count` behind the last, and their ranks, which are the first 8
 * bytes of a digest as a big-endian number. */
static size_t find_runs(const uint8_t *digests, size_t count, uint32_t *first, uint8_t *ranks)
{
    size_t runs = 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *const digest = digests + i * DIGEST;
        if (i && !memcmp(digest, digest - DIGEST, DIGEST))
            continue;
        for (unsigned k = 0; k < 8; k++)
            ranks[8 * runs + k] = digest[7 - k];
        first[runs++] = (uint32_t)i;
    }
    first[runs] = (uint32_t)count;
    return runs;
}

static void put_node(const uint8_t *digests, const uint64_t *lengths, const uint32_t *first, size_t runs, uint8_t level,
                     rdc_node_messages_out *out)
{
    uint8_t *digest = out->messages + out->written;
    uint64_t covered = 0;
    *digest++ = level;
    uint8_t *length = digest + runs * DIGEST, *times = length + runs * 8;
    for (size_t i = 0; i < runs; i++) {
        const uint64_t count = first[i + 1] - first[i];
        memcpy(digest + i * DIGEST, digests + (size_t)first[i] * DIGEST, DIGEST);
        put_u64(length + 8 * i, lengths[first[i]]);
        put_u64(times + 8 * i, count);
        covered += lengths[first[i]] * count;
    }
    out->bytes[out->nodes] = 1 + runs * RECORD;
    out->lengths[out->nodes++] = covered;
    out->written += 1 + runs * RECORD;
}

int rdc_node_messages(const rdc_short_streams *s, uint8_t level, uint64_t min, uint64_t max, rdc_node_messages_out *out)
{
    const uint8_t *digests = s->digests;
    const uint64_t *lengths = s->lengths;
    size_t most = 0;
    int failed = 0;

    for (size_t i = 0; i < s->streams; i++)
        most = s->counts[i] > most ? s->counts[i] : most;
    uint32_t *const first = malloc((most + 1) * sizeof *first);
    uint8_t *const ranks = malloc(8 * most + 1);
    out->written = out->nodes = 0;
    failed = !first || !ranks;
    for (size_t i = 0; i < s->streams && !failed; i++) {
        const size_t before = out->nodes, runs = find_runs(digests, s->counts[i], first, ranks);
        rdc_winnower winnower;
        rdc_winnower_start(&winnower, min, max);
        failed = rdc_winnower_feed(&winnower, ranks, runs);
        size_t begin = 0;
        for (size_t k = 0; k < winnower.ends.count && !failed; k++) {
            put_node(digests, lengths, first + begin, (size_t)winnower.ends.end[k] - begin, level, out);
            begin = (size_t)winnower.ends.end[k];
        }
        if (begin < runs && !failed)
            put_node(digests, lengths, first + begin, runs - begin, level, out);
        rdc_winnower_end(&winnower);
        out->counts[i] = (uint32_t)(out->nodes - before);
        digests += (size_t)s->counts[i] * DIGEST;
        lengths += s->counts[i];
    }
    free(first);
    free(ranks);
    return failed ? -1 : 0;
}
