/*
 * plain.c - the kernel form in scalar C: two sliding hashes by tables, as pure.py has them.
 *
 * Bit order: x^(k-1) is the lowest bit, so "times x^8" is a shift to the right and a little-endian load is a
 * byte-wise one. rdc_lead_carry[b] is b * x^8, rdc_lead_leaving[b] is b * x^128, byte j of rdc_lead_powers[b] is
 * b * x^(8 j); for low(), rdc_low_slice[j][b] is byte j of the old value times x^64, rdc_low_slice[7] its one-byte case,
 * rdc_low_leaving[b] is b * x^512.
 */
#include "form.h"
#include "lows.h"

static const uint64_t ones = UINT64_C(0x0101010101010101);

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

/* Eight positions at once: in byte j what slide() has after p[j]. Residues are linear, so each byte that comes or goes
 * adds its own powers to the positions from it on, and only the first of them waits for the residue before. */
static inline uint64_t slide8(uint8_t f, const uint8_t *p)
{
    uint64_t all = rdc_lead_powers[slide(f, p)];
    for (int j = 1; j < 8; j++)
        all ^= rdc_lead_powers[p[j] ^ rdc_lead_leaving[p[j - RDC_LEAD_WINDOW]]] << 8 * j;
    return all;
}

static void leads(const uint8_t *p, size_t n, uint8_t *lead)
{
    const uint64_t constant = RDC_LEAD_CONSTANT * ones;
    const size_t half = n / 16 * 8;
    uint8_t first = residue(p), second = residue(p + half);

    for (size_t i = 0; i < half; i += 8) {
        const uint64_t one = slide8(first, p + i), other = slide8(second, p + half + i);
        rdc_store64(lead + i, one ^ constant);
        rdc_store64(lead + half + i, other ^ constant);
        first = (uint8_t)(one >> 56);
        second = (uint8_t)(other >> 56);
    }
    for (size_t i = 2 * half; i < n; i++) {
        second = slide(second, p + i);
        lead[i] = second ^ RDC_LEAD_CONSTANT;
    }
}

/* The lowest bit of each byte of x that is zero, exactly. */
static inline uint64_t zero_bytes(uint64_t x)
{
    const uint64_t low = 0x7f * ones;
    return ~(((x & low) + low) | x | low) >> 7;
}

/* Append to the `count` places in at[] base + 1 + j for the bytes j of `found` that are 1, not 0. Up to eight places past
 * the new end are written. Hostile leads are unpredictable: one branch for eight, which other data hardly ever takes. */
static inline size_t list8(uint16_t *at, size_t count, size_t base, uint64_t found)
{
    uint64_t places[2];
    if (!found)
        return count;
    /* Four places are added to in one word: none overflows its 16 bits. */
    memcpy(places, rdc_bit_places[found * UINT64_C(0x0102040810204080) >> 56], sizeof places);
    places[0] += base * UINT64_C(0x0001000100010001);
    places[1] += base * UINT64_C(0x0001000100010001);
    memcpy(at + count, places, sizeof places);
    return count + (found * ones >> 56);
}

static size_t scan(const uint8_t *p, size_t n, unsigned below, uint8_t *lead, uint16_t *at)
{
    size_t count = 0, i = 0;

    leads(p, n, lead);
    if (below == 0)
        return 0;
    for (const uint64_t high = ~(ones * (below - 1)); i + 8 <= n; i += 8)
        count = list8(at, count, i, zero_bytes(rdc_load64(lead + i) & high));
    for (; i < n; i++) {
        at[count] = (uint16_t)(i + 1);
        count += lead[i] < below;
    }
    return count;
}

static void lows(const uint8_t *p, const uint16_t *at, size_t count, uint64_t *low)
{
    rdc_lows(p, at, count, low, rdc_window_by_table, RDC_SLIDES_A_TABLE, 1);
}

/* In byte j 1 where q[j] is at most all after it and *smallest, which becomes the smallest of all. */
static inline uint64_t step_down(const uint8_t *q, unsigned *smallest)
{
    uint64_t minima = 0;
    int any = 0;

    for (int j = 0; j < 8; j++)
        any |= q[j] <= *smallest;
    if (!any)
        return 0;
    /* Minima, not conditions: compilers make branches of those. */
    for (int j = 7; j >= 0; j--) {
        *smallest = q[j] < *smallest ? q[j] : *smallest;
        minima = minima << 8 | *smallest;
    }
    return zero_bytes(rdc_load64(q) ^ minima);
}

static size_t stairs(const uint8_t *lead, size_t n, uint16_t *at)
{
    uint64_t found[RDC_BLOCK / 8];
    unsigned smallest = 0xff;
    size_t count = 0;

    for (size_t i = (n + 7) / 8; i-- > 0;) {
        const size_t width = n - 8 * i;
        if (width >= 8) {
            found[i] = step_down(lead + 8 * i, &smallest);
        } else {
            uint8_t part[8];
            memset(part, 0xff, sizeof part);
            memcpy(part, lead + 8 * i, width);
            found[i] = step_down(part, &smallest) & ((UINT64_C(1) << 8 * width) - 1);
        }
    }
    for (size_t i = 0; 8 * i < n; i++)
        count = list8(at, count, 8 * i, found[i]);
    return count;
}

const rdc_form rdc_plain = {"c", usable, scan, lows, stairs, rdc_samples_add};
