/* tables.c - prints the tables that cut/tables.c computes, one a line: its name, then its numbers in hexadecimal. */
#include <inttypes.h>
#include <stdio.h>

#include "cut/tables.h"

#define PRINT(table, count, number)                    \
    do {                                               \
        printf("%s", #table);                          \
        for (unsigned i = 0; i < (count); i++)         \
            printf(" %" PRIx64, (uint64_t)(number));   \
        printf("\n");                                  \
    } while (0)

int main(void)
{
    PRINT(rdc_lead_carry, 256, rdc_lead_carry[i]);
    PRINT(rdc_lead_leaving, 256, rdc_lead_leaving[i]);
    PRINT(rdc_lead_powers, 256, rdc_lead_powers[i]);
    PRINT(rdc_low_slice, 8 * 256, rdc_low_slice[i / 256][i % 256]);
    PRINT(rdc_low_leaving, 256, rdc_low_leaving[i]);
    PRINT(rdc_bit_positions, 256 * 8, rdc_bit_positions[i / 8][i % 8]);
    return 0;
}
