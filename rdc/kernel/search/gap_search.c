/* gap_search.c - the block search of a file's gaps in windows of a base.
 *
 * rdc/plan/gap_search.py describes single blocks; this file works in passes over columns. All blocks and all
 * anchors are in file order, so the neighbours of each are found by walking along, without a search. */
#include "search/gap_search.h"

#include <stdlib.h>
#include <string.h>

#include "search/match.h"

/* As in rdc/plan/gap_search.py. */
#define RUN_BLOCKS 8
#define TAIL_BYTES 16
#define END_MARGIN (UINT64_C(4) << 10)
#define STRAY_LOOK (UINT64_C(4) << 10)

typedef struct {
    uint64_t offset, base_offset, length; /* offset in the base; RDC_NOWHERE if not found */
    const uint8_t *fingerprint;
} block;

struct rdc_gap_scratch {
    block *blocks;
    uint64_t *base_offsets;
    uint8_t *wanted;
    rdc_match *runs;    /* room for half as many as blocks */
    rdc_match *anchors; /* for matches and runs */
};

rdc_gap_scratch *rdc_gap_scratch_new(size_t blocks, size_t matches)
{
    rdc_gap_scratch *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->blocks = malloc((blocks + 1) * sizeof *s->blocks);
    s->base_offsets = malloc((blocks + 1) * sizeof *s->base_offsets);
    s->wanted = malloc((blocks + 1) * 8);
    s->runs = malloc((blocks / 2 + 1) * sizeof *s->runs);
    s->anchors = malloc((blocks / 2 + matches + 1) * sizeof *s->anchors);
    if (s->blocks && s->base_offsets && s->wanted && s->runs && s->anchors)
        return s;
    rdc_gap_scratch_free(s);
    return NULL;
}

void rdc_gap_scratch_free(rdc_gap_scratch *s)
{
    if (!s)
        return;
    free(s->blocks);
    free(s->base_offsets);
    free(s->wanted);
    free(s->runs);
    free(s->anchors);
    free(s);
}

static rdc_match match_of(const block *b)
{
    return (rdc_match){b->offset, b->base_offset, b->length};
}

/* Returns whether `next` continues `one`, in the file and in the base. */
static int precedes(const rdc_match *one, const rdc_match *next)
{
    return one->offset + one->length == next->offset && one->base_offset + one->length == next->base_offset;
}

/* Returns the offset of the block within `length` bytes of the base from `start` on, which lie in the
 * gap's window. */
static int search_one(const rdc_gap_question *q, const rdc_gap *gap, uint64_t start, uint64_t length, block *b)
{
    uint64_t found;
    b->base_offset = RDC_NOWHERE;
    if (length < b->length)
        return 0;
    if (rdc_match_blocks(q->key, gap->window + (start - gap->start), (size_t)length, (size_t)b->length, q->width,
                         b->fingerprint, 1, &found))
        return -1;
    if (found != RDC_NOWHERE)
        b->base_offset = start + found;
    return 0;
}

/* Fills in the blocks. Searches all whole blocks together, and the tail of each range near the window's
 * end. */
static int search_all(const rdc_gap_question *q, const rdc_gap *gap, rdc_gap_scratch *s)
{
    size_t whole = 0, at = 0;
    const uint8_t *fingerprint = gap->fingerprints;
    for (size_t r = 0; r < gap->range_count; r++) {
        const uint64_t end = gap->ranges[r].start + gap->ranges[r].length;
        for (uint64_t offset = gap->ranges[r].start; offset < end; fingerprint += q->width) {
            const uint64_t length = end - offset < q->size ? end - offset : q->size;
            s->blocks[at++] = (block){offset, RDC_NOWHERE, length, fingerprint};
            if (length == q->size)
                memcpy(s->wanted + whole++ * q->width, fingerprint, q->width);
            offset += length;
        }
    }
    if (whole && gap->length >= q->size &&
        rdc_match_blocks(q->key, gap->window, gap->length, q->size, q->width, s->wanted, whole, s->base_offsets))
        return -1;
    whole = 0;
    for (size_t i = 0; i < gap->blocks; i++) {
        block *b = &s->blocks[i];
        if (b->length != q->size) {
            const uint64_t most = b->length + 2 * END_MARGIN, take = gap->length < most ? gap->length : most;
            if (search_one(q, gap, gap->start + (gap->length - take), take, b))
                return -1;
        } else if (gap->length >= q->size && s->base_offsets[whole++] != RDC_NOWHERE) {
            b->base_offset = gap->start + s->base_offsets[whole - 1];
        }
    }
    return 0;
}

/* Lists runs of two or more consecutive blocks that were found at consecutive offsets, each as one match. */
static size_t find_runs(const rdc_gap *gap, rdc_gap_scratch *s)
{
    size_t count = 0, first = 0;
    rdc_match run = {0, 0, 0}; /* of blocks first to i */
    for (size_t i = 0; i < gap->blocks; i++) {
        const rdc_match next = match_of(&s->blocks[i]);
        if (next.base_offset == RDC_NOWHERE || !run.length || !precedes(&run, &next)) {
            if (run.length && i - first > 1)
                s->runs[count++] = run;
            run = next;
            first = i;
            if (next.base_offset == RDC_NOWHERE)
                run.length = 0;
        } else {
            run.length += next.length;
        }
    }
    if (run.length && gap->blocks - first > 1)
        s->runs[count++] = run;
    return count;
}

/* The gap's matches and the runs, by offset. */
static size_t merge_anchors(const rdc_gap *gap, rdc_gap_scratch *s)
{
    const size_t runs = find_runs(gap, s);
    size_t p = 0, r = 0, count = 0;
    while (p < gap->match_count || r < runs)
        if (r == runs || (p < gap->match_count && gap->matches[p].offset <= s->runs[r].offset))
            s->anchors[count++] = gap->matches[p++];
        else
            s->anchors[count++] = s->runs[r++];
    return count;
}

/* Searches single blocks that are out of order between their neighbours instead. */
static int put_in_order(const rdc_gap_question *q, const rdc_gap *gap, rdc_gap_scratch *s)
{
    const size_t count = merge_anchors(gap, s);
    uint64_t left = gap->length;
    size_t at = 0; /* the first anchor that does not begin before the block */
    for (size_t i = 0; i < gap->blocks; i++) {
        block *b = &s->blocks[i];
        const rdc_match found = match_of(b);
        if (found.base_offset == RDC_NOWHERE)
            continue;
        while (at < count && s->anchors[at].offset < found.offset)
            at++;
        const rdc_match *before = at ? &s->anchors[at - 1] : NULL, *after = at < count ? &s->anchors[at] : NULL;
        if (after && (after->offset == found.offset || precedes(&found, after)))
            continue;
        if (before && (before->offset + before->length > found.offset || precedes(before, &found)))
            continue; /* one of a run, or what goes on after it */
        const uint64_t first = before ? before->base_offset + before->length : gap->start;
        const uint64_t last = after ? after->base_offset : gap->start + gap->length;
        if (first <= found.base_offset && found.base_offset + found.length <= last)
            continue;
        b->base_offset = RDC_NOWHERE;
        if (last < first || last - first < found.length || last - first + STRAY_LOOK > left)
            continue;
        left -= last - first + STRAY_LOOK;
        if (search_one(q, gap, first, last - first, b))
            return -1;
    }
    return 0;
}

static void append(rdc_match *out, size_t *count, const rdc_match *match)
{
    if (*count && precedes(&out[*count - 1], match))
        out[*count - 1].length += match->length;
    else
        out[(*count)++] = *match;
}

static size_t join_matches(const rdc_gap *gap, const rdc_gap_scratch *s, rdc_match *out)
{
    size_t p = 0, count = 0;
    for (size_t i = 0; i < gap->blocks; i++) {
        const rdc_match found = match_of(&s->blocks[i]);
        if (found.base_offset == RDC_NOWHERE)
            continue;
        while (p < gap->match_count && gap->matches[p].offset <= found.offset)
            append(out, &count, &gap->matches[p++]);
        append(out, &count, &found);
    }
    while (p < gap->match_count)
        append(out, &count, &gap->matches[p++]);
    return count;
}

/* Appends a range cut to whole smaller blocks, with a tail only if it is worth a fingerprint. */
static void reopen(uint64_t start, uint64_t length, size_t smaller, rdc_span *out, size_t *count)
{
    const uint64_t rest = length % smaller;
    if (rest < TAIL_BYTES)
        length -= rest;
    if (length)
        out[(*count)++] = (rdc_span){start, length};
}

/* Appends unmatched runs of each range; of long runs only the first and the last block. */
static size_t reopen_all(const rdc_gap_question *q, const rdc_gap *gap, const rdc_gap_scratch *s, rdc_span *out)
{
    size_t count = 0, i = 0;
    if (!q->smaller)
        return 0;
    for (size_t r = 0; r < gap->range_count; r++) {
        const uint64_t end = gap->ranges[r].start + gap->ranges[r].length;
        while (i < gap->blocks && s->blocks[i].offset < end) {
            const size_t first = i;
            while (i < gap->blocks && s->blocks[i].offset < end && s->blocks[i].base_offset == RDC_NOWHERE)
                i++;
            if (i == first) {
                i++;
                continue;
            }
            const block *head = &s->blocks[first], *tail = &s->blocks[i - 1];
            if (i - first > RUN_BLOCKS) {
                reopen(head->offset, head->length, q->smaller, out, &count);
                reopen(tail->offset, tail->length, q->smaller, out, &count);
            } else {
                reopen(head->offset, tail->offset + tail->length - head->offset, q->smaller, out, &count);
            }
        }
    }
    return count;
}

int rdc_search_gap(const rdc_gap_question *q, const rdc_gap *gap, rdc_gap_scratch *s, rdc_match *matches,
                   size_t *match_count, rdc_span *ranges, size_t *range_count)
{
    if (search_all(q, gap, s) || put_in_order(q, gap, s))
        return -1;
    *match_count = join_matches(gap, s, matches);
    *range_count = reopen_all(q, gap, s, ranges);
    return 0;
}
