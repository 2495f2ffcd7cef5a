/*
 * vectors.c - prints the cuts and traits of files by each variant of the kernel that this CPU can run.
 *
 *     vectors MIN MAX FILE    a line for each variant: its name, the traits in hexadecimal (- for none), the cuts
 */
#include <stdio.h>
#include <stdlib.h>

#include "cut/cuts.h"

static uint8_t *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;

    *length = 0;
    if (file && !fseek(file, 0, SEEK_END)) {
        const long end = ftell(file);
        rewind(file);
        data = malloc((size_t)end + 1);
        if (data)
            *length = fread(data, 1, (size_t)end, file);
    }
    if (!data) {
        fprintf(stderr, "vectors: cannot read %s\n", path);
        exit(2);
    }
    fclose(file);
    return data;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: vectors MIN MAX FILE\n", stderr);
        return 2;
    }
    size_t length;
    uint8_t *data = read_file(argv[3], &length), traits[RDC_TRAIT_BYTES];
    for (const rdc_variant *const *variant = rdc_variants; *variant; variant++) {
        rdc_cutter c;
        if (!(*variant)->usable())
            continue;
        rdc_cutter_start(&c, *variant, strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
        if (rdc_cutter_feed(&c, data, length))
            return 2;
        const int count = rdc_cutter_traits(&c, traits);
        printf("%s %s", (*variant)->name, count ? "" : "-");
        for (int i = 0; i < count; i++)
            printf("%02x", traits[i]);
        for (size_t i = 0; i < c.ends.count; i++)
            printf(" %llu", (unsigned long long)c.ends.end[i]);
        if (length && (!c.ends.count || c.ends.end[c.ends.count - 1] != length))
            printf(" %zu", length);
        putchar('\n');
        rdc_cutter_end(&c);
    }
    free(data);
    return 0;
}
