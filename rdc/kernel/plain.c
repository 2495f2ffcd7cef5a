/*
 * plain.c - the kernel form in scalar C: two sliding hashes by tables, as pure.py has them.
 *
 * Bit order: x^(k-1) is the lowest bit, so "times x^8" is a shift to the right and a little-endian load is a
 * byte-wise one. rdc_lead_carry[b] is b * x^8, rdc_lead_leaving[b] is b * x^128; for low(), rdc_low_slice[j][b] is
 * byte j of the old value times x^64, rdc_low_slice[7] its one-byte case, rdc_low_leaving[b] is b * x^512.
 */
#include "form.h"
#include "lows.h"

static int usable(void)
{
    return 1;
}

/* From the residue of the 16 bytes before p to that of the 16 bytes before p + 1. */
static inline uint8_t slide(uint8_t f, const uint8_t *p)
{
    return rdc_lead_carry[f] ^ *p ^ rdc_lead_leaving[p[-RDC_LEAD_WINDOW]];
}

static uint8_t residue(const uint8_t *p)
{
    uint8_t f = 0;
    for (int i = -RDC_LEAD_WINDOW; i < 0; i++)
        f = rdc_lead_carry[f] ^ p[i];
    return f;
}

static size_t scan(const uint8_t *p, size_t n, unsigned below, uint8_t *lead, uint16_t *at)
{
    /* Each step of a sliding hash waits for the one before; four quarters side by side do not. */
    size_t quarter = n / 4, count = 0;
    uint8_t chain[4];
    for (size_t c = 0; c < 4; c++)
        chain[c] = residue(p + c * quarter);
    for (size_t i = 0; i < quarter; i++)
        for (size_t c = 0; c < 4; c++) {
            chain[c] = slide(chain[c], p + c * quarter + i);
            lead[c * quarter + i] = chain[c] ^ RDC_LEAD_CONSTANT;
        }
    for (size_t i = 4 * quarter; i < n; i++) {
        chain[3] = slide(chain[3], p + i);
        lead[i] = chain[3] ^ RDC_LEAD_CONSTANT;
    }
    for (size_t i = 0; i < n && below > 0; i++)
        if (lead[i] < below)
            at[count++] = (uint16_t)(i + 1);
    return count;
}

static void lows(const uint8_t *p, const uint16_t *at, size_t count, uint64_t *low)
{
    if (rdc_lows_if_dense(p, at, count, low, rdc_window_by_table))
        return;
    for (size_t k = 0; k < count; k++)
        low[k] = rdc_mix(rdc_window_by_table(p + at[k]));
}

static size_t stairs(const uint8_t *lead, size_t n, uint16_t *at)
{
    size_t first = RDC_BLOCK;
    uint8_t smallest = 0xff;
    for (size_t i = n; i > 0; i--)
        if (lead[i - 1] <= smallest) {
            smallest = lead[i - 1];
            at[--first] = (uint16_t)i;
        }
    return RDC_BLOCK - first;
}

const rdc_form rdc_plain = {"c", usable, scan, lows, stairs, rdc_samples_add};
