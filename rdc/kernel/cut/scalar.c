/*
 * scalar.c - the kernel variant in scalar C: two sliding hashes by tables, as reference.py has them.
 *
 * Bit order: x^(k-1) is the lowest bit, so "times x^8" is a shift to the right and a little-endian load is a
 * byte-wise one. rdc_lead_carry[b] is b * x^8, rdc_lead_leaving[b] is b * x^128, byte j of rdc_lead_powers[b] is
 * b * x^(8 j); for low(), rdc_low_slice[j][b] is byte j of the old value times x^64, rdc_low_slice[7] its one-byte case,
 * rdc_low_leaving[b] is b * x^512.
 */
#include "cut/variant.h"
#include "cut/low_rank_tables.h"

#define SPARSE 32 /* a fresh window is 64 look-ups */

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

/* One bit for each byte of x, the lowest for byte 0: whether it is zero, exactly. */
static inline uint64_t zero_bytes(uint64_t x)
{
    const uint64_t low = 0x7f * ones;
    return (~(((x & low) + low) | x | low) >> 7) * UINT64_C(0x0102040810204080) >> 56;
}

/* Append to the `count` positions in at[] base + 1 + j for the bits j. Up to eight positions past the new end are written. Hostile
 * leads are unpredictable: there is no branch on single ones. */
static size_t list64(uint16_t *at, size_t count, size_t base, uint64_t bits)
{
    for (; bits; bits >>= 8, base += 8) {
        uint64_t positions[2];
        /* Four positions are added to in one word: none overflows its 16 bits. */
        memcpy(positions, rdc_bit_positions[bits & 0xff], sizeof positions);
        positions[0] += base * UINT64_C(0x0001000100010001);
        positions[1] += base * UINT64_C(0x0001000100010001);
        memcpy(at + count, positions, sizeof positions);
        count += (size_t)__builtin_popcount((unsigned)bits & 0xff);
    }
    return count;
}

static size_t scan(const uint8_t *p, size_t n, unsigned below, uint8_t *lead, uint16_t *at)
{
    const uint64_t high = ~(ones * (below - 1));
    size_t count = 0;

    leads(p, n, lead);
    if (below == 0)
        return 0;
    memset(lead + n, 0xff, (n + 63) / 64 * 64 - n);
    for (size_t i = 0; i < n && count <= n / SPARSE; i += 64) {
        uint64_t bits = 0;
        for (size_t j = 0; j < 64; j += 8)
            bits |= zero_bytes(rdc_load64(lead + i + j) & high) << j;
        /* One position in 256 on random data: the first is stored without a branch that would be mispredicted. */
        at[count] = (uint16_t)(i + 1 + (unsigned)__builtin_ctzll(bits | UINT64_C(1) << 63));
        count += bits != 0;
        bits &= bits - 1;
        if (bits)
            count = list64(at, count, i, bits);
    }
    return count;
}

static void lows(const uint8_t *p, const uint16_t *at, size_t count, uint64_t *low)
{
    rdc_lows(p, at, count, low, rdc_window_by_table);
}

void rdc_slide_plain(const uint8_t *p, size_t n, uint64_t *low)
{
    rdc_slide_over(p, n, low, rdc_window_by_table, 1);
}

/* In bit j whether q[j] is at most all of eight after it and *smallest, which becomes the smallest of all. */
static inline uint64_t step_down(const uint8_t *q, unsigned *smallest)
{
    const uint64_t x = rdc_load64(q);
    uint64_t minima = 0;

    /* As in all calls but 255: those that tie. */
    if (!rdc_bytes_below(x, *smallest))
        return zero_bytes(x ^ ones * *smallest);
    /* Minima, not conditions: compilers make branches of those. */
    for (int j = 7; j >= 0; j--) {
        *smallest = q[j] < *smallest ? q[j] : *smallest;
        minima = minima << 8 | *smallest;
    }
    return zero_bytes(x ^ minima);
}

static size_t stairs(const uint8_t *lead, size_t n, uint16_t *at)
{
    uint64_t found[RDC_BLOCK / 64];
    unsigned smallest = 0xff;
    size_t count = 0;

    for (size_t i = (n + 63) / 64; i-- > 0;) {
        const size_t width = n - 64 * i;
        const uint8_t *q = lead + 64 * i;
        uint8_t part[64];
        found[i] = 0;
        if (width < 64) {
            memset(part, 0xff, sizeof part);
            q = memcpy(part, q, width);
        }
        for (size_t j = 64; j > 0; j -= 8)
            found[i] |= step_down(q + j - 8, &smallest) << (j - 8);
        if (width < 64)
            found[i] &= (UINT64_C(1) << width) - 1;
        count += (size_t)__builtin_popcountll(found[i]);
        if (count > n / SPARSE)
            return count;
    }
    count = 0;
    for (size_t i = 0; 64 * i < n; i++)
        if (found[i])
            count = list64(at, count, 64 * i, found[i]);
    return count;
}

/* Whether feature x comes below limit. Few do: branches hardly ever taken are the cheapest test. Without its two highest
 * bits an image is a product times 4. */
static inline int comes_near(uint64_t x, uint64_t limit)
{
    return __builtin_expect(x * (4 * rdc_trait_multiplier[0]) < limit, 0) ||
           __builtin_expect(x * (4 * rdc_trait_multiplier[1]) < limit, 0) ||
           __builtin_expect(x * (4 * rdc_trait_multiplier[2]) < limit, 0);
}

size_t rdc_contenders_plain(uint64_t reach, uint64_t few, const uint8_t *lead, const uint64_t *low, size_t n,
                            uint16_t *at)
{
    /* By lead, looked up: a branch on hostile leads would be mispredicted. No feature is below 0. */
    uint64_t limit[256] = {reach, few, few, few};
    size_t count = 0, i = 0;

    /* Eight a turn: compilers then know how often the inner loop runs, and unroll it. */
    for (; n - i >= 8; i += 8)
        for (size_t j = i; j < i + 8; j++)
            if (comes_near(low[j], limit[lead[j]]))
                at[count++] = (uint16_t)(j + 1);
    for (; i < n; i++)
        if (comes_near(low[i], limit[lead[i]]))
            at[count++] = (uint16_t)(i + 1);
    return count;
}
_Static_assert(RDC_LEAD_FEW == 4, "limit[] names them one by one");

const rdc_variant rdc_plain = {"c", SPARSE, usable, scan, lows, rdc_slide_plain, stairs, rdc_contenders_plain};
