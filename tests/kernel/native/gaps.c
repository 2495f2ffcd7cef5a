/*
 * gaps.c - the search for blocks of gaps against looking at all neighbours of every block, on streams from a seed.
 *
 *     gaps SEED COUNT    COUNT rounds; whatever differs is printed and ends it with 1
 *
 * All that is handed over lies in blocks of exactly its size, so that a sanitizer sees a byte read past an end.
 */
#include <stdio.h>
#include <stdlib.h>

#include "search/match.h"
#include "search/gap_search.h"
#include "streams.h"

#define MARGIN 4096
#define RUN_BLOCKS 8
#define TAIL_BYTES 16

static void *exactly(size_t n)
{
    void *memory = malloc(n ? n : 1);
    if (!memory) {
        fputs("gaps: no memory\n", stderr);
        exit(2);
    }
    return memory;
}

typedef struct {
    rdc_match match; /* offset in the base: RDC_NOWHERE where it was not found */
    const uint8_t *fingerprint;
    size_t range;
} row;

static void look(const rdc_gap_question *q, const rdc_gap *gap, uint64_t from, uint64_t length, row *rows, size_t count)
{
    uint8_t *wanted = exactly(count * q->width), *window = exactly((size_t)length);
    uint64_t *found = exactly(8 * count);
    for (size_t i = 0; i < count; i++)
        memcpy(wanted + i * q->width, rows[i].fingerprint, q->width);
    memcpy(window, gap->window + (from - gap->start), (size_t)length);
    if (rdc_match_blocks(q->key, window, (size_t)length, (size_t)rows->match.length, q->width, wanted, count, found))
        exit(2);
    for (size_t i = 0; i < count; i++)
        rows[i].match.base_offset = found[i] == RDC_NOWHERE ? RDC_NOWHERE : from + found[i];
    free(wanted), free(window), free(found);
}

static int goes_on(const rdc_match *one, const rdc_match *next)
{
    return one->base_offset != RDC_NOWHERE && next->base_offset != RDC_NOWHERE && one->offset + one->length == next->offset &&
           one->base_offset + one->length == next->base_offset;
}

/* The matches and, of the rows, what is one of a run, in no order; ranges and matches of a gap do not overlap. */
static size_t anchors_of(const rdc_gap *gap, const row *rows, rdc_match *anchors)
{
    size_t count = 0;
    for (size_t i = 0; i < gap->match_count; i++)
        anchors[count++] = gap->matches[i];
    for (size_t i = 0; i < gap->blocks; i++)
        if ((i && goes_on(&rows[i - 1].match, &rows[i].match)) ||
            (i + 1 < gap->blocks && goes_on(&rows[i].match, &rows[i + 1].match)))
            anchors[count++] = rows[i].match;
    return count;
}

static void put_in_order(const rdc_gap_question *q, const rdc_gap *gap, row *rows)
{
    rdc_match *anchors = exactly((gap->match_count + gap->blocks) * sizeof *anchors);
    const size_t count = anchors_of(gap, rows, anchors);
    uint64_t left = gap->length;
    for (size_t i = 0; i < gap->blocks; i++) {
        const rdc_match found = rows[i].match;
        const rdc_match *before = NULL, *after = NULL;
        int certain = found.base_offset == RDC_NOWHERE;
        for (size_t j = 0; j < count; j++) {
            const rdc_match *anchor = &anchors[j];
            certain |= anchor->offset == found.offset || goes_on(anchor, &found) || goes_on(&found, anchor);
            if (anchor->offset < found.offset && (!before || anchor->offset > before->offset))
                before = anchor;
            if (anchor->offset > found.offset && (!after || anchor->offset < after->offset))
                after = anchor;
        }
        const uint64_t first = before ? before->base_offset + before->length : gap->start;
        const uint64_t last = after ? after->base_offset : gap->start + gap->length;
        if (certain || (found.base_offset >= first && found.base_offset + found.length <= last))
            continue;
        rows[i].match.base_offset = RDC_NOWHERE;
        if (first + found.length <= last && last - first + MARGIN <= left) {
            left -= last - first + MARGIN;
            look(q, gap, first, last - first, &rows[i], 1);
        }
    }
    free(anchors);
}

static int by_offset(const void *left, const void *right)
{
    const uint64_t u = ((const rdc_match *)left)->offset, v = ((const rdc_match *)right)->offset;
    return (u > v) - (u < v);
}

static void search(const rdc_gap_question *q, const rdc_gap *gap, rdc_match *matches, size_t *match_count,
                   rdc_span *ranges, size_t *range_count)
{
    row *rows = exactly(gap->blocks * sizeof *rows), *whole = exactly(gap->blocks * sizeof *rows);
    size_t at = 0, wholes = 0, joined = 0;
    for (size_t r = 0; r < gap->range_count; r++)
        for (uint64_t done = 0; done < gap->ranges[r].length; done += rows[at++].match.length) {
            const uint64_t left = gap->ranges[r].length - done;
            rows[at] = (row){{gap->ranges[r].start + done, RDC_NOWHERE, left < q->size ? left : q->size},
                             gap->fingerprints + at * q->width, r};
            if (left >= q->size)
                whole[wholes++] = rows[at];
        }
    if (wholes)
        look(q, gap, gap->start, gap->length, whole, wholes);
    for (size_t i = 0, w = 0; i < at; i++) {
        const uint64_t most = rows[i].match.length + 2 * MARGIN, take = most < gap->length ? most : gap->length;
        if (rows[i].match.length == q->size)
            rows[i] = whole[w++];
        else
            look(q, gap, gap->start + gap->length - take, take, &rows[i], 1);
    }
    put_in_order(q, gap, rows);
    *match_count = *range_count = 0;
    for (size_t i = 0; i < gap->match_count; i++)
        matches[(*match_count)++] = gap->matches[i];
    for (size_t i = 0; i < at; i++)
        if (rows[i].match.base_offset != RDC_NOWHERE)
            matches[(*match_count)++] = rows[i].match;
    qsort(matches, *match_count, sizeof *matches, by_offset);
    for (size_t i = 0; i < *match_count; i++)
        if (joined && goes_on(&matches[joined - 1], &matches[i]))
            matches[joined - 1].length += matches[i].length;
        else
            matches[joined++] = matches[i];
    *match_count = joined;
    for (size_t first = 0, end; q->smaller && first < at; first = end) {
        end = first + 1;
        if (rows[first].match.base_offset != RDC_NOWHERE)
            continue;
        while (end < at && rows[end].match.base_offset == RDC_NOWHERE && rows[end].range == rows[first].range)
            end++;
        const rdc_match *head = &rows[first].match, *tail = &rows[end - 1].match;
        rdc_span parts[2] = {{head->offset, tail->offset + tail->length - head->offset}, {tail->offset, tail->length}};
        const int apart = end - first > RUN_BLOCKS;
        if (apart)
            parts[0].length = head->length;
        for (int i = 0; i <= apart; i++) {
            if (parts[i].length % q->smaller < TAIL_BYTES)
                parts[i].length -= parts[i].length % q->smaller;
            if (parts[i].length)
                ranges[(*range_count)++] = parts[i];
        }
    }
    free(rows), free(whole);
}

static int round_agrees(generator *g)
{
    const size_t size = 1 + below(g, below(g, 3) ? 20 : 700), length = below(g, below(g, 4) ? 600 : 20000);
    const unsigned width = 1 + (unsigned)below(g, 8), rows = (unsigned)below(g, 30);
    uint8_t *key = exactly(16), *window = exactly(length), *content = exactly(rows * 3 * size + 1);
    rdc_span *ranges = exactly(rows * sizeof *ranges);
    rdc_match *matches = exactly(rows * sizeof *matches);
    uint8_t *fingerprints = exactly(rows * 3 * width);
    rdc_gap gap = {window, below(g, 5000), length, ranges, 0, matches, 0, fingerprints, 0};
    uint64_t offset = below(g, 1000);

    for (int i = 0; i < 16; i++)
        key[i] = (uint8_t)draw(g);
    make_stream(g, (unsigned)below(g, STREAM_KINDS), window, length);
    for (unsigned i = 0; i < rows; i++) {
        uint64_t bytes = 1 + below(g, 3 * size);
        if (length && !below(g, 4)) {
            bytes = bytes < length ? bytes : length;
            matches[gap.match_count++] = (rdc_match){offset, gap.start + below(g, length - bytes + 1), bytes};
        } else {
            for (size_t b = 0; b < bytes; b++)
                content[b] = (uint8_t)draw(g);
            const size_t from = length ? below(g, length) : 0, held = length - from < bytes ? length - from : bytes;
            if (below(g, 4))
                memcpy(content, window + from, held);
            rdc_block_fingerprints(key, content, bytes, size, width, fingerprints + gap.blocks * width);
            ranges[gap.range_count++] = (rdc_span){offset, bytes};
            gap.blocks += (bytes + size - 1) / size;
        }
        offset += bytes + (below(g, 3) ? 0 : below(g, 50));
    }
    const rdc_gap_question question = {key, size, below(g, 3) ? 1 + below(g, size) : 0, width};
    const size_t most = gap.blocks + gap.match_count;
    rdc_match *found = exactly(most * sizeof *found), *expected = exactly(most * sizeof *found);
    rdc_span *left = exactly(gap.blocks * sizeof *left), *open = exactly(gap.blocks * sizeof *left);
    size_t found_count, left_count, expected_count, open_count;
    rdc_gap_scratch *scratch = rdc_gap_scratch_new(gap.blocks, gap.match_count);
    if (!scratch || rdc_search_gap(&question, &gap, scratch, found, &found_count, left, &left_count))
        exit(2);
    rdc_gap_scratch_free(scratch);
    search(&question, &gap, expected, &expected_count, open, &open_count);
    const int agrees = found_count == expected_count && left_count == open_count &&
                       !memcmp(found, expected, found_count * sizeof *found) &&
                       !memcmp(left, open, left_count * sizeof *left);
    free(key), free(window), free(content), free(ranges), free(matches), free(fingerprints);
    free(found), free(expected), free(left), free(open);
    return agrees;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: gaps SEED COUNT\n", stderr);
        return 2;
    }
    const uint64_t seed = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    for (uint64_t i = 0; i < count; i++) {
        generator g = {(seed + i) << 32};
        if (!round_agrees(&g)) {
            fprintf(stderr, "the search differs in round %llu\n", (unsigned long long)(seed + i));
            return 1;
        }
    }
    printf("%llu rounds from seed %llu agree\n", (unsigned long long)count, (unsigned long long)seed);
    return 0;
}
