/*
 * fast_body.h - the vector form, written once; a fast_*.c defines the instructions and includes this.
 *
 * Why this equals plain.c. Let F_k(i) be the residue of the last k bytes before i. Residues are linear, so
 *     F_2k(i) = F_k(i) + x^(8k) * F_k(i - k),    F_1(i) = p[i - 1],
 * and four doublings give F_16, which XOR the constant is lead(i). Vector lane j holds position i + j; F_k(i - k) is
 * the same vector moved up by k lanes, with the last k lanes of the vector before it moved in. The product with a
 * constant is linear too: one look-up for each half of a byte (or one bit matrix). The first vector of a call moves in
 * lanes of the 64 bytes of history, computed from zeros: 15 lanes into it F_8 is right again, and 8 lanes are used.
 *
 * The including file defines
 *     FN                 storage and target attributes        NAME(f)       the function's name
 *     V, W               the vector type and its bytes        LOAD, STORE   unaligned
 *     SPLAT(byte)        XOR(a, b)                            MOVE(k, v, before)  lanes moved up by k = 2, 4, 8
 *     TABLES             what PRODUCT needs, declared         PRODUCT(k, v) times x^(8k); for k = 8 XOR the constant
 *     AT_MOST(v, limit)  bit j: lane j <= lane j of limit, unsigned
 *     LIST(at, base, bits)  what list() does, if there is something better than a loop
 */
#include <string.h>

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

/* The same for many bits: eight places are written for each byte of them, so up to eight past the end. */
FN uint16_t *NAME(list_many)(uint16_t *at, size_t base, uint64_t bits)
{
#ifdef LIST
    return LIST(at, base, bits);
#else
    for (; bits; bits >>= 8, base += 8) {
        const uint8_t *places = rdc_bit_places[bits & 0xff];
        for (int j = 0; j < 8; j++)
            at[j] = (uint16_t)(base + places[j]);
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
        if (bits)
            count = (size_t)((__builtin_popcountll(bits) > 8 ? NAME(list_many) : NAME(list))(at + count, i, bits) - at);
    }
    return count;
}

/* Looks at a vector once for each time the minimum falls in it, at most 255 times a block, not once for each tie. */
FN size_t NAME(stairs)(const uint8_t *lead, size_t n, uint16_t *at)
{
    size_t first = RDC_BLOCK, end = n;
    unsigned smallest = 0xff;

    while (end > 0) {
        /* The W positions up to end; the first ones of the block may be fewer. */
        size_t width = end < W ? end : W, start = end - width;
        uint8_t part[W];
        const uint8_t *q = lead + start;
        if (width < W) {
            memset(part, 0xff, W);
            memcpy(part, q, width);
            q = part;
        }
        V v = LOAD(q);
        uint64_t open = width < 64 ? (UINT64_C(1) << width) - 1 : UINT64_MAX, found = 0;
        uint64_t ties = AT_MOST(v, SPLAT((uint8_t)smallest)) & open, less;
        while (ties && smallest > 0 && (less = ties & AT_MOST(v, SPLAT((uint8_t)(smallest - 1)))) != 0) {
            /* The last smaller one; above it all in `ties` are ties, below it counts what is at most as large. */
            unsigned j = 63 - (unsigned)__builtin_clzll(less);
            found |= ties & ~((UINT64_C(1) << j) - 1);
            smallest = q[j];
            ties = AT_MOST(v, SPLAT((uint8_t)smallest)) & ((UINT64_C(1) << j) - 1);
        }
        found |= ties;
        first -= (size_t)__builtin_popcountll(found);
        NAME(list)(at + first, start, found);
        end = start;
    }
    return RDC_BLOCK - first;
}
