/* alike.c - compares the samples of documents in groups, 16 of them at a time. GCC and Clang provide these vectors on
 * every CPU. Documents of a block stay in the cache while those of another pass it. */
#include "sets/sets.h"

#include <stdlib.h>
#include <string.h>

typedef uint8_t lanes __attribute__((vector_size(16)));
typedef uint64_t halves __attribute__((vector_size(16)));

enum {
    LANES = 16,
    ROUNDS = 255, /* that a lane can count */
    BLOCK = 128,   /* documents of a block: 16 KiB of 128 samples each */
};

static inline size_t sum_of(lanes counted)
{
    const uint64_t even = UINT64_C(0x00ff00ff00ff00ff), ones = UINT64_C(0x0001000100010001);
    const halves pairs = ((halves)counted & even) + ((halves)counted >> 8 & even);
    return (size_t)((pairs[0] + pairs[1]) * ones >> 48);
}

static size_t equal_samples(const uint8_t *a, const uint8_t *b, size_t width)
{
    size_t equal = 0, at = 0;
    while (at + LANES <= width) {
        lanes counted = {0};
        for (unsigned round = 0; round < ROUNDS && at + LANES <= width; round++, at += LANES) {
            lanes one, other;
            memcpy(&one, a + at, LANES);
            memcpy(&other, b + at, LANES);
            counted -= (lanes)(one == other);
        }
        equal += sum_of(counted);
    }
    for (; at < width; at++)
        equal += a[at] == b[at];
    return equal;
}

static int pairs_of_blocks(const rdc_alike_groups *g, size_t least, size_t from, size_t to, size_t other, size_t end,
                          rdc_alike_found *found, void *context)
{
    for (size_t i = from; i < to; i++) {
        const uint32_t one = g->members[i];
        if (g->labels[one] == RDC_ALIKE_SKIP)
            continue;
        for (size_t j = other > i ? other : i + 1; j < end; j++) {
            const uint32_t two = g->members[j];
            if (g->labels[one] == g->labels[two] || g->labels[two] == RDC_ALIKE_SKIP)
                continue;
            const size_t equal = equal_samples(g->samples + one * g->width, g->samples + two * g->width, g->width);
            int code;
            if (equal >= least && (code = found(context, one, two, equal)))
                return code;
        }
    }
    return 0;
}

int rdc_alike_pairs(const rdc_alike_groups *g, size_t least, size_t first, size_t stop, rdc_alike_found *found,
                    void *context)
{
    size_t end = 0;
    for (size_t group = 0; group < g->groups && end < stop; group++) {
        size_t at = end;
        end += g->counts[group];
        if (at < first)
            at = first;
        for (; at < end && at < stop; at += BLOCK) {
            size_t to = at + BLOCK < end ? at + BLOCK : end;
            if (to > stop)
                to = stop;
            for (size_t other = at; other < end; other += BLOCK) {
                const int code =
                    pairs_of_blocks(g, least, at, to, other, other + BLOCK < end ? other + BLOCK : end, found, context);
                if (code)
                    return code;
            }
        }
    }
    return 0;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    return (one > other) - (one < other);
}

void rdc_label_pairs(const rdc_alike_groups *g, uint32_t *room, uint64_t *found)
{
    size_t start = 0;
    for (size_t group = 0; group < g->groups; group++) {
        size_t count = 0;
        for (size_t i = 0; i < g->counts[group]; i++) {
            const uint32_t label = g->labels[g->members[start + i]];
            if (label != RDC_ALIKE_SKIP)
                room[count++] = label;
        }
        start += g->counts[group];
        if (count)
            qsort(room, count, sizeof *room, by_number);
        uint64_t pairs = 0;
        for (size_t from = 0, i = 1; i <= count; i++)
            if (i == count || room[i] != room[from]) {
                pairs += (uint64_t)(i - from) * (count - i); /* this label with those after it */
                from = i;
            }
        found[group] = pairs;
    }
}
