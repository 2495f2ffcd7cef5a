/*
 * cuts.c - cut points and traits of a byte stream, fed in spans.
 *
 *     c = 0;  while n - c > max:  c = the RIGHTMOST i in (c+min, c+max] with the smallest rank(i)
 *     rank(i) = (lead(i), low(i)), compared as unsigned integers
 *
 * Why this equals the definition, position by position (pure.py):
 *
 *  1. The definition pushes every rank and takes the front. Only suffix minima matter: an entry with a later one
 *     smaller or equal is never the rightmost minimum of a window that reaches the later one, and every window
 *     still to be decided reaches all that is known. So pushing any superset of the suffix minima is enough.
 *  2. Ranks with lead 0 are below all others. While a window has one, entries with lead > 0 before the last
 *     one are not suffix minima, and those after it are not its minimum. So the block pass pushes only the
 *     positions with lead 0, one in 256, and `summed` remembers up to where the ring is complete. What lies
 *     between `summed` and the position reached has no lead 0.
 *  3. That rest is added (sum_up) when a window without lead 0 must be decided, a normal path for sparse data, and
 *     at the end of a span, because its bytes go away. A position is summed up once: at most twice hashed.
 *  4. In a constant run, once 64 bytes of it have passed, all positions have the same rank; of equal ranks only
 *     the rightmost counts. So a run pushes its last position, and one at each decision, and hashes none.
 *     Its features are one feature, added when the run begins.
 *  5. Positions up to cut + min are never in a window to come, as the cut only grows: they are not pushed.
 *
 * Every position is scanned once and summed up at most once, every entry comes and goes once, every byte is compared
 * once for runs: linear for all inputs. Dense candidates cost a low() each, which lows() keeps constant.
 */
#include "cuts.h"

#include <string.h>

/* Values of low() computed at a time. */
#define BATCH 256

/* One contiguous piece of the stream while it is worked on. */
typedef struct piece {
    const uint8_t *p; /* p[-64 ..] is readable */
    uint64_t base;    /* the stream's bytes before p */
    uint64_t summed;  /* positions up to here are in the ring, or need not be */
} piece;

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Push a position unless no window to come holds it. */
static int offer(rdc_cutter *c, uint64_t position, uint64_t lead, uint64_t low)
{
    return position > c->cut + c->min ? rdc_minima_push(&c->minima, position, lead, low) : 0;
}

/* Complete the ring up to `end`: add the suffix minima of each block, in order. */
static int sum_up(rdc_cutter *c, piece *s, uint64_t end)
{
    uint8_t lead[RDC_BLOCK];
    uint16_t at[RDC_BLOCK], ascending[BATCH];
    uint64_t low[BATCH];

    if (s->summed < c->cut + c->min)
        s->summed = smaller(c->cut + c->min, end);
    while (s->summed < end) {
        const uint8_t *p = s->p + (s->summed - s->base);
        size_t n = (size_t)smaller(end - s->summed, RDC_BLOCK);
        c->form->scan(p, n, 0, lead, at);
        size_t steps = c->form->stairs(lead, n, at);
        while (steps > 0) {
            size_t batch = steps < BATCH ? steps : BATCH;
            for (size_t k = 0; k < batch; k++)
                ascending[k] = at[steps - 1 - k];
            c->form->lows(p, ascending, batch, low);
            for (size_t k = 0; k < batch; k++)
                if (offer(c, s->summed + ascending[k], lead[ascending[k] - 1], low[k]))
                    return -1;
            steps -= batch;
        }
        s->summed += n;
    }
    return 0;
}

/* Decide the cut of the window that ends at cut + max, which lies in this piece or at its start. */
static int decide(rdc_cutter *c, piece *s)
{
    const rdc_candidate *best = rdc_minima_after(&c->minima, c->cut + c->min);
    if (!best || best->lead > 0) {
        if (sum_up(c, s, c->cut + c->max))
            return -1;
        best = rdc_minima_after(&c->minima, c->cut + c->min);
    }
    c->cut = best->position;
    return rdc_ends_append(&c->ends, c->cut);
}

/* How many bytes from p on equal p[-1], at most n. */
static size_t run_length(const uint8_t *p, size_t n)
{
    size_t i = 0;
    while (n - i >= 512 && !memcmp(p + i, p + i - 1, 512))
        i += 512;
    while (i < n && p[i] == p[-1])
        i++;
    return i;
}

/* Whether a run that covers the window before p goes on for long enough to be worth the special case. */
static int run_begins(const uint8_t *p, size_t n)
{
    return n >= 64 && p[0] == p[-1] && p[63] == p[-64] && !memcmp(p - 64, p - 63, 127);
}

static void sample(rdc_cutter *c, uint64_t position, unsigned lead, uint64_t low)
{
    if (lead == 0)
        rdc_samples_add(&c->features, low);
    if (position < RDC_FEW_FEATURES_BELOW)
        rdc_samples_add(&c->few, low);
}

/* The positions `from` + 1 to `to` all have the rank of `from`: bytes from - 64 to `to` are equal. */
static int take_run(rdc_cutter *c, piece *s, uint64_t from, uint64_t to)
{
    const uint16_t at = 1;
    uint16_t ignored;
    uint8_t leads[64], lead;
    uint64_t low;
    const uint8_t *p = s->p + (from - s->base);

    c->form->scan(p, 1, 0, leads, &ignored);
    lead = leads[0];
    c->form->lows(p, &at, 1, &low);
    if (lead < RDC_LEAD_FEW)
        sample(c, from + 1, lead, low);
    if (lead > 0 && sum_up(c, s, from))
        return -1;
    s->summed = from;
    while (to > c->cut + c->max) {
        uint64_t window_end = c->cut + c->max;
        if (offer(c, window_end, lead, low))
            return -1;
        s->summed = window_end;
        if (decide(c, s))
            return -1;
    }
    s->summed = to;
    return offer(c, to, lead, low);
}

static int take_block(rdc_cutter *c, piece *s, uint64_t from, size_t n)
{
    uint8_t lead[RDC_BLOCK];
    uint16_t at[RDC_BLOCK];
    uint64_t low[BATCH];
    const uint8_t *p = s->p + (from - s->base);
    unsigned below = from < RDC_FEW_FEATURES_BELOW ? RDC_LEAD_FEW : 1;
    size_t count = c->form->scan(p, n, below, lead, at);

    for (size_t done = 0; done < count;) {
        size_t batch = count - done < BATCH ? count - done : BATCH;
        c->form->lows(p, at + done, batch, low);
        for (size_t k = 0; k < batch; k++) {
            uint64_t position = from + at[done + k];
            unsigned first = lead[at[done + k] - 1];
            sample(c, position, first, low[k]);
            if (first)
                continue;
            while (position > c->cut + c->max)
                if (decide(c, s))
                    return -1;
            if (offer(c, position, 0, low[k]))
                return -1;
            s->summed = position;
        }
        done += batch;
    }
    while (from + n > c->cut + c->max)
        if (decide(c, s))
            return -1;
    return 0;
}

/* Work through a contiguous piece whose 64 bytes of history stand before it. */
static int advance(rdc_cutter *c, const uint8_t *p, size_t length)
{
    piece s = {p, c->length, c->length};
    uint64_t end = c->length + length, at = c->length;

    while (at < end) {
        const uint8_t *here = p + (at - s.base);
        size_t left = (size_t)(end - at);
        if (run_begins(here, left)) {
            size_t run = run_length(here, left);
            if (take_run(c, &s, at, at + run))
                return -1;
            at += run;
        } else {
            size_t n = (size_t)smaller(left, RDC_BLOCK);
            if (take_block(c, &s, at, n))
                return -1;
            at += n;
        }
    }
    c->length = end;
    return sum_up(c, &s, end);
}

void rdc_cutter_start(rdc_cutter *c, const rdc_form *form, uint64_t min, uint64_t max)
{
    memset(c, 0, sizeof *c);
    c->form = form;
    c->min = min;
    c->max = max;
    rdc_samples_clear(&c->features);
    rdc_samples_clear(&c->few);
}

int rdc_cutter_feed(rdc_cutter *c, const uint8_t *data, size_t length)
{
    /* The first 64 positions' windows reach back into bytes of earlier spans: those two pieces are joined. */
    uint8_t joined[2 * RDC_LOW_WINDOW];
    size_t head = length < RDC_LOW_WINDOW ? length : RDC_LOW_WINDOW;

    if (length == 0)
        return 0;
    memcpy(joined, c->last, RDC_LOW_WINDOW);
    memcpy(joined + RDC_LOW_WINDOW, data, head);
    memcpy(c->last, length < RDC_LOW_WINDOW ? joined + head : data + length - RDC_LOW_WINDOW, RDC_LOW_WINDOW);
    if (advance(c, joined + RDC_LOW_WINDOW, head))
        return -1;
    return length > head ? advance(c, data + head, length - head) : 0;
}

int rdc_cutter_traits(const rdc_cutter *c, uint8_t *out)
{
    return rdc_samples_traits(c->length < RDC_FEW_FEATURES_BELOW ? &c->few : &c->features, out);
}

void rdc_cutter_end(rdc_cutter *c)
{
    free(c->minima.entry);
    free(c->ends.end);
    memset(&c->minima, 0, sizeof c->minima);
    memset(&c->ends, 0, sizeof c->ends);
}
