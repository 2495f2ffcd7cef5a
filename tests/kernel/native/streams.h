/* streams.h - byte streams that tell kernel variants apart, from a seed. tests/support/kernel/kernel_streams.py has the same kinds. */
#ifndef STREAMS_H
#define STREAMS_H

#include <string.h>

#include "cut/variant.h"

typedef struct generator {
    uint64_t state;
} generator;

static inline uint64_t draw(generator *g)
{
    return rdc_mix(g->state++);
}

static inline uint64_t below(generator *g, uint64_t n)
{
    return draw(g) % n;
}

/* Writes n bytes whose leads are lead(k, i, g): a window's last byte decides its lead, 16 bytes in. */
static inline void with_leads(generator *g, uint8_t *out, size_t n, unsigned (*lead)(size_t i, size_t n, generator *g))
{
    uint8_t f = 0;
    for (size_t i = 0; i < n; i++) {
        if (i < RDC_LEAD_WINDOW) {
            out[i] = (uint8_t)draw(g);
            f = rdc_lead_carry[f] ^ out[i];
        } else {
            uint8_t wanted = (uint8_t)lead(i, n, g) ^ RDC_LEAD_CONSTANT;
            out[i] = rdc_lead_carry[f] ^ wanted ^ rdc_lead_leaving[out[i - RDC_LEAD_WINDOW]];
            f = wanted;
        }
    }
}

static inline unsigned lead_zero(size_t i, size_t n, generator *g)
{
    return (void)i, (void)n, (void)g, 0;
}

static inline unsigned lead_seven(size_t i, size_t n, generator *g)
{
    return (void)i, (void)n, (void)g, 7;
}

static inline unsigned lead_not_zero(size_t i, size_t n, generator *g)
{
    return (void)i, (void)n, 1 + (unsigned)below(g, 255);
}

static inline unsigned lead_coin(size_t i, size_t n, generator *g)
{
    return (void)i, (void)n, (unsigned)below(g, 2);
}

static inline unsigned lead_saw(size_t i, size_t n, generator *g)
{
    return (void)n, (void)g, (unsigned)(i % 255) + 1;
}

static inline unsigned lead_up(size_t i, size_t n, generator *g)
{
    return (void)g, (unsigned)(i * 255 / n);
}

static inline unsigned lead_down(size_t i, size_t n, generator *g)
{
    return (void)g, 255 - (unsigned)(i * 255 / n);
}

/* Ties nearly everywhere, and a step down in every vector: the worst for stairs(). */
static inline unsigned lead_steps(size_t i, size_t n, generator *g)
{
    return (void)n, (void)g, 1 + (unsigned)(i / 64 % 250);
}

/* Unpredictable, and dense: the worst for lists and for low(). */
static inline unsigned lead_mostly_zero(size_t i, size_t n, generator *g)
{
    return (void)i, (void)n, below(g, 16) ? 0 : (unsigned)below(g, 256);
}

static inline unsigned lead_one_or_two(size_t i, size_t n, generator *g)
{
    return (void)i, (void)n, below(g, 4) ? 1 : 2;
}

/* A minimum every few positions: the worst for suffix minima. */
static inline unsigned lead_ramp(size_t i, size_t n, generator *g)
{
    return (void)n, 1 + (unsigned)(i % 1500 * 250 / 1500 + below(g, 2));
}

/* Every rank is a suffix minimum of its neighbourhood: the longest rings. */
static inline unsigned lead_climb(size_t i, size_t n, generator *g)
{
    return (void)n, (void)g, 1 + (unsigned)(i % 1000 * 254 / 1000);
}

/* About as many candidates as make a block dense, and a little more or less. */
static inline unsigned lead_hardly_dense(size_t i, size_t n, generator *g)
{
    return (void)n, below(g, (const unsigned[]){8, 16, 32}[i / 4096 % 3]) ? 1 + (unsigned)below(g, 255) : 0;
}

/* Long lists at the start of a block, and a dense stretch after them. */
static inline unsigned lead_both_ways(size_t i, size_t n, generator *g)
{
    const size_t at = (i + 4096 - 64) % 4096; /* the first 64 positions of a span are by themselves */
    return at < 250 ? (below(g, 2) ? 0 : 5) : lead_climb(i, n, g);
}

/* Dense blocks between blocks with candidates far apart and an end without any, which is left to be summed up. */
static inline unsigned lead_by_turns(size_t i, size_t n, generator *g)
{
    const size_t block = (i + 4096 - 64) / 4096, at = (i + 4096 - 64) % 4096;
    if (block % 2)
        return lead_mostly_zero(i, n, g);
    return at > 3080 || below(g, 100) ? 1 + (unsigned)below(g, 2) : 0;
}

#define STREAM_KINDS 27
static const char *const stream_names[STREAM_KINDS] = {
    "random", "zeros",       "constant",      "period 2",    "short period", "period 3000", "sparse", "text",
    "lines",  "runs",        "copies",        "two features", "lead 0",      "lead 7",      "no zero lead",
    "lead 0 or 1", "saw",    "up",            "down",        "steps",        "mostly 0",    "lead 1 or 2", "ramp",
    "climb",    "hardly dense", "both ways",    "by turns",
};

static inline void periodic(generator *g, uint8_t *out, size_t n, size_t period)
{
    for (size_t i = 0; i < n; i++)
        out[i] = i < period ? (uint8_t)draw(g) : out[i - period];
}

/* Fills out[0 .. n) with a stream of one kind. */
static inline void make_stream(generator *g, unsigned kind, uint8_t *out, size_t n)
{
    static unsigned (*const leads[])(size_t, size_t, generator *) = {
        lead_zero, lead_seven, lead_not_zero, lead_coin,        lead_saw,        lead_up,
        lead_down, lead_steps, lead_mostly_zero, lead_one_or_two, lead_ramp,       lead_climb,
        lead_hardly_dense, lead_both_ways, lead_by_turns};
    uint8_t byte = (uint8_t)draw(g);
    switch (kind) {
    case 0:
        for (size_t i = 0; i < n; i++)
            out[i] = (uint8_t)draw(g);
        return;
    case 1:
    case 2:
        memset(out, kind == 1 ? 0 : byte, n);
        return;
    case 3:
        periodic(g, out, n, 2);
        return;
    case 4:
        periodic(g, out, n, 3 + below(g, 120));
        return;
    case 5:
        periodic(g, out, n, 3000);
        return;
    case 6:
        for (size_t i = 0; i < n; i++)
            out[i] = below(g, 500) ? 0 : (uint8_t)draw(g);
        return;
    case 7:
        for (size_t i = 0; i < n; i++)
            out[i] = (uint8_t)" etaoinshrdlu\n"[below(g, 14)];
        return;
    case 8:
        for (size_t i = 0; i < n; i++)
            out[i] = i % 24 < 16 ? (uint8_t)"2024-11-05 INFO "[i % 24] : (uint8_t)('0' + below(g, 4));
        return;
    case 9:
        for (size_t i = 0; i < n;) {
            size_t run = 1 + below(g, 1000);
            byte = (uint8_t)below(g, 3);
            for (; run && i < n; run--)
                out[i++] = byte;
        }
        return;
    case 10:
        for (size_t i = 0; i < n;) {
            size_t run = 20 + below(g, 900), from = i ? below(g, i) : 0;
            for (; run && i < n; run--, i++)
                out[i] = i > 2000 ? out[from++] : (uint8_t)draw(g);
        }
        return;
    case 11: /* two of three positions have lead 0, and their features are always the same two */
        for (size_t i = 0; i < n; i++)
            out[i] = (const uint8_t[]){0xce, 0xee, 0xa7}[i % 3];
        return;
    default:
        with_leads(g, out, n, leads[kind - 12]);
    }
}

#endif
