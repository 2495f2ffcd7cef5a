/* tables.c - the tables of both sliding hashes, computed when the library is loaded: some microseconds.
 *
 * In a residue the lowest bit is the highest power of x (see scalar.c), so times x is a shift to the right, and the
 * polynomial is subtracted when a bit falls out. All tables are linear: the entry of a byte is the sum of its bits'. */
#include "cut/tables.h"

uint8_t rdc_lead_carry[256], rdc_lead_leaving[256];
uint64_t rdc_lead_powers[256], rdc_low_slice[8][256], rdc_low_leaving[256];
uint16_t rdc_bit_positions[256][8];

static uint64_t times_power(uint64_t residue, unsigned exponent, uint64_t polynomial)
{
    for (; exponent; exponent--)
        residue = residue >> 1 ^ (polynomial & (0 - (residue & 1)));
    return residue;
}

/* table[b] = b times x^exponent, where the residue b has the byte in its lowest bits. */
static void fill(uint64_t table[256], unsigned exponent, uint64_t polynomial)
{
    table[0] = 0;
    for (unsigned byte = 1; byte < 256; byte++) {
        const unsigned rest = byte & (byte - 1);
        table[byte] = rest ? table[rest] ^ table[byte ^ rest] : times_power(byte, exponent, polynomial);
    }
}

__attribute__((constructor)) static void fill_all(void)
{
    uint64_t carry[256], leaving[256], power[256];

    fill(carry, 8, RDC_LEAD_POLYNOMIAL);
    fill(leaving, 8 * RDC_LEAD_WINDOW, RDC_LEAD_POLYNOMIAL);
    for (unsigned byte = 0; byte < 256; byte++) {
        rdc_lead_carry[byte] = (uint8_t)carry[byte];
        rdc_lead_leaving[byte] = (uint8_t)leaving[byte];
    }
    for (unsigned j = 0; j < 8; j++) {
        fill(power, 8 * j, RDC_LEAD_POLYNOMIAL);
        for (unsigned byte = 0; byte < 256; byte++)
            rdc_lead_powers[byte] |= power[byte] << 8 * j;
    }
    /* A byte in the lowest bits of a residue of 64 bits is already times x^56. */
    for (unsigned j = 0; j < 8; j++)
        fill(rdc_low_slice[j], 64 + 8 * (7 - j) - 56, RDC_LOW_POLYNOMIAL);
    fill(rdc_low_leaving, 8 * RDC_LOW_WINDOW - 56, RDC_LOW_POLYNOMIAL);
    for (unsigned byte = 0; byte < 256; byte++)
        for (unsigned bit = 0, n = 0; bit < 8; bit++)
            if (byte >> bit & 1)
                rdc_bit_positions[byte][n++] = (uint16_t)(bit + 1);
}
