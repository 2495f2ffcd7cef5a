/* rolling_hash.c - the polynomial of a key, and the tables that follow from it. */
#include "search/rolling_hash.h"

#include <string.h>

#include "hash/sip.h"

#define DEGREE 64

/* v x mod x^64 + q. */
static uint64_t times_x(uint64_t v, uint64_t q)
{
    return v << 1 ^ (v >> 63 ? q : 0);
}

/* The bits of a half word, each before a zero: its square. */
static uint64_t spread(uint64_t v)
{
    v &= UINT32_MAX;
    v = (v | v << 16) & UINT64_C(0x0000ffff0000ffff);
    v = (v | v << 8) & UINT64_C(0x00ff00ff00ff00ff);
    v = (v | v << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    v = (v | v << 2) & UINT64_C(0x3333333333333333);
    return (v | v << 1) & UINT64_C(0x5555555555555555);
}

static uint64_t square(uint64_t v, uint64_t q)
{
    uint64_t high = spread(v >> 32);
    for (int i = 0; i < DEGREE; i++)
        high = times_x(high, q);
    return high ^ spread(v);
}

static int degree(uint64_t v)
{
    return 63 - __builtin_clzll(v);
}

static uint64_t remainder_of(uint64_t v, uint64_t divisor)
{
    const int low = degree(divisor);
    while (v && degree(v) >= low)
        v ^= divisor << (degree(v) - low);
    return v;
}

/* Whether v and x^64 + q have no common factor. */
static int coprime(uint64_t v, uint64_t q)
{
    if (v <= 1)
        return v == 1;
    uint64_t rest = remainder_of(UINT64_C(1) << 63, v) << 1;
    if (rest >> degree(v))
        rest ^= v;
    rest ^= remainder_of(q, v);
    while (rest) {
        const uint64_t next = remainder_of(v, rest);
        v = rest;
        rest = next;
    }
    return v == 1;
}

/* x^(2^i) - x is the product of all irreducible polynomials whose degrees divide i (Ben-Or 1981). */
static int irreducible(uint64_t q)
{
    uint64_t power = 2;
    for (int i = 1; i <= DEGREE / 2; i++) {
        power = square(power, q);
        if (!coprime(power ^ 2, q))
            return 0;
    }
    return 1;
}

static uint64_t drawn(const rdc_sip *keyed, uint64_t number)
{
    rdc_sip state = *keyed;
    rdc_sip_word(&state, number);
    return rdc_sip_end(&state, 0, 8);
}

/* Irreducible polynomials have a constant term, and an odd number of terms: otherwise x or x + 1 divides them. */
static uint64_t polynomial_of(const rdc_sip *keyed)
{
    for (uint64_t number = 1;; number++) {
        uint64_t q = drawn(keyed, number) >> 2 << 2 | 1;
        if (__builtin_popcountll(q) & 1)
            q |= 2;
        if (irreducible(q))
            return q;
    }
}

/* table[b] = b step mod p. */
static void multiples(uint64_t table[256], uint64_t step, uint64_t q)
{
    table[0] = 0;
    for (unsigned bit = 1; bit < 256; bit *= 2, step = times_x(step, q))
        for (unsigned low = 0; low < bit; low++)
            table[bit | low] = table[low] ^ step;
}

static void make(rdc_block_key *made, const uint8_t *key)
{
    const rdc_sip keyed = rdc_sip_start(key);
    const uint64_t q = made->polynomial = polynomial_of(&keyed), a = drawn(&keyed, 0);
    uint64_t high = q, scale = a ? a : 1; /* x^64 and a, then 8 degrees more each */

    memcpy(made->key, key, sizeof made->key);
    for (int k = 0; k < 8; k++) {
        multiples(made->reduce[k], high, q);
        multiples(made->scaled[k], scale, q);
        high = shifted(made, high);
        scale = shifted(made, scale);
    }
    made->x128 = high;
    made->x192 = by_bytes(made->reduce, high);
    made->x512 = made->x192;
    for (int power = 192; power < 512; power += 64)
        made->x512 = by_bytes(made->reduce, made->x512);
    made->x576 = by_bytes(made->reduce, made->x512);
    made->made = 1;
}

void block_hash_start(block_hash *hash, const uint8_t *key, size_t size)
{
    static _Thread_local rdc_block_key made;
    if (!made.made || memcmp(made.key, key, sizeof made.key))
        make(&made, key);
    hash->key = &made;
    /* x^(8 (size - 1)), the highest bit of the exponent first. */
    const size_t whole = size ? size - 1 : 0;
    uint64_t power = 1;
    for (size_t bit = whole ? (size_t)1 << degree(whole) : 0; bit; bit >>= 1) {
        power = by_bytes(made.reduce, spread(power >> 32)) ^ spread(power);
        if (whole & bit)
            power = shifted(&made, power);
    }
    multiples(hash->leaving, scaled_value(&made, power), made.polynomial);
}
