/* similarity.c - what bench/similarity.py needs beside the kernel: feature sets, other samples, inverted lists. */
#include <stdlib.h>
#include <string.h>

#include "cut/variant.h"

#define EXPORT __attribute__((visibility("default")))

static int by_value(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* The set of low(i) with lead(i) < below, ascending, of the n bytes from p + RDC_LOW_WINDOW on; before them lie zeros.
 * Returns how many; out has room for n. */
EXPORT size_t features(const uint8_t *p, size_t n, unsigned below, uint64_t *out)
{
    static uint8_t lead[RDC_BLOCK];
    static uint16_t at[RDC_POSITIONS];
    static uint64_t low[RDC_BLOCK];
    size_t count = 0, distinct = 0;
    p += RDC_LOW_WINDOW;
    for (size_t done = 0; done < n; done += RDC_BLOCK) {
        const size_t block = n - done < RDC_BLOCK ? n - done : RDC_BLOCK;
        const size_t found = rdc_plain.scan(p + done, block, below, lead, at);
        if (found <= rdc_few(&rdc_plain, block)) {
            rdc_plain.lows(p + done, at, found, out + count);
            count += found;
            continue;
        }
        rdc_plain.slide(p + done, block, low);
        for (size_t i = 0; i < block; i++)
            if (lead[i] < below)
                out[count++] = low[i];
    }
    qsort(out, count, sizeof *out, by_value);
    for (size_t i = 0; i < count; i++)
        if (!i || out[i] != out[i - 1])
            out[distinct++] = out[i];
    return distinct;
}

/* |A n B| / |A u B| of ascending sets. */
EXPORT double jaccard(const uint64_t *a, size_t na, const uint64_t *b, size_t nb)
{
    size_t i = 0, j = 0, common = 0;
    while (i < na && j < nb) {
        common += a[i] == b[j];
        uint64_t x = a[i], y = b[j];
        i += x <= y;
        j += y <= x;
    }
    return na + nb ? (double)common / (double)(na + nb - common) : 1;
}

/* `count` samples of six bits, a byte each, as the format has twelve; multiplier[t / 4]. */
EXPORT void samples(const uint64_t *feature, size_t n, unsigned count, const uint64_t *multiplier, uint8_t *out)
{
    for (unsigned t = 0; t < count; t++) {
        uint64_t least = UINT64_MAX;
        for (size_t i = 0; i < n; i++) {
            uint64_t image = feature[i] * multiplier[t / 4] ^ (uint64_t)(t % 4) << 62;
            least = image < least ? image : least;
        }
        uint64_t y = least + t * RDC_GOLDEN;
        y = (y ^ y >> 33) * UINT64_C(0xff51afd7ed558ccd);
        y = (y ^ y >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
        out[t] = (uint8_t)((y ^ y >> 33) >> 58);
    }
}

/* ---- inverted lists: twelve indices of 64 lists, over blocks of 65,536 files ---- */

#define BLOCK 65536
#define LISTS (12 * 64)

static unsigned sample_of(const uint8_t *traits, unsigned t)
{
    unsigned bit = 6 * t, two = traits[bit / 8] | (bit / 8 < 8 ? traits[bit / 8 + 1] << 8 : 0);
    return two >> bit % 8 & 63;
}

/* Lists of 16-bit offsets: start[block][list] .. start[block][list + 1] of offset[block]. */
EXPORT void offsets_build(const uint8_t *traits, size_t n, uint32_t *start, uint16_t *offset)
{
    for (size_t base = 0; base < n; base += BLOCK) {
        size_t files = n - base < BLOCK ? n - base : BLOCK;
        uint32_t *s = start + base / BLOCK * (LISTS + 2);
        uint16_t *o = offset + 12 * base;
        memset(s, 0, (LISTS + 2) * sizeof *s);
        for (size_t i = 0; i < files; i++)
            for (unsigned t = 0; t < 12; t++)
                s[64 * t + sample_of(traits + 9 * (base + i), t) + 2]++;
        for (unsigned l = 0; l < LISTS + 1; l++)
            s[l + 1] += s[l];
        for (size_t i = 0; i < files; i++)
            for (unsigned t = 0; t < 12; t++)
                o[s[64 * t + sample_of(traits + 9 * (base + i), t) + 1]++] = (uint16_t)i;
    }
}

/* How many files have at least four matches: without choosing the best of them, which a query would have to. */
EXPORT size_t offsets_query(const uint8_t *query, size_t n, const uint32_t *start, const uint16_t *offset)
{
    static uint8_t count[BLOCK];
    size_t found = 0;
    for (size_t base = 0; base < n; base += BLOCK) {
        const uint32_t *s = start + base / BLOCK * (LISTS + 2);
        const uint16_t *o = offset + 12 * base;
        memset(count, 0, sizeof count);
        for (unsigned t = 0; t < 12; t++) {
            unsigned list = 64 * t + sample_of(query, t);
            for (uint32_t i = s[list]; i < s[list + 1]; i++)
                count[o[i]]++;
        }
        for (size_t i = 0; i < BLOCK; i++)
            found += count[i] >= 4;
    }
    return found;
}

/* The same lists as gaps in base 128; returns their bytes. gap has room for three bytes a posting. */
EXPORT size_t gaps_build(size_t n, const uint32_t *start, const uint16_t *offset, uint32_t *place, uint8_t *gap)
{
    uint8_t *out = gap;
    for (size_t base = 0; base < n; base += BLOCK) {
        const uint32_t *s = start + base / BLOCK * (LISTS + 2);
        const uint16_t *o = offset + 12 * base;
        for (unsigned l = 0; l < LISTS; l++) {
            unsigned next = 0;
            *place++ = (uint32_t)(out - gap);
            for (uint32_t i = s[l]; i < s[l + 1]; i++) {
                unsigned left = o[i] - next;
                for (; left >= 128; left >>= 7)
                    *out++ = (uint8_t)(left | 128);
                *out++ = (uint8_t)left;
                next = o[i] + 1u;
            }
        }
        *place++ = (uint32_t)(out - gap);
    }
    return (size_t)(out - gap);
}

EXPORT size_t gaps_query(const uint8_t *query, size_t n, const uint32_t *place, const uint8_t *gap)
{
    static uint8_t count[BLOCK];
    size_t found = 0;
    for (size_t base = 0; base < n; base += BLOCK, place += LISTS + 1) {
        memset(count, 0, sizeof count);
        for (unsigned t = 0; t < 12; t++) {
            unsigned list = 64 * t + sample_of(query, t), at = 0;
            for (const uint8_t *p = gap + place[list], *end = gap + place[list + 1]; p < end; at++) {
                unsigned shift = 0;
                while (*p & 128)
                    at += (unsigned)(*p++ & 127) << shift, shift += 7;
                at += (unsigned)*p++ << shift;
                count[at]++;
            }
        }
        for (size_t i = 0; i < BLOCK; i++)
            found += count[i] >= 4;
    }
    return found;
}
