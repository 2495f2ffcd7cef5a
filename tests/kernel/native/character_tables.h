/* character_tables.h - reads the numbers of rdc/kernel/unicode_data.py from a file into the tables of characters. */
#ifndef CHARACTER_TABLES_H
#define CHARACTER_TABLES_H

#include <stdio.h>
#include <stdlib.h>

#include "shingles/characters.h"

/* Returns the numbers of a file, in a block of exactly their size, and how many they are. */
static uint64_t *numbers_of(const char *path, size_t *count)
{
    FILE *file = fopen(path, "rb");
    long size = -1;
    if (file && !fseek(file, 0, SEEK_END))
        size = ftell(file);
    uint64_t *numbers = size > 0 ? malloc((size_t)size) : NULL;
    *count = (size_t)size / sizeof *numbers;
    if (numbers)
        rewind(file);
    if (!numbers || fread(numbers, sizeof *numbers, *count, file) != *count) {
        fprintf(stderr, "cannot read the numbers of characters in %s\n", path);
        exit(2);
    }
    fclose(file);
    return numbers;
}

#endif
