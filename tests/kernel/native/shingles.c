/*
 * shingles.c - shingles of random texts by all variants, in blocks of exactly their size: a sanitizer sees a byte read or written
 * past an end.
 *
 *     shingles SEED COUNT NUMBERS    COUNT rounds with the characters of the file NUMBERS; whatever differs is printed and
 *                                    ends it with 1
 *
 * What a shingle is, is compared with its definition in Python. Here all variants must find the same, wherever the text is divided:
 * spaces in front of it, which mean nothing, move all its blocks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "character_tables.h"
#include "shingles/shingles.h"
#include "streams.h"

static const rdc_shingling *const variants[] = {
    &rdc_shingling_plain,
#if defined(__x86_64__)
    &rdc_shingling_avx2,
#elif defined(__aarch64__)
    &rdc_shingling_neon,
#endif
};
#define VARIANTS (sizeof variants / sizeof *variants)

static void *exactly(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory) {
        fputs("shingles: no memory\n", stderr);
        exit(2);
    }
    return memory;
}

static int grow(rdc_feature_list *list, size_t more)
{
    uint64_t *features = exactly((list->count + more) * sizeof *features);
    if (list->count)
        memcpy(features, list->features, list->count * sizeof *features);
    free(list->features);
    list->features = features;
    list->room = list->count + more;
    return 0;
}

typedef struct {
    size_t k;
    int by_characters, wrap;
} way;

static rdc_feature_list features_of(const rdc_shingling *variant, way how, const uint8_t *text, size_t size)
{
    rdc_feature_list list = {NULL, 0, 0, grow};
    rdc_shingler *shingler = exactly(sizeof *shingler);
    rdc_shingler_start(shingler, variant, how.k, how.by_characters, how.wrap, &list);
    const int failed = rdc_shingle(shingler, text, size);
    free(shingler);
    if (failed)
        exit(2);
    return list;
}

static int equal(const rdc_feature_list *a, const rdc_feature_list *b)
{
    return a->count == b->count && (!a->count || !memcmp(a->features, b->features, a->count * sizeof *a->features));
}

/* Characters that fold to several, marks, syllables, letters that are words, and starts of characters. */
static const char *const rare[] = {"\u00e9", "e\u0301", "\u0323", "\u0301", "\u1ec7", "\uac01", "\u1100", "\u4e16", "\u30ac",
                                   "\ufdfa", "\u00ad", "\u200b", "\u2019", "\U0001f600", "\U000e0001", "\u212a", "\xff", "\xe4", "\xf0\x9f"};

static size_t random_text(generator *g, uint8_t *text, size_t size)
{
    const uint64_t spaces = 2 + below(g, 12), others = below(g, 3) ? 0 : 1 + below(g, 200), bytes = !below(g, 6);
    size_t at = 0;
    while (at < size) {
        const char *character = rare[below(g, sizeof rare / sizeof *rare)];
        const size_t length = strlen(character);
        if (bytes || !others || below(g, others) || length > size - at)
            text[at++] = bytes ? (uint8_t)draw(g) : !below(g, spaces) ? " ,\n_7"[below(g, 5)] : "abcxyzABCXYZ"[below(g, 12)];
        else {
            memcpy(text + at, character, length);
            at += length;
        }
    }
    return at;
}

static int shingles_agree(generator *g)
{
    const size_t size = below(g, 3) ? below(g, 300) : below(g, 9000), shift = below(g, 200);
    const way how = {1 + (below(g, 4) ? below(g, 9) : below(g, 256)), (int)below(g, 2), (int)below(g, 2)};
    uint8_t *text = exactly(size), *moved = exactly(shift + size);
    int agree = 1;
    random_text(g, text, size);
    memset(moved, ' ', shift);
    memcpy(moved + shift, text, size);
    rdc_feature_list wanted = features_of(variants[0], how, text, size);
    for (size_t v = 0; v < VARIANTS; v++) {
        if (!variants[v]->usable())
            continue;
        rdc_feature_list found = features_of(variants[v], how, text, size), again = features_of(variants[v], how, moved, shift + size);
        if (!equal(&found, &wanted) || !equal(&again, &wanted)) {
            printf("%s: %zu bytes, shifted by %zu, k %zu, way %d %d\n", variants[v]->name, size, shift, how.k, how.by_characters, how.wrap);
            agree = 0;
        }
        free(found.features);
        free(again.features);
    }
    free(wanted.features);
    free(text);
    free(moved);
    return agree;
}

int main(int argc, char **argv)
{
    size_t count;
    if (argc != 4)
        return 2;
    uint64_t *numbers = numbers_of(argv[3], &count);
    if (rdc_read_characters(numbers, count))
        return 2;
    free(numbers);
    generator g = {strtoull(argv[1], NULL, 10)};
    const long rounds = strtol(argv[2], NULL, 10);
    for (long i = 0; i < rounds; i++)
        if (!shingles_agree(&g)) {
            printf("round %ld differs\n", i);
            return 1;
        }
    printf("%ld rounds from seed %s agree\n", rounds, argv[1]);
    return 0;
}
