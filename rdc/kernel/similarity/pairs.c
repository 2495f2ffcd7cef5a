/* pairs.c - all pairs of similar files in an index, a bounded part at a time.
 *
 * Files of equal traits form a class. Classes are joined by two traits at a time: those that agree in both
 * lie in one of 4,096 buckets, and within a bucket each is compared with all after it (lanes.h).
 *
 * The twelve traits are divided into s sections. Files that agree in more than s traits agree in two of
 * one section, so pairs of traits within sections suffice. For four matches that is 18 joins (three
 * sections of four) instead of 66. A pair is given in the first join that finds it. A million unrelated
 * files have 244 in a bucket. Comparing all of them with each other would take half a million million
 * comparisons.
 *
 * Where many files share traits buckets grow, and two limits keep the work linear in the files. Of a class
 * of more than RDC_CLASS_FILES only the first is paired, with other classes and with each file of its own.
 * In a bucket a class is compared with the `window` classes that follow it in the order of traits.
 * Comparisons left out are counted.
 *
 * Spanning pairs suffice for groups. A flood of n similar files has n^2 pairs, and n - 1 connect them all.
 * There is a forest for each number of matches, and a pair whose classes already have one root is skipped. */
#include "similarity/similarity.h"

#include <stdlib.h>
#include <string.h>

#include "platform.h"

/* Limits of one step: comparisons of 256 files, about 40 ns each, and pairs. */
#define STEP_COMPARISONS 250000
#define STEP_PAIRS 4096

#define BUCKETS (1 << 2 * RDC_TRAIT_BITS)

typedef struct file {
    uint64_t low, key;
    uint8_t high;
} file;

static int by_traits(const void *left, const void *right)
{
    const file *a = left, *b = right;
    if (a->high != b->high)
        return a->high < b->high ? -1 : 1;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    return a->key < b->key ? -1 : a->key > b->key;
}

/* The joins that find every pair with `least` >= 2 matches. */
static void choose_joins(rdc_pairs *p)
{
    static const unsigned sections[] = {6, 4, 3, 2, 1};
    unsigned count = 1;
    for (unsigned i = 0; i < sizeof sections / sizeof *sections; i++) {
        count = sections[i];
        if (p->least > count)
            break;
    }
    const unsigned size = RDC_TRAIT_COUNT / count;
    for (unsigned begin = 0; begin < RDC_TRAIT_COUNT; begin += size)
        for (unsigned t = begin; t < begin + size; t++)
            for (unsigned u = t + 1; u < begin + size; u++) {
                p->join[p->joins][0] = (uint8_t)t;
                p->join[p->joins++][1] = (uint8_t)u;
            }
}

static int read_classes(rdc_pairs *p, const rdc_index *index)
{
    const size_t n = p->files;
    file *sorted = malloc((n + !n) * sizeof *sorted);
    if (!sorted)
        return -1;
    for (size_t i = 0; i < n; i++) {
        rdc_row row;
        rdc_index_row(index, i, &row);
        sorted[i] = (file){rdc_load64(row.traits), row.key, row.traits[8]};
    }
    qsort(sorted, n, sizeof *sorted, by_traits);
    for (size_t i = 0; i < n; i++)
        p->classes += !i || sorted[i].low != sorted[i - 1].low || sorted[i].high != sorted[i - 1].high;
    p->key = malloc((n + !n) * sizeof *p->key);
    p->class = malloc((p->classes + !n) * sizeof *p->class);
    p->order = malloc((p->classes + !n) * sizeof *p->order);
    if (!p->key || !p->class || !p->order) {
        free(sorted);
        return -1;
    }
    rdc_class *class = p->class;
    for (size_t i = 0; i < n; i++) {
        p->key[i] = sorted[i].key;
        if (i && sorted[i].low == sorted[i - 1].low && sorted[i].high == sorted[i - 1].high)
            class[-1].files++;
        else
            *class++ = (rdc_class){sorted[i].low, (uint32_t)i, 1, sorted[i].high};
    }
    free(sorted);
    for (size_t c = 0; c < p->classes; c++)
        if (p->class[c].files > RDC_CLASS_FILES)
            p->flooded += p->class[c].files - 1;
    return 0;
}

int rdc_pairs_start(rdc_pairs *p, const rdc_index *index, unsigned least, size_t window, int spanning)
{
    *p = (rdc_pairs){.files = index->count, .window = window, .least = least, .at_join = UINT32_MAX};
    choose_joins(p);
    if (read_classes(p, index))
        return -1;
    if (!spanning)
        return 0;
    const size_t forests = RDC_TRAIT_COUNT - least;
    p->above = malloc((forests * p->classes + 1) * sizeof *p->above);
    if (!p->above)
        return -1;
    for (size_t i = 0; i < forests; i++)
        for (size_t c = 0; c < p->classes; c++)
            p->above[i * p->classes + c] = (uint32_t)c;
    return 0;
}

void rdc_pairs_end(rdc_pairs *p)
{
    free(p->key);
    free(p->class);
    free(p->order);
    free(p->planes);
    free(p->pair);
    free(p->above);
    *p = (rdc_pairs){0};
}

/* ---- pairs ---- */

static int reserve_pairs(rdc_pairs *p, size_t more)
{
    if (p->room - p->found >= more)
        return 0;
    size_t room = p->found + more + STEP_PAIRS;
    rdc_pair *pair = realloc(p->pair, room * sizeof *pair);
    if (!pair)
        return -1;
    p->pair = pair;
    p->room = room;
    return 0;
}

static void add_pair(rdc_pairs *p, uint64_t a, uint64_t b, unsigned matches)
{
    p->pair[p->found++] = a < b ? (rdc_pair){a, b, matches} : (rdc_pair){b, a, matches};
}

/* Files of a class that are paired with those of other classes. */
static uint32_t paired_files(const rdc_class *class)
{
    return class->files > RDC_CLASS_FILES ? 1 : class->files;
}

/* Pairs within class `at`: each with each; or each with the first if there are many, or if that suffices. */
static int pair_class(rdc_pairs *p)
{
    const rdc_class *class = &p->class[p->at];
    const uint64_t *key = p->key + class->first;
    if (class->files <= RDC_CLASS_FILES && !p->above) {
        if (reserve_pairs(p, RDC_CLASS_FILES * RDC_CLASS_FILES / 2))
            return -1;
        for (uint32_t i = 0; i < class->files; i++)
            for (uint32_t j = i + 1; j < class->files; j++)
                add_pair(p, key[i], key[j], RDC_TRAIT_COUNT);
        p->at++;
        return 0;
    }
    size_t count = class->files - 1 - p->lane;
    if (count > STEP_PAIRS)
        count = STEP_PAIRS;
    if (reserve_pairs(p, count))
        return -1;
    while (count--)
        add_pair(p, key[0], key[++p->lane], RDC_TRAIT_COUNT);
    if (p->lane == class->files - 1) {
        p->lane = 0;
        p->at++;
    }
    return 0;
}

/* ---- joins ---- */

static unsigned trait_of(const rdc_class *class, unsigned t)
{
    unsigned bit = RDC_TRAIT_BITS * t;
    if (bit >= 64)
        return (unsigned)class->high >> (bit - 64);
    return (unsigned)(class->low >> bit | (bit > 64 - RDC_TRAIT_BITS ? (uint64_t)class->high << (64 - bit) : 0)) & 63;
}

static unsigned bucket_of(const rdc_pairs *p, size_t class)
{
    const uint8_t *join = p->join[p->at_join];
    return trait_of(&p->class[class], join[0]) << RDC_TRAIT_BITS | trait_of(&p->class[class], join[1]);
}

/* Sorts the classes by bucket, keeping their order within one. */
static void sort_classes(rdc_pairs *p)
{
    uint32_t start[BUCKETS + 1] = {0};
    for (size_t c = 0; c < p->classes; c++)
        start[bucket_of(p, c) + 1]++;
    for (unsigned b = 0; b < BUCKETS; b++)
        start[b + 1] += start[b];
    for (size_t c = 0; c < p->classes; c++)
        p->order[start[bucket_of(p, c)]++] = (uint32_t)c;
}

static void class_traits(const rdc_class *class, uint8_t *traits)
{
    for (int i = 0; i < 8; i++)
        traits[i] = (uint8_t)(class->low >> 8 * i);
    traits[8] = class->high;
}

/* Finds the next bucket and lays out its planes. Returns its size, -1 without memory. After the last, the
 * bucket is empty. */
static int next_bucket(rdc_pairs *p)
{
    p->begin = p->at = p->end;
    while (p->end < p->classes && bucket_of(p, p->order[p->end]) == bucket_of(p, p->order[p->begin]))
        p->end++;
    p->lane = 1;
    if (p->end - p->begin < 2)
        return 0;
    const size_t groups = (p->end - p->begin + RDC_GROUP_FILES - 1) / RDC_GROUP_FILES;
    if (groups > p->groups) {
        free(p->planes);
        p->groups = 0;
        p->planes = malloc(groups * sizeof *p->planes);
        if (!p->planes)
            return -1;
        p->groups = groups;
    }
    memset(p->planes, 0, groups * sizeof *p->planes);
    for (size_t i = p->begin; i < p->end; i++) {
        uint8_t traits[RDC_TRAIT_BYTES];
        class_traits(&p->class[p->order[i]], traits);
        rdc_planes_put(p->planes[(i - p->begin) / RDC_GROUP_FILES], (i - p->begin) % RDC_GROUP_FILES, traits);
    }
    return 0;
}

/* Returns whether this join is the first in which both classes agree. */
static int found_first(const rdc_pairs *p, const rdc_class *a, const rdc_class *b)
{
    for (unsigned j = 0; j < p->at_join; j++)
        if (trait_of(a, p->join[j][0]) == trait_of(b, p->join[j][0]) &&
            trait_of(a, p->join[j][1]) == trait_of(b, p->join[j][1]))
            return 0;
    return 1;
}

static uint32_t root_of(uint32_t *above, uint32_t class)
{
    while (above[class] != class)
        class = above[class] = above[above[class]];
    return class;
}

/* Connects two classes for this number of matches and all smaller ones. Returns whether that is new.
 * Classes connected by more matches are connected by fewer. */
static int tie(rdc_pairs *p, uint32_t a, uint32_t b, unsigned matches)
{
    int tied = 0;
    for (unsigned m = matches; m >= p->least; m--) {
        uint32_t *above = p->above + (m - p->least) * p->classes;
        const uint32_t x = root_of(above, a), y = root_of(above, b);
        if (x == y)
            break;
        above[x < y ? y : x] = x < y ? x : y;
        tied = 1;
    }
    return tied;
}

static int pair_classes(rdc_pairs *p, const rdc_class *a, const rdc_class *b, unsigned matches)
{
    if (p->above) {
        if (!tie(p, (uint32_t)(a - p->class), (uint32_t)(b - p->class), matches))
            return 0;
        if (reserve_pairs(p, 1))
            return -1;
        add_pair(p, p->key[a->first], p->key[b->first], matches);
        return 0;
    }
    const uint32_t of_a = paired_files(a), of_b = paired_files(b);
    if (!found_first(p, a, b))
        return 0;
    if (reserve_pairs(p, (size_t)of_a * of_b))
        return -1;
    for (uint32_t i = 0; i < of_a; i++)
        for (uint32_t j = 0; j < of_b; j++)
            add_pair(p, p->key[a->first + i], p->key[b->first + j], matches);
    return 0;
}

/* Compares class `at` with the 256 classes of the bucket around `lane`, from `lane` to the last one
 * wanted. */
static int compare(rdc_pairs *p, const uint64_t *wanted, size_t last)
{
    const size_t first = p->lane / RDC_LANE_FILES * RDC_LANE_FILES;
    const rdc_class *a = &p->class[p->order[p->at]];
    rdc_lanes count[4];
    uint64_t files[RDC_LANE_WORDS];

    rdc_count_matches((const uint64_t(*)[RDC_GROUP_WORDS])p->planes[first / RDC_GROUP_FILES],
                      (unsigned)(first % RDC_GROUP_FILES) / 64, wanted, count);
    if (rdc_at_least(count, p->least, files)) {
        for (unsigned word = 0; word < RDC_LANE_WORDS; word++) {
            for (uint64_t left = files[word]; left; left &= left - 1) {
                unsigned bit = (unsigned)__builtin_ctzll(left);
                size_t lane = first + 64 * word + bit;
                if (lane < p->lane || lane > last)
                    continue;
                if (pair_classes(p, a, &p->class[p->order[p->begin + lane]], rdc_matches_at(count, word, bit)))
                    return -1;
            }
        }
    }
    p->lane = first + RDC_LANE_FILES;
    return 0;
}

/* Compares class `at` of the bucket with those after it, up to the limit of the step. */
static int compare_class(rdc_pairs *p, long *work)
{
    const size_t own = p->at - p->begin, size = p->end - p->begin;
    const size_t last = size - 1 - own > p->window ? own + p->window : size - 1;
    rdc_wanted wanted;
    uint8_t traits[RDC_TRAIT_BYTES];

    class_traits(&p->class[p->order[p->at]], traits);
    rdc_want(wanted, traits);
    while (p->lane <= last) {
        if (*work <= 0 || p->found >= STEP_PAIRS)
            return 0;
        --*work;
        if (compare(p, wanted, last))
            return -1;
    }
    p->skipped += size - 1 - last;
    p->at++;
    p->lane = own + 2;
    return 0;
}

int rdc_pairs_step(rdc_pairs *p)
{
    long work = STEP_COMPARISONS;
    p->found = 0;
    while (p->at_join == UINT32_MAX) {
        if (p->at == p->classes) {
            p->at_join = 0;
            p->at = p->begin = p->end = p->lane = 0;
            sort_classes(p);
        } else if (pair_class(p)) {
            return -1;
        }
        if (p->found >= STEP_PAIRS)
            return 1;
    }
    while (p->at_join < p->joins) {
        if (work <= 0 || p->found >= STEP_PAIRS)
            return 1;
        if (p->at < p->end) {
            work--;
            if (compare_class(p, &work))
                return -1;
        } else if (p->end < p->classes) {
            work -= 4; /* about what laying out a bucket costs */
            if (next_bucket(p))
                return -1;
        } else if (++p->at_join < p->joins) {
            p->at = p->begin = p->end = 0;
            sort_classes(p);
            work -= (long)(p->classes / 8);
        }
    }
    return 0;
}
