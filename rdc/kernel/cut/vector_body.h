/*
 * vector_body.h - the vector variant, written once; a fast_*.c defines the instructions and includes this.
 *
 * Why this equals scalar.c. Let F_k(i) be the residue of the last k bytes before i. Residues are linear, so
 *     F_2k(i) = F_k(i) + x^(8k) * F_k(i - k),    F_1(i) = p[i - 1],
 * and four doublings give F_16, which XOR the constant is lead(i). Vector lane j holds position i + j; F_k(i - k) is
 * the same vector moved up by k lanes, with the last k lanes of the vector before it moved in. The product with a
 * constant is linear too: one look-up for each half of a byte (or one bit matrix). The first vector of a call moves in
 * lanes of the 64 bytes of history, computed from zeros: 15 lanes into it F_8 is right again, and 8 lanes are used.
 *
 * The including file defines
 *     SPARSE             rdc_variant.sparse
 *     FN                 storage and target attributes        NAME(f)       the function's name
 *     V, W               the vector type and its bytes        LOAD, STORE   unaligned
 *     SPLAT(byte)        XOR(a, b)                            MOVE(k, v, before)  lanes moved up by k = 2, 4, 8
 *     TABLES             what PRODUCT needs, declared         PRODUCT(k, v) times x^(8k); for k = 8 XOR the constant
 *     DOWN(k, v)         lanes moved down by k = 1, 2, 4, ... < W, 0xff moved in    MIN(a, b)  lane by lane, unsigned
 *     AT_MOST(v, limit)  bit j: lane j <= lane j of limit, unsigned
 *     LIST(at, base, bits)  what list() does, if there is something better than a loop
 */
#include <string.h>

#include "prefetch.h"

/* Takes 64 positions; returns the bits of those whose lead is at most limit's. before[] holds F_2, F_4, F_8. */
FN uint64_t NAME(step)(const uint8_t *p, V before[3], V limit, uint8_t *lead)
{
    uint64_t bits = 0;
    TABLES
    for (int j = 0; j < 64; j += W) {
        V f2 = XOR(LOAD(p + j), PRODUCT(1, LOAD(p + j - 1)));
        V f4 = XOR(f2, PRODUCT(2, MOVE(2, f2, before[0])));
        V f8 = XOR(f4, PRODUCT(4, MOVE(4, f4, before[1])));
        V f16 = XOR(f8, PRODUCT(8, MOVE(8, f8, before[2])));
        STORE(lead + j, f16);
        bits |= AT_MOST(f16, limit) << j;
        before[0] = f2;
        before[1] = f4;
        before[2] = f8;
    }
    return bits;
}

/* The positions base + 1 + j of the bits j, ascending; returns where the list ends. */
FN uint16_t *NAME(list)(uint16_t *at, size_t base, uint64_t bits)
{
#ifdef LIST
    return LIST(at, base, bits);
#else
    for (; bits; bits &= bits - 1)
        *at++ = (uint16_t)(base + 1 + (unsigned)__builtin_ctzll(bits));
    return at;
#endif
}

/* The same for many bits: eight positions are written for each byte of them, so up to eight past the end. */
FN uint16_t *NAME(list_many)(uint16_t *at, size_t base, uint64_t bits)
{
#ifdef LIST
    return LIST(at, base, bits);
#else
    for (; bits; bits >>= 8, base += 8) {
        const uint16_t *positions = rdc_bit_positions[bits & 0xff];
        for (int j = 0; j < 8; j++)
            at[j] = (uint16_t)(base + positions[j]);
        at += __builtin_popcount(bits & 0xff);
    }
    return at;
#endif
}

FN size_t NAME(scan)(const uint8_t *p, size_t n, unsigned below, uint8_t *lead, uint16_t *at)
{
    V before[3] = {SPLAT(0), SPLAT(0), SPLAT(0)};
    V limit = SPLAT((uint8_t)(below - 1));
    size_t count = 0;
    uint8_t history[W + 1];
    TABLES

    /* The vector before p. Its first byte has no byte before it that may be read; zero does, see above. */
    history[0] = 0;
    memcpy(history + 1, p - W, W);
    before[0] = XOR(LOAD(history + 1), PRODUCT(1, LOAD(history)));
    before[1] = XOR(before[0], PRODUCT(2, MOVE(2, before[0], SPLAT(0))));
    before[2] = XOR(before[1], PRODUCT(4, MOVE(4, before[1], SPLAT(0))));

    for (size_t i = 0; i < n; i += 64) {
        uint64_t bits;
        rdc_fetch_ahead(p + i);
        if (n - i >= 64) {
            bits = NAME(step)(p + i, before, limit, lead + i);
        } else {
            /* Nothing is read past n; lead has room for 64. */
            uint8_t rest[65] = {0};
            memcpy(rest, p + i - 1, n - i + 1);
            bits = NAME(step)(rest + 1, before, limit, lead + i) & ((UINT64_C(1) << (n - i)) - 1);
        }
        if (below == 0)
            continue;
        /* One position in 256 on random data: the first is stored without a branch that would be mispredicted. */
        at[count] = (uint16_t)(i + 1 + (unsigned)__builtin_ctzll(bits | UINT64_C(1) << 63));
        count += bits != 0;
        bits &= bits - 1;
        if (bits) {
            count = (size_t)((bits & (bits - 1) ? NAME(list_many) : NAME(list))(at + count, i, bits) - at);
            if (count > n / SPARSE)
                below = 0;
        }
    }
    return count;
}

/* The bits of those of 64 leads that are at most all after them and `*smallest`, which becomes the smallest of all.
 * The minimum of all after a lane is found in doubling steps: hostile leads cost no more than others. */
FN uint64_t NAME(step_down)(const uint8_t *lead, unsigned *smallest)
{
    const V limit = SPLAT((uint8_t)*smallest);
    uint64_t at_most = 0, at_least = 0, found = 0;

    for (int j = 0; j < 64; j += W) {
        at_most |= AT_MOST(LOAD(lead + j), limit) << j;
        at_least |= AT_MOST(limit, LOAD(lead + j)) << j;
    }
    /* Without a smaller one, as in all calls but 255: those that tie. */
    if (!(at_most & ~at_least))
        return at_most;
    for (int j = 64 - W; j >= 0; j -= W) {
        uint8_t minimum[W];
        V v = LOAD(lead + j), after = v;
        after = MIN(after, DOWN(1, after));
        after = MIN(after, DOWN(2, after));
        after = MIN(after, DOWN(4, after));
        after = MIN(after, DOWN(8, after));
#if W > 16
        after = MIN(after, DOWN(16, after));
#endif
#if W > 32
        after = MIN(after, DOWN(32, after));
#endif
        found |= AT_MOST(v, MIN(after, SPLAT((uint8_t)*smallest))) << j;
        STORE(minimum, after);
        *smallest = minimum[0] < *smallest ? minimum[0] : *smallest;
    }
    return found;
}

FN size_t NAME(stairs)(const uint8_t *lead, size_t n, uint16_t *at)
{
    uint64_t found[RDC_BLOCK / 64];
    uint16_t *end = at;
    unsigned smallest = 0xff;
    size_t count = 0;

    for (size_t i = (n + 63) / 64; i-- > 0;) {
        const size_t width = n - 64 * i;
        if (width >= 64) {
            found[i] = NAME(step_down)(lead + 64 * i, &smallest);
        } else {
            uint8_t part[64];
            memset(part, 0xff, sizeof part);
            memcpy(part, lead + 64 * i, width);
            found[i] = NAME(step_down)(part, &smallest) & ((UINT64_C(1) << width) - 1);
        }
        count += (size_t)__builtin_popcountll(found[i]);
        if (count > n / SPARSE)
            return count;
    }
    for (size_t i = 0; 64 * i < n; i++)
        if (found[i])
            end = (found[i] & (found[i] - 1) ? NAME(list_many) : NAME(list))(end, 64 * i, found[i]);
    return count;
}
