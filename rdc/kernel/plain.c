/*
 * plain.c - the kernel form in scalar C: two sliding hashes by tables, as pure.py has them.
 *
 * Bit order: x^(k-1) is the lowest bit, so "times x^8" is a shift to the right and a little-endian load is a
 * byte-wise one. rdc_lead_carry[b] is b * x^8, rdc_lead_leaving[b] is b * x^128; for low(), rdc_low_slice[j][b] is
 * byte j of the old value times x^64, rdc_low_slice[7] its one-byte case, rdc_low_leaving[b] is b * x^512.
 */
#include "form.h"

static int usable(void)
{
    return 1;
}

static size_t scan(const uint8_t *p, size_t n, unsigned below, uint8_t *lead, uint16_t *at)
{
    size_t count = 0;
    uint8_t f = 0;
    for (int i = -RDC_LEAD_WINDOW; i < 0; i++)
        f = rdc_lead_carry[f] ^ p[i];
    for (size_t i = 0; i < n; i++) {
        f = rdc_lead_carry[f] ^ p[i] ^ rdc_lead_leaving[p[(ptrdiff_t)i - RDC_LEAD_WINDOW]];
        lead[i] = f ^ RDC_LEAD_CONSTANT;
        if (lead[i] < below)
            at[count++] = (uint16_t)(i + 1);
    }
    return count;
}

/* The fingerprint of the 64 bytes before p: eight words, eight look-ups each. */
static uint64_t window(const uint8_t *p)
{
    uint64_t f = 0;
    for (int word = 0; word < RDC_LOW_WINDOW; word += 8) {
        uint64_t next = rdc_load64(p - RDC_LOW_WINDOW + word);
        for (int j = 0; j < 8; j++)
            next ^= rdc_low_slice[j][f >> 8 * j & 0xff];
        f = next;
    }
    return f;
}

static void lows(const uint8_t *p, const uint16_t *at, size_t count, uint64_t *low)
{
    uint64_t f = 0;
    for (size_t k = 0; k < count; k++) {
        /* Sliding takes two look-ups a byte, starting afresh 64: dense positions must not cost 64 each. */
        if (k && at[k] - at[k - 1] < 32) {
            for (size_t i = at[k - 1]; i < at[k]; i++)
                f = f >> 8 ^ rdc_low_slice[7][f & 0xff] ^ (uint64_t)p[i] << 56 ^
                    rdc_low_leaving[p[(ptrdiff_t)i - RDC_LOW_WINDOW]];
        } else {
            f = window(p + at[k]);
        }
        low[k] = rdc_mix(f);
    }
}

static size_t stairs(const uint8_t *lead, size_t n, uint16_t *at)
{
    size_t count = 0;
    uint8_t smallest = 0xff;
    for (size_t i = n; i > 0; i--)
        if (lead[i - 1] <= smallest) {
            smallest = lead[i - 1];
            at[count++] = (uint16_t)i;
        }
    return count;
}

const rdc_form rdc_plain = {"c", usable, scan, lows, stairs};
