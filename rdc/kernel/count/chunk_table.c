/* chunk_table.c - counts how often each chunk was seen: 16 bytes per slot, ordered by key, exact or for a
 * sample of keys.
 *
 * Keys are bits of cryptographic digests, so they are evenly distributed. The home of a key is key * homes
 * / 2^64, which grows with the key. Linear probing that keeps equal homes sorted keeps the whole table
 * sorted by key. Three things follow. A search ends at the first larger key, about 1/(1 - load) slots on.
 * Growing moves every slot to the right, so it happens in place, by realloc and two passes, and never
 * takes twice the memory. Halving a sample drops the end of the table.
 *
 * Rows that come in the order of keys, as those of a part do, meet no evenly filled table: where they are dense, runs of
 * slots get as long as all of them. So a search doubles its steps, and what many rows push out moves once for all.
 *
 * The load is kept between LOAD / GROWTH and LOAD, so a chunk takes 16 / 0.85 = 19 bytes to 16 / 0.71 =
 * 22.6.
 *
 * Worst case: an attacker who chooses chunks can search for digests with equal leading bits, at n tries
 * per bit. An insertion then moves a long run of slots at the speed of memmove: a hundred thousand such
 * chunks cost 0.1 ms each. A secret key would prevent that, but tables of several machines are merged. */
#include "count/count.h"

#include <stdlib.h>
#include <string.h>

#include "prefetch.h"

#define FIRST_HOMES 64
#define LOAD_MOST 0.85
#define GROWTH 1.2
#define SLACK 16 /* initial slots behind the homes */
#define FETCHED_LEAST 65536 /* homes, 1 MiB: a larger table is in no cache near by */
#define ROWS_AHEAD 8 /* its slots are requested so many rows before a row is counted */
#define SORTED_LEAST 16 /* rows in the order of keys from which they are inserted together */

void rdc_table_start(rdc_table *t, size_t limit)
{
    memset(t, 0, sizeof *t);
    t->limit = limit;
}

/* `shift` leading bits of each key are 0 and would leave all but the first homes empty. */
static size_t home(const rdc_table *t, uint64_t key, size_t homes)
{
    return (size_t)((unsigned __int128)(key << t->shift) * homes >> 64);
}

static int sampled_out(const rdc_table *t, uint64_t key)
{
    return t->shift && key >> (64 - t->shift);
}

static int has_smaller(const rdc_table *t, size_t at, uint64_t key)
{
    return at < t->length && t->slot[at].count && t->slot[at].key < key;
}

/* Returns the first slot at or behind the key's home that is empty or has no smaller key. If a slot behind the home has
 * a smaller key, so have all between: from its own home on, which is not behind this one, none of them is empty.
 * `least`: a slot that is not behind the wanted one, such as that of a smaller key. */
static size_t slot_from(const rdc_table *t, uint64_t key, size_t least)
{
    size_t low = home(t, key, t->homes), step = 1;
    if (!has_smaller(t, low, key))
        return low;
    if (low < least) {
        low = least;
        if (!has_smaller(t, low, key))
            return low;
    }
    while (has_smaller(t, low + step, key)) {
        low += step;
        step *= 2;
    }
    for (size_t high = low + step;;) {
        const size_t middle = low + (high - low) / 2;
        if (middle == low)
            return high;
        if (has_smaller(t, middle, key))
            low = middle;
        else
            high = middle;
    }
}

static size_t slot_of(const rdc_table *t, uint64_t key)
{
    return slot_from(t, key, 0);
}

/* Slots that suffice for `homes`, so that the last key still has one. Each key is at its home or behind it, and so many
 * more homes move no home further than by their number. So no key moves further either. With as many homes as before,
 * another sample was chosen, which moves homes further. */
static size_t slots_needed(const rdc_table *t, size_t homes)
{
    if (t->homes && homes > t->homes)
        return t->length + (homes - t->homes);
    size_t next = 0;
    for (size_t i = 0; i < t->length; i++)
        if (t->slot[i].count) {
            const size_t at = home(t, t->slot[i].key, homes);
            next = (at > next ? at : next) + 1;
        }
    return (next > homes ? next : homes) + SLACK;
}

/* Spreads the used slots over `homes`, in place. First all of them move to the end of an allocation of
 * `length` slots. Then each moves to the later of its home and the slot behind the one before it. That is
 * never behind the slot it comes from: `length` leaves room for the last one, and so for all that follow
 * any slot.
 *
 * No processor foresees which slots are used, so both loops write what they may not need instead of asking: an empty
 * slot, which the next one replaces, and two empty slots behind each used one. */
static int spread(rdc_table *t, size_t homes)
{
    const size_t room = slots_needed(t, homes), old = t->length;
    if (room > old) {
        rdc_slot *grown = realloc(t->slot, room * sizeof *grown);
        if (!grown)
            return -1;
        t->slot = grown;
    }
    size_t to = room > old ? room : old;
    const size_t end = to;
    for (size_t from = old; from-- > 0;) {
        const rdc_slot moved = t->slot[from];
        t->slot[to - 1] = moved;
        to -= moved.count != 0;
    }
    const rdc_slot empty = {0, 0, 0};
    size_t next = 0;
    for (; to < end; to++) {
        const rdc_slot moved = t->slot[to];
        const size_t own = home(t, moved.key, homes);
        const size_t at = own > next ? own : next;
        size_t gap = next;
        if (next + 1 < to) {
            t->slot[gap++] = empty;
            t->slot[gap++] = empty;
        }
        while (gap < at)
            t->slot[gap++] = empty;
        t->slot[at] = moved;
        next = at + 1;
    }
    memset(t->slot + next, 0, (end - next) * sizeof *t->slot);
    const size_t wanted = (next > homes ? next : homes) + SLACK, length = wanted < end ? wanted : end;
    if (length < end) {
        rdc_slot *shrunk = realloc(t->slot, length * sizeof *shrunk);
        if (shrunk)
            t->slot = shrunk;
    }
    t->homes = homes;
    t->length = length;
    return 0;
}

/* Counts a known chunk, of which the largest size stays. What outgrows its slot moves to `wide`. */
static int count_again(rdc_table *t, rdc_slot *slot, uint64_t size, uint64_t count)
{
    if (slot->size == UINT32_MAX) {
        rdc_wide *wide = rdc_find_wide(t, slot->key);
        wide->count += count;
        wide->size = size > wide->size ? size : wide->size;
        return 0;
    }
    size = size > slot->size ? size : slot->size;
    if (size >= UINT32_MAX || count > UINT32_MAX - slot->count) {
        if (rdc_add_wide(t, slot->key, size, slot->count + count))
            return -1;
        slot->size = UINT32_MAX;
    } else {
        slot->count += (uint32_t)count;
        slot->size = (uint32_t)size;
    }
    return 0;
}

static int fits(const rdc_table *t, size_t more, size_t homes)
{
    return (double)(t->used + more) <= LOAD_MOST * (double)homes;
}

static int has_room(const rdc_table *t, size_t more)
{
    return fits(t, more, t->homes);
}

/* Grows at once until `more` chunks fit, or halves the sample if growing would exceed the limit. */
static int make_room(rdc_table *t, size_t more)
{
    size_t homes = t->homes;
    while (!fits(t, more, homes)) {
        homes = homes ? (size_t)((double)homes * GROWTH) : FIRST_HOMES;
        if (homes > FIRST_HOMES && (homes + SLACK) * sizeof(rdc_slot) > t->limit && t->shift < 63)
            return rdc_table_sample(t, t->shift + 1);
    }
    return spread(t, homes);
}

/* Makes some more slots behind the last one. */
static int lengthen(rdc_table *t)
{
    const size_t length = t->length + t->length / 64 + SLACK;
    rdc_slot *grown = realloc(t->slot, length * sizeof *grown);
    if (!grown)
        return -1;
    memset(grown + t->length, 0, (length - t->length) * sizeof *grown);
    t->slot = grown;
    t->length = length;
    return 0;
}

/* Stores what a slot has of a new chunk. */
static int new_slot(rdc_table *t, uint64_t key, uint64_t size, uint64_t count, rdc_slot *slot)
{
    const int is_wide = size >= UINT32_MAX || count > UINT32_MAX;
    if (is_wide && rdc_add_wide(t, key, size, count))
        return -1;
    *slot = (rdc_slot){key, is_wide ? 1 : (uint32_t)count, is_wide ? UINT32_MAX : (uint32_t)size};
    return 0;
}

static int add_one(rdc_table *t, uint64_t key, uint64_t size, uint64_t count)
{
    if (sampled_out(t, key))
        return 0;
    size_t at = t->homes ? slot_of(t, key) : 0;
    if (at < t->length && t->slot[at].count && t->slot[at].key == key)
        return count_again(t, t->slot + at, size, count);
    if (!has_room(t, 1)) {
        while (!has_room(t, 1))
            if (make_room(t, 1))
                return -1;
        if (sampled_out(t, key))
            return 0;
        at = slot_of(t, key);
    }
    size_t empty = at;
    while (empty < t->length && t->slot[empty].count)
        empty++;
    if (empty == t->length && lengthen(t))
        return -1;
    rdc_slot slot;
    if (new_slot(t, key, size, count, &slot))
        return -1;
    memmove(t->slot + at + 1, t->slot + at, (empty - at) * sizeof *t->slot);
    t->slot[at] = slot;
    t->used++;
    return 0;
}

/* Inserts n new slots in the order of keys, for which there is room. `out`, room for n, is a ring of those that were
 * pushed out and wait for a place. They are not larger than what is behind the place reached, and their homes are
 * before it. */
static int insert_sorted(rdc_table *t, const rdc_slot *slot, size_t n, rdc_slot *out)
{
    size_t at = 0, done = 0, first = 0, waiting = 0;
    while (done < n || waiting) {
        if (!waiting)
            at = slot_from(t, slot[done].key, at);
        if (at >= t->length && lengthen(t))
            return -1;
        const int is_new = done < n && (!waiting || slot[done].key < out[first].key);
        const rdc_slot next = is_new ? slot[done] : out[first], here = t->slot[at];
        if (!here.count || here.key > next.key) {
            t->slot[at] = next;
            if (is_new) {
                done++;
            } else {
                first = first + 1 == n ? 0 : first + 1;
                waiting--;
            }
            if (here.count) {
                const size_t last = first + waiting;
                out[last < n ? last : last - n] = here;
                waiting++;
            }
        }
        at++;
    }
    t->used += n;
    return 0;
}

/* Adds rows whose keys increase. */
static int add_sorted(rdc_table *t, const uint64_t *key, const uint64_t *size, const uint64_t *count, size_t n)
{
    rdc_slot *fresh = malloc(2 * n * sizeof *fresh);
    size_t *row = malloc(n * sizeof *row), unseen = 0, at = 0;
    int failed = !fresh || !row;

    for (size_t i = 0; i < n && !failed; i++) {
        if ((count && !count[i]) || sampled_out(t, key[i]))
            continue;
        at = t->homes ? slot_from(t, key[i], at) : 0;
        if (at < t->length && t->slot[at].count && t->slot[at].key == key[i])
            failed = count_again(t, t->slot + at, size[i], count ? count[i] : 1);
        else
            row[unseen++] = i;
    }
    while (!failed && unseen && !has_room(t, unseen)) {
        failed = make_room(t, unseen);
        while (unseen && sampled_out(t, key[row[unseen - 1]]))
            unseen--;
    }
    for (size_t i = 0; i < unseen && !failed; i++)
        failed = new_slot(t, key[row[i]], size[row[i]], count ? count[row[i]] : 1, fresh + i);
    if (!failed && unseen)
        failed = insert_sorted(t, fresh, unseen, fresh + n);
    free(fresh);
    free(row);
    return failed ? -1 : 0;
}

/* Requests the slots from a key's home on. Rows in no order would wait for each line of a large table, three times as
 * long as they take then. */
static void fetch_slots(const rdc_table *t, uint64_t key)
{
    const rdc_slot *const slot = t->slot + home(t, key, t->homes);
    for (size_t line = 0; line < 3; line++)
        __builtin_prefetch((const void *)((uintptr_t)slot + line * RDC_CACHE_LINE), 1);
}

int rdc_table_add(rdc_table *t, const uint64_t *key, const uint64_t *size, const uint64_t *count, size_t n)
{
    int is_sorted = n >= SORTED_LEAST, failed = 0;
    for (size_t i = 0; i < n; i++) {
        t->chunks += count ? count[i] : 1;
        t->bytes += (count ? count[i] : 1) * size[i];
        is_sorted &= i == 0 || key[i - 1] < key[i];
    }
    if (is_sorted)
        return add_sorted(t, key, size, count, n);
    for (size_t i = 0; i < n && !failed; i++) {
        if (t->homes >= FETCHED_LEAST && i + ROWS_AHEAD < n)
            fetch_slots(t, key[i + ROWS_AHEAD]);
        if (!count || count[i])
            failed = add_one(t, key[i], size[i], count ? count[i] : 1);
    }
    return failed;
}

int rdc_table_sample(rdc_table *t, unsigned shift)
{
    if (shift <= t->shift)
        return 0;
    t->shift = shift;
    for (size_t i = 0; i < t->length; i++)
        if (t->slot[i].count && sampled_out(t, t->slot[i].key)) {
            t->slot[i].count = 0;
            t->used--;
        }
    while (t->wides && sampled_out(t, t->wide[t->wides - 1].key))
        t->wides--;
    return t->homes ? spread(t, t->homes) : 0;
}

uint64_t rdc_table_find(const rdc_table *t, uint64_t key, uint64_t *size)
{
    const size_t at = t->homes && !sampled_out(t, key) ? slot_of(t, key) : t->length;
    if (at >= t->length || !t->slot[at].count || t->slot[at].key != key)
        return 0;
    const rdc_slot slot = t->slot[at];
    const rdc_wide *wide = slot.size == UINT32_MAX ? rdc_find_wide(t, key) : NULL;
    if (size)
        *size = wide ? wide->size : slot.size;
    return wide ? wide->count : slot.count;
}

int rdc_table_next(const rdc_table *t, size_t *position, rdc_wide *chunk)
{
    while (*position < t->length) {
        const rdc_slot slot = t->slot[(*position)++];
        if (!slot.count)
            continue;
        *chunk = slot.size == UINT32_MAX ? *rdc_find_wide(t, slot.key) : (rdc_wide){slot.key, slot.count, slot.size};
        return 1;
    }
    return 0;
}

size_t rdc_table_memory(const rdc_table *t)
{
    return t->length * sizeof *t->slot + t->wide_room * sizeof *t->wide;
}

void rdc_table_end(rdc_table *t)
{
    free(t->slot);
    free(t->wide);
    memset(t, 0, sizeof *t);
}
