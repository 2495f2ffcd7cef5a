/* index.c - files by key with their traits and sizes, and the most similar ones to a given file.
 *
 * Files are stored in groups of 512 without holes: the last one replaces a removed one. A hash table maps
 * keys to slots.
 *
 * A query examines every file (lanes.h says why that is cheap) and keeps the best `limit` in a heap with
 * the worst in front. Once the heap is full, files with fewer matches than the worst are skipped 256 at a
 * time.
 *
 * The worst case is a flood: all files have the wanted traits, so each is compared by size, and for equal
 * sizes by key. A file then costs a few instructions unless it displaces another one in the heap. To
 * prevent displacement by every file of an ordered sequence, groups are visited in a scattered order. The
 * best of a scattered prefix are about the best of all, and few groups improve on them. */
#include "similarity/similarity.h"

#include <stdlib.h>

#include "platform.h"
#include "mix.h"

struct rdc_group {
    rdc_planes planes;
    uint64_t key[RDC_GROUP_FILES];
    uint16_t size[RDC_GROUP_FILES];
};

/* Groups that all queries examine before the next ones: their planes stay in the first-level cache. */
#define RUN_GROUPS 4

static rdc_group *group_of(const rdc_index *index, size_t slot)
{
    return index->group[slot / RDC_GROUP_FILES];
}

/* ---- the table ---- */

/* Keys may come from a hostile file. Without the seed, nobody can choose colliding ones. */
static size_t home(const rdc_index *index, uint64_t key)
{
    return (size_t)rdc_mix(key ^ index->seed) & (index->buckets - 1);
}

/* Returns the slot of the key, or the empty slot where it would be. Needs an empty slot. */
static size_t bucket_of(const rdc_index *index, uint64_t key)
{
    size_t bucket = home(index, key);
    while (index->slot[bucket]) {
        size_t slot = index->slot[bucket] - 1;
        if (group_of(index, slot)->key[slot % RDC_GROUP_FILES] == key)
            break;
        bucket = (bucket + 1) & (index->buckets - 1);
    }
    return bucket;
}

/* Keeps the table at most three quarters full. */
static int reserve_bucket(rdc_index *index)
{
    if (index->count < index->buckets / 4 * 3)
        return 0;
    size_t buckets = index->buckets ? 2 * index->buckets : 64;
    uint32_t *slot = calloc(buckets, sizeof *slot);
    if (!slot)
        return -1;
    free(index->slot);
    index->slot = slot;
    index->buckets = buckets;
    for (size_t i = 0; i < index->count; i++)
        slot[bucket_of(index, group_of(index, i)->key[i % RDC_GROUP_FILES])] = (uint32_t)i + 1;
    return 0;
}

/* Empties a slot. Entries that were pushed past it move back, so that no search ends too early. */
static void empty_bucket(rdc_index *index, size_t hole)
{
    const size_t mask = index->buckets - 1;
    for (size_t bucket = (hole + 1) & mask; index->slot[bucket]; bucket = (bucket + 1) & mask) {
        size_t slot = index->slot[bucket] - 1;
        size_t wanted = home(index, group_of(index, slot)->key[slot % RDC_GROUP_FILES]);
        /* The entry may move unless its home lies behind the hole, cyclically. */
        if (((bucket - wanted) & mask) >= ((bucket - hole) & mask)) {
            index->slot[hole] = index->slot[bucket];
            hole = bucket;
        }
    }
    index->slot[hole] = 0;
}

/* ---- rows ---- */

static int reserve_slot(rdc_index *index)
{
    if (index->count < index->groups * RDC_GROUP_FILES)
        return 0;
    if (index->groups == index->room) {
        size_t room = index->room ? 2 * index->room : 4;
        rdc_group **group = realloc(index->group, room * sizeof *group);
        if (!group)
            return -1;
        index->group = group;
        index->room = room;
    }
    /* Unused lanes are read, and then left out. */
    rdc_group *group = calloc(1, sizeof *group);
    if (!group)
        return -1;
    index->group[index->groups++] = group;
    return 0;
}

static void write_slot(rdc_index *index, size_t slot, const rdc_row *row)
{
    rdc_group *group = group_of(index, slot);
    unsigned lane = slot % RDC_GROUP_FILES;
    rdc_planes_put(group->planes, lane, row->traits);
    group->key[lane] = row->key;
    group->size[lane] = row->size;
}

void rdc_index_row(const rdc_index *index, size_t slot, rdc_row *row)
{
    const rdc_group *group = group_of(index, slot);
    unsigned lane = slot % RDC_GROUP_FILES;
    rdc_planes_get((const uint64_t(*)[RDC_GROUP_WORDS])group->planes, lane, row->traits);
    row->key = group->key[lane];
    row->size = group->size[lane];
}

int rdc_index_put(rdc_index *index, const rdc_row *row)
{
    if (index->buckets) {
        size_t bucket = bucket_of(index, row->key);
        if (index->slot[bucket]) {
            write_slot(index, index->slot[bucket] - 1, row);
            return 0;
        }
    }
    if (index->count >= RDC_INDEX_FILES)
        return -2;
    if (reserve_slot(index) || reserve_bucket(index))
        return -1;
    write_slot(index, index->count, row);
    index->slot[bucket_of(index, row->key)] = (uint32_t)++index->count;
    return 0;
}

int rdc_index_get(const rdc_index *index, uint64_t key, rdc_row *row)
{
    size_t bucket = index->buckets ? bucket_of(index, key) : 0;
    if (!index->buckets || !index->slot[bucket])
        return 0;
    rdc_index_row(index, index->slot[bucket] - 1, row);
    return 1;
}

int rdc_index_remove(rdc_index *index, uint64_t key)
{
    size_t bucket = index->buckets ? bucket_of(index, key) : 0;
    if (!index->buckets || !index->slot[bucket])
        return 0;
    size_t hole = index->slot[bucket] - 1, last = index->count - 1;
    empty_bucket(index, bucket);
    if (hole != last) {
        rdc_row row;
        rdc_index_row(index, last, &row);
        size_t moved = bucket_of(index, row.key);
        write_slot(index, hole, &row);
        index->slot[moved] = (uint32_t)hole + 1;
    }
    index->count--;
    /* One empty group stays, so that adding and removing a file does not move memory each time. */
    if (index->groups > 1 && index->count <= (index->groups - 2) * RDC_GROUP_FILES)
        free(index->group[--index->groups]);
    return 1;
}

void rdc_index_end(rdc_index *index)
{
    while (index->groups)
        free(index->group[--index->groups]);
    free(index->group);
    free(index->slot);
    *index = (rdc_index){.seed = index->seed};
}

size_t rdc_index_memory(const rdc_index *index)
{
    return index->groups * sizeof(rdc_group) + index->room * sizeof *index->group + index->buckets * sizeof *index->slot;
}

/* ---- queries ---- */

static int better(const rdc_similar *a, const rdc_similar *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank;
    return a->distance != b->distance ? a->distance < b->distance : a->key < b->key;
}

/* Sinks the entry at `at` until no entry below it is worse. */
static void sink(rdc_similar *heap, size_t count, size_t at)
{
    rdc_similar moving = heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count)
            break;
        if (child + 1 < count && better(&heap[child], &heap[child + 1]))
            child++;
        if (!better(&moving, &heap[child]))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

static void take(rdc_query *query, const rdc_similar *match)
{
    if (query->count < query->limit) {
        query->match[query->count++] = *match;
        if (query->count == query->limit)
            for (size_t at = query->limit / 2; at-- > 0;)
                sink(query->match, query->limit, at);
    } else {
        query->match[0] = *match;
        sink(query->match, query->limit, 0);
    }
    if (query->count == query->limit)
        query->least = RDC_TRAIT_COUNT - (query->match[0].rank >> 16);
}

static uint64_t apart(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

static void consider(rdc_query *query, const rdc_group *group, unsigned lane, unsigned matches)
{
    const uint32_t rank =
        (RDC_TRAIT_COUNT - matches) << 16 | (uint32_t)apart(group->size[lane], query->row.size);
    const int full = query->count == query->limit;
    if (full && rank > query->match[0].rank)
        return;
    const rdc_similar match = {group->key[lane], apart(group->key[lane], query->row.key), rank};
    if (!full || better(&match, &query->match[0]))
        take(query, &match);
}

/* Returns whether one of the 64 files from `first` on would displace the worst match with as many equal
 * traits. */
static int may_displace(const rdc_query *query, const rdc_group *group, unsigned first)
{
    const rdc_similar *worst = &query->match[0];
    const uint16_t *size = group->size + first, wanted = query->row.size;
    uint16_t nearest = UINT16_MAX;
    for (unsigned i = 0; i < 64; i++) {
        uint16_t distance = (uint16_t)(size[i] < wanted ? wanted - size[i] : size[i] - wanted);
        nearest = distance < nearest ? distance : nearest;
    }
    if (nearest != (uint16_t)worst->rank)
        return nearest < (uint16_t)worst->rank;
    /* Keys no further away than the worst lie in one interval: one comparison each. */
    const uint64_t key = query->row.key, lowest = key > worst->distance ? key - worst->distance : 0;
    const uint64_t width = (UINT64_MAX - key > worst->distance ? key + worst->distance : UINT64_MAX) - lowest;
    int may = 0;
    for (unsigned i = 0; i < 64; i++)
        may |= group->key[first + i] - lowest <= width;
    return may;
}

static void query_group(rdc_query *query, const rdc_group *group, size_t used)
{
    for (unsigned first = 0; first < used; first += RDC_LANE_FILES) {
        rdc_lanes count[4];
        uint64_t files[RDC_LANE_WORDS], more[RDC_LANE_WORDS];
        rdc_count_matches((const uint64_t(*)[RDC_GROUP_WORDS])group->planes, first / 64, query->wanted, count);
        if (!rdc_at_least(count, query->least, files))
            continue;
        rdc_at_least(count, query->least + 1, more);
        for (unsigned word = 0; word < RDC_LANE_WORDS; word++) {
            /* In a flood nearly all files equal the worst match: compare sizes and keys 64 at a time. */
            if (query->count == query->limit && !more[word] && __builtin_popcountll(files[word]) > 8 &&
                !may_displace(query, group, first + 64 * word))
                continue;
            for (uint64_t left = files[word]; left; left &= left - 1) {
                unsigned bit = (unsigned)__builtin_ctzll(left), lane = first + 64 * word + bit;
                if (lane >= used)
                    break;
                consider(query, group, lane, rdc_matches_at(count, word, bit));
            }
        }
    }
}

/* About the golden ratio of `runs`, and coprime to it: its multiples visit all runs in a scattered order. */
static size_t stride_of(size_t runs)
{
    for (size_t stride = (size_t)((double)runs * 0.6180339887);; stride++) {
        size_t a = runs, b = stride;
        while (b) {
            size_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return stride;
    }
}

void rdc_query_start(rdc_query *query, const rdc_row *row, rdc_similar *match, size_t limit, unsigned least)
{
    query->row = *row;
    rdc_want(query->wanted, row->traits);
    query->match = match;
    query->count = 0;
    query->limit = limit;
    query->least = least;
}

void rdc_index_query(const rdc_index *index, rdc_query *query, size_t queries)
{
    const size_t groups = (index->count + RDC_GROUP_FILES - 1) / RDC_GROUP_FILES;
    const size_t runs = (groups + RUN_GROUPS - 1) / RUN_GROUPS;
    const size_t stride = runs ? stride_of(runs) : 0;

    for (size_t i = 0, run = 0; i < runs; i++, run = (run + stride) % runs) {
        for (size_t q = 0; q < queries; q++) {
            for (size_t g = run * RUN_GROUPS; g < groups && g < (run + 1) * RUN_GROUPS; g++) {
                size_t used = index->count - g * RDC_GROUP_FILES;
                query_group(&query[q], index->group[g], used < RDC_GROUP_FILES ? used : RDC_GROUP_FILES);
            }
        }
    }
    for (size_t q = 0; q < queries; q++) {
        rdc_similar *match = query[q].match;
        size_t count = query[q].count;
        /* Heap sort. A heap that was not filled has to be built first. */
        for (size_t at = count / 2; at-- > 0;)
            sink(match, count, at);
        while (count > 1) {
            rdc_similar worst = match[0];
            match[0] = match[--count];
            match[count] = worst;
            sink(match, count, 0);
        }
    }
}
