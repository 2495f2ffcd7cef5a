/* name_inputs.c - names inputs that fill their allocations exactly, and prints a sum over the names for each variant. */
#include <stdio.h>
#include <stdlib.h>

#include "hash/blake3_lanes.h"

#define PIECES 200

int main(void)
{
    static rdc_input pieces[PIECES];
    for (size_t i = 0; i < PIECES; i++) {
        const size_t size = i * i % 5000;
        uint8_t *data = malloc(size);
        for (size_t j = 0; j < size; j++)
            data[j] = (uint8_t)((i + 7 * j) % 251);
        pieces[i] = (rdc_input){data, size};
    }
    for (const rdc_naming *const *naming = rdc_namings; *naming; naming++) {
        if (!(*naming)->usable())
            continue;
        uint8_t *out = malloc(PIECES * RDC_NAME_BYTES);
        uint32_t sum = 0;
        if (rdc_name_inputs(*naming, NULL, pieces, PIECES, out))
            return 1;
        for (size_t i = 0; i < PIECES * RDC_NAME_BYTES; i++)
            sum = sum * 31 + out[i];
        printf("%s %u\n", (*naming)->name, sum);
        free(out);
    }
    for (size_t i = 0; i < PIECES; i++)
        free((void *)pieces[i].data);
    return 0;
}
