/*
 * cuts.c - cut points and traits of a byte stream, fed in spans.
 *
 *     c = 0;  while n - c > max:  c = the RIGHTMOST i in (c+min, c+max] with the smallest rank(i)
 *     rank(i) = (lead(i), low(i)), compared as unsigned integers
 *
 * Why this equals the definition, position by position (rdc/kernel/cut/reference.py):
 *
 *  1. The definition pushes every rank and takes the front. Only suffix minima matter: an entry with a later one
 *     smaller or equal is never the rightmost minimum of a window that reaches the later one, and every window
 *     still to be decided reaches all that is known. So pushing any superset of the suffix minima is enough.
 *  2. Ranks with lead 0 are below all others. While a window has one, entries with lead > 0 before the last
 *     one are not suffix minima, and those after it are not its minimum. So the block pass pushes only the
 *     positions with lead 0, one in 256, and `summed` remembers up to where the ring is complete. What lies
 *     between `summed` and the position reached has no lead 0.
 *  3. That rest is added (sum_up) when a window without lead 0 must be decided, a normal path for sparse data, at
 *     the end of a block that ends in a long stretch without lead 0, while its leads are still there, before a dense
 *     block (5), and at the end of a span, because its bytes go away. A position is summed up once. Of a stretch only
 *     the stairs are looked at, positions with no smaller lead after them in it: others are not suffix minima.
 *  4. In a periodic run, once 64 bytes of it have passed, ranks are periodic too; of equal ranks only the rightmost
 *     counts. So a run that a block would begin with is hashed for one period, which has all its features. At its end
 *     and at each decision the last period is pushed.
 *  5. A block is dense if it has more positions of lead 0, or a stretch with more stairs, than are worth a look one by
 *     one. low() is then slid over all of it, and the suffix minima of all its ranks are pushed. Nothing of it is left
 *     out, so it is complete. Its features are picked from all ranks by their leads, which gives the same set.
 *  6. Positions up to cut + min are in no window to come, because the cut only grows: they are not pushed. Where only
 *     the cuts of a whole stream are asked for, they are not scanned either. Nor is what lies after the last window
 *     that must be decided: all of a stream of up to max bytes.
 *
 * Cost: every position is scanned once, a quarter at most twice, and hashed once (in the first 64 KiB, where leads up
 * to 3 make features, twice). Every entry is pushed and popped once. Every byte is compared at most twice for runs. So
 * the time is linear for all inputs; tests/kernel/native/compare.c counts the steps.
 * Hostile data can make every position a candidate, and every branch on a lead or a rank a mispredicted one. A dense
 * block therefore has no such branches: its ranks, features and suffix minima cost the same whatever they are. Whether
 * a block is dense depends on its own candidates alone, so no order of blocks makes the choice a wrong one. The worst
 * position costs one scan, one slide, one feature, one comparison and its entry in the ring. That is less than a scalar
 * hash in all variants but the plain one, where it is a quarter more.
 */
#include "cut/cuts.h"

#include <string.h>

#include "cut/suffix_minima.h"

/*
 * Adds the features with lead > 0 among the `count` positions at[] of a stream's beginning. Moves those with lead 0 to the
 * front of at[] and low[] and returns their number. `few` is not needed from position RDC_FEW_FEATURES_BELOW on.
 */
static inline size_t take_few(rdc_cutter *c, const uint8_t *lead, uint16_t *at, uint64_t *low, size_t count)
{
    uint64_t others[RDC_POSITIONS];
    size_t zeros = 0;

    for (size_t k = 0; k < count; k++) {
        const size_t zero = lead[at[k] - 1] == 0;
        others[k - zeros] = low[k];
        at[zeros] = at[k];
        low[zeros] = low[k];
        zeros += zero;
    }
    rdc_samples_add(&c->few, others, count - zeros);
    return zeros;
}

/* Adds the features among the n positions of a dense block. `early`: the block is at the beginning of the stream. */
static inline void take_features(rdc_cutter *c, const uint8_t *lead, const uint64_t *low, size_t n, int early)
{
    uint16_t at[RDC_BLOCK], others[RDC_BLOCK];
    size_t count = c->variant->contenders(c->features.reach, early ? c->few.reach : 0, lead, low, n, at), zeros = 0;

    for (size_t k = 0; early && k < count; k++) {
        const uint16_t i = at[k];
        others[k - zeros] = i;
        at[zeros] = i;
        zeros += lead[i - 1] == 0;
    }
    rdc_samples_add_near(&c->features, low, at, early ? zeros : count);
    rdc_samples_add_near(&c->few, low, others, early ? count - zeros : 0);
}

/* One contiguous part of the stream while it is processed. */
typedef struct part {
    const uint8_t *p; /* p[-64 ..] is readable */
    uint64_t base;    /* the stream's bytes before p */
    uint64_t end;     /* and those up to its end */
    uint64_t summed;  /* positions up to here are in the ring, or need not be */
    uint64_t leads_from, leads_to;
    const uint8_t *leads; /* of the positions leads_from + 1 to leads_to: those of the block worked on */
} part;

/* A block that ends with this many positions without lead 0 is summed up while their leads are at hand. On
 * random data one block in 60 ends so. Shorter ends stay, so at most a quarter of all positions is scanned
 * again. */
#define RDC_SUM_AT_ONCE 1024

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Pushes the suffix minima of n <= RDC_BLOCK ranks. Their positions from + at[k] ascend; without `at` they
 * are from + 1, from + 2, ... */
static int offer_all(rdc_cutter *c, uint64_t from, const uint16_t *at, const uint8_t *lead, const uint64_t *low, size_t n)
{
    uint16_t keep[RDC_BLOCK];
    const uint64_t after = c->cut + c->min;
    size_t listed = rdc_suffix_minima(lead, low, n, keep);

    /* Positions that no later window contains. */
    while (listed > 0 && from + (at ? at[keep[listed - 1]] : keep[listed - 1] + 1u) <= after)
        listed--;
    if (listed == 0)
        return 0;
    /* The first is the smallest. Each further one is larger than the one before it and is appended. */
    if (c->minima.back > c->minima.front)
        rdc_minima_drop(&c->minima, lead[keep[listed - 1]], low[keep[listed - 1]]);
    if (rdc_minima_reserve(&c->minima, listed))
        return -1;
    rdc_candidate *entry = c->minima.entry + c->minima.back;
    c->minima.back += listed;
    while (listed > 0) {
        const size_t k = keep[--listed];
        *entry++ = (rdc_candidate){from + (at ? at[k] : k + 1), low[k], lead[k]};
    }
    return 0;
}

/* A period that many others divide: 1 to 6, 8, 10, 12, 15, 16 and multiples. */
#define RDC_PERIOD 240

/* Shorter runs are not worth hashing a period of them. */
#define RDC_RUN_LEAST 2048

/* Returns for how many bytes from p on the data from p - 64 on is periodic, at most n >= RDC_PERIOD. */
static size_t run_length(const uint8_t *p, size_t n)
{
    const uint8_t *first = p - RDC_LOW_WINDOW;
    size_t i = 0;
    n += RDC_LOW_WINDOW - RDC_PERIOD;
    while (n - i >= 512 && !memcmp(first + i, first + i + RDC_PERIOD, 512))
        i += 512;
    while (n - i >= 32 && !memcmp(first + i, first + i + RDC_PERIOD, 32))
        i += 32;
    while (i < n && first[i] == first[i + RDC_PERIOD])
        i++;
    return i + RDC_PERIOD - RDC_LOW_WINDOW;
}

/* Returns whether a periodic run covers the window before p and is long enough for the special case. */
static int run_begins(const uint8_t *p, size_t n)
{
    const uint8_t *first = p - RDC_LOW_WINDOW;
    return n >= RDC_RUN_LEAST && rdc_load64(first) == rdc_load64(first + RDC_PERIOD) &&
           !memcmp(first, first + RDC_PERIOD, RDC_RUN_LEAST + RDC_LOW_WINDOW - RDC_PERIOD);
}

/* Pushes the suffix minima of the n positions after p, which follow `from` and have these leads. */
static int push_stairs(rdc_cutter *c, const uint8_t *p, uint64_t from, size_t n, const uint8_t *lead)
{
    uint16_t at[RDC_POSITIONS];
    size_t count = c->variant->stairs(lead, n, at);

    if (count > rdc_few(c->variant, n)) {
        uint64_t low[RDC_BLOCK];
        c->variant->slide(p, n, low);
        return offer_all(c, from, NULL, lead, low, n);
    }
    uint64_t low[RDC_POSITIONS];
    uint8_t step[RDC_POSITIONS];
    c->variant->lows(p, at, count, low);
    for (size_t k = 0; k < count; k++)
        step[k] = lead[at[k] - 1];
    return offer_all(c, from, at, step, low, count);
}

/* The same for n <= RDC_BLOCK positions whose leads are no longer there. */
static int scan_again(rdc_cutter *c, const uint8_t *p, uint64_t from, size_t n)
{
    uint8_t lead[RDC_BLOCK];
    uint16_t none[RDC_POSITIONS];

    c->variant->scan(p, n, 0, lead, none);
    return push_stairs(c, p, from, n, lead);
}

/* Complete the ring up to `end`. */
static int sum_up(rdc_cutter *c, part *s, uint64_t end)
{
    if (s->summed < c->cut + c->min)
        s->summed = smaller(c->cut + c->min, end);
    while (s->summed < end) {
        const uint64_t from = s->summed;
        const uint8_t *p = s->p + (from - s->base);
        size_t n;
        if (from >= s->leads_from && from < s->leads_to) {
            n = (size_t)(smaller(end, s->leads_to) - from);
            if (push_stairs(c, p, from, n, s->leads + (from - s->leads_from)))
                return -1;
        } else {
            uint64_t stop = from < s->leads_from ? smaller(end, s->leads_from) : end;
            n = (size_t)smaller(stop - from, RDC_BLOCK);
            if (scan_again(c, p, from, n))
                return -1;
        }
        s->summed += n;
    }
    return 0;
}

/* Decides the cut of the window that ends at cut + max, which lies in this part or at its start. */
static int decide(rdc_cutter *c, part *s)
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

/* Takes the positions `from` + 1 to `to`: bytes from - 64 to `to` have the period RDC_PERIOD. */
static int take_run(rdc_cutter *c, part *s, uint64_t from, uint64_t to)
{
    const uint8_t *p = s->p + (from - s->base);
    uint8_t lead[2 * RDC_PERIOD + 64];
    uint64_t low[2 * RDC_PERIOD];
    uint16_t none[RDC_POSITIONS]; /* no lead is below 0: nothing is listed */

    c->variant->scan(p, RDC_PERIOD, 0, lead, none);
    c->variant->slide(p, RDC_PERIOD, low);
    memcpy(lead + RDC_PERIOD, lead, RDC_PERIOD);
    memcpy(low + RDC_PERIOD, low, RDC_PERIOD * sizeof *low);
    if (!c->plain)
        take_features(c, lead, low, RDC_PERIOD, from < RDC_FEW_FEATURES_BELOW);
    if (sum_up(c, s, from))
        return -1;
    for (uint64_t done = from;;) {
        const uint64_t stop = smaller(to, c->cut + c->max);
        if (stop - done > RDC_PERIOD)
            done = stop - RDC_PERIOD;
        const size_t phase = (size_t)((done - from) % RDC_PERIOD);
        if (offer_all(c, done, NULL, lead + phase, low + phase, (size_t)(stop - done)))
            return -1;
        s->summed = done = stop;
        if (done == to)
            return 0;
        if (decide(c, s))
            return -1;
    }
}

/* Takes the `count` positions from + at[], the only ones of a block with lead 0. Decides the windows that
 * end before each. */
static int take_zeros(rdc_cutter *c, part *s, uint64_t from, const uint16_t *at, const uint64_t *low, size_t count)
{
    static const uint8_t zeros[RDC_POSITIONS];

    for (size_t done = 0; done < count;) {
        uint64_t window_end = c->cut + c->max;
        size_t next = done;
        if (from + at[count - 1] <= window_end)
            next = count;
        while (next < count && from + at[next] <= window_end)
            next++;
        if (next > done) {
            if (offer_all(c, from, at + done, zeros, low + done, next - done))
                return -1;
            s->summed = from + at[next - 1];
        }
        if (next < count && decide(c, s))
            return -1;
        done = next;
    }
    return 0;
}

/* Takes a dense block: the ranks of all its positions. */
static int take_dense(rdc_cutter *c, part *s, const uint8_t *p, uint64_t from, size_t n, const uint8_t *lead, int early)
{
    uint64_t low[RDC_BLOCK];

    c->variant->slide(p, n, low);
    if (!c->plain)
        take_features(c, lead, low, n, early);
    if (sum_up(c, s, from))
        return -1;
    for (size_t done = 0;;) {
        const size_t next = (size_t)(smaller(from + n, c->cut + c->max) - from);
        if (from + done < c->cut + c->min)
            done = (size_t)(smaller(from + next, c->cut + c->min) - from);
        if (offer_all(c, from + done, NULL, lead + done, low + done, next - done))
            return -1;
        s->summed = from + next;
        if (next == n)
            return 0;
        if (decide(c, s))
            return -1;
        done = next;
    }
}

static int take_block(rdc_cutter *c, part *s, uint64_t from, size_t n)
{
    uint8_t lead[RDC_BLOCK];
    uint16_t at[RDC_POSITIONS];
    uint64_t low[RDC_POSITIONS];
    const uint8_t *p = s->p + (from - s->base);
    const int early = !c->plain && from < RDC_FEW_FEATURES_BELOW;
    size_t count = c->variant->scan(p, n, early ? RDC_LEAD_FEW : 1, lead, at);

    if (count > rdc_few(c->variant, n))
        return take_dense(c, s, p, from, n, lead, early);
    s->leads = lead;
    s->leads_from = from;
    s->leads_to = from + n;
    c->variant->lows(p, at, count, low);
    if (early)
        count = take_few(c, lead, at, low, count);
    if (!c->plain)
        rdc_samples_add(&c->features, low, count);
    if (take_zeros(c, s, from, at, low, count))
        return -1;
    /* A window that ends here is decided while its leads are at hand, unless the stream may end here too. */
    while (from + n + (from + n < s->end) > c->cut + c->max)
        if (decide(c, s))
            return -1;
    if ((s->summed + RDC_SUM_AT_ONCE <= from + n || from + n == s->end) && sum_up(c, s, from + n))
        return -1;
    s->leads_to = s->leads_from;
    return 0;
}

/* Processes a contiguous part with 64 bytes of history before it. */
static int advance(rdc_cutter *c, const uint8_t *p, size_t length)
{
    const uint64_t end = c->length + length;
    part s = {p, c->length, end, c->length, 0, 0, NULL};
    uint64_t at = c->length;

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

void rdc_cutter_start(rdc_cutter *c, const rdc_variant *variant, uint64_t min, uint64_t max)
{
    memset(c, 0, sizeof *c);
    c->variant = variant;
    c->min = min;
    c->max = max;
    rdc_samples_clear(&c->features);
    rdc_samples_clear(&c->few);
}

int rdc_cutter_feed(rdc_cutter *c, const uint8_t *data, size_t length)
{
    /* The windows of the first 64 positions reach back into earlier spans. The last bytes of those and the
     * first of this span are joined. */
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

int rdc_cutter_whole(rdc_cutter *c, const uint8_t *data, size_t length)
{
    part s = {data, 0, length, 0, 0, 0, NULL};
    uint64_t at = 0;

    while (length - c->cut > c->max) {
        const uint64_t window_end = c->cut + c->max;
        if (at < c->cut + c->min)
            at = s.summed = c->cut + c->min; /* 64 at least: the history of a position is in `data` too */
        if (at == window_end) {
            if (decide(c, &s))
                return -1;
        } else if (run_begins(data + at, (size_t)(length - at))) {
            const size_t run = run_length(data + at, (size_t)(length - at));
            if (take_run(c, &s, at, at + run))
                return -1;
            at += run;
        } else {
            const size_t n = (size_t)smaller(window_end - at, RDC_BLOCK);
            if (take_block(c, &s, at, n))
                return -1;
            at += n;
        }
    }
    c->length = length;
    return 0;
}

int rdc_cutter_traits(const rdc_cutter *c, uint8_t *out)
{
    rdc_samples all = c->features;
    if (c->length < RDC_FEW_FEATURES_BELOW)
        rdc_samples_merge(&all, &c->few);
    return rdc_samples_traits(&all, out);
}

void rdc_cutter_end(rdc_cutter *c)
{
    free(c->minima.entry);
    free(c->ends.end);
    memset(&c->minima, 0, sizeof c->minima);
    memset(&c->ends, 0, sizeof c->ends);
}
