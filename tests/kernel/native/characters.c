/*
 * characters.c - prints what the tables say of every code point; then reads damaged numbers, which a sanitizer watches.
 *
 *     characters NUMBERS    a line for each code point: its number, then the parts it folds to with their kinds and classes,
 *                           "syllable" or "ignored"
 */
#include <string.h>

#include "character_tables.h"

static void print_code(uint32_t code)
{
    const uint32_t entry = rdc_character_entry(code);
    printf("%x", code);
    if (!(entry & RDC_FOLDS)) {
        printf(" %x", code | entry);
    } else if (entry == RDC_SYLLABLE || entry == RDC_IGNORED) {
        printf(entry == RDC_SYLLABLE ? " syllable" : " ignored");
    } else {
        const uint32_t *part = rdc_character_foldings + (entry & ~RDC_FOLDS);
        do
            printf(" %x", *part & ~RDC_LAST);
        while (!(*part++ & RDC_LAST));
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    size_t count;
    uint32_t drawn = 1;
    if (argc != 2)
        return 2;
    uint64_t *numbers = numbers_of(argv[1], &count);
    if (rdc_read_characters(numbers, count))
        return 1;
    for (uint32_t code = 0; code < RDC_CODES; code++)
        print_code(code);
    for (size_t some = 0; some < count; some += 1 + some / 4) {
        uint64_t *start = malloc(some * sizeof *start + 1);
        if (!start)
            return 2;
        memcpy(start, numbers, some * sizeof *start);
        if (!rdc_read_characters(start, some))
            return 1;
        free(start);
    }
    for (int round = 0; round < 100; round++) {
        drawn = drawn * 1103515245 + 12345;
        uint64_t *number = numbers + (drawn >> 8) % count;
        const uint64_t right = *number;
        *number ^= UINT64_C(1) << drawn % 64;
        (void)rdc_read_characters(numbers, count);
        *number = right;
    }
    free(numbers);
    return 0;
}
