/* key_table.c - finds the numbers of keys: 8 bytes a slot, for indices of many millions of keys.
 *
 * A slot has 32 bits of a key's hash and the number of its row, and not the key: whoever asks compares it with the row's.
 * The home of a key is hash * length / 2^32, so the table can grow without the keys. Linear probing: a search ends at the
 * first empty slot. The load is at most LOAD_MOST, so a key takes 9.4 to 12.3 bytes.
 *
 * The keys of a store come from files that may be hostile. The hash has a seed that nobody knows, so only equal keys meet.
 * A key further than PROBES_MOST slots from its home is refused: without equal keys, none of 2^32 is that far. */
#include "count/key_table.h"

#include <stdlib.h>
#include <string.h>

#define LOAD_MOST 0.85
#define GROWTH 1.3
#define LENGTH_LEAST 64
#define PROBES_MOST 8192
#define ROWS_AHEAD 8

static uint64_t word(const uint8_t *bytes)
{
    uint64_t number;
    memcpy(&number, bytes, sizeof number);
    return number;
}

static uint32_t hash_of(const rdc_key_table *t, const uint8_t *key)
{
    const unsigned __int128 product =
        (unsigned __int128)(word(key) ^ t->seed[0]) * (word(key + 8) ^ t->seed[1]);
    const uint64_t folded = (uint64_t)product ^ (uint64_t)(product >> 64);
    return (uint32_t)(folded * 0x9e3779b97f4a7c15u >> 32);
}

static size_t home(const rdc_key_table *t, uint32_t hash)
{
    return (size_t)((unsigned __int128)hash * t->length >> 32);
}

/* Returns the first empty slot for a hash, or -1 if it is too far from its home. */
static ptrdiff_t empty_slot(const rdc_key_table *t, uint32_t hash)
{
    size_t at = home(t, hash);
    for (size_t probes = 0; probes < PROBES_MOST; probes++) {
        if (t->slot[at].number == RDC_NO_NUMBER)
            return (ptrdiff_t)at;
        at = at + 1 == t->length ? 0 : at + 1;
    }
    return -1;
}

static int make_slots(rdc_key_table *t, size_t length)
{
    t->slot = malloc(length * sizeof *t->slot);
    if (!t->slot)
        return -1;
    memset(t->slot, 0xff, length * sizeof *t->slot);
    t->length = length;
    return 0;
}

int rdc_key_table_start(rdc_key_table *t, size_t rows, const uint64_t seed[2])
{
    const size_t length = (size_t)((double)rows / LOAD_MOST) + LENGTH_LEAST;
    t->used = 0;
    memcpy(t->seed, seed, sizeof t->seed);
    return make_slots(t, length);
}

static rdc_keys_verdict grow(rdc_key_table *t, size_t rows)
{
    const rdc_key_table old = *t;
    const size_t wanted = (size_t)((double)(t->used + rows) / LOAD_MOST) + LENGTH_LEAST;
    const size_t larger = (size_t)((double)t->length * GROWTH);
    if (make_slots(t, wanted > larger ? wanted : larger)) {
        *t = old;
        return RDC_KEYS_NO_MEMORY;
    }
    for (size_t i = 0; i < old.length; i++) {
        if (old.slot[i].number == RDC_NO_NUMBER)
            continue;
        const ptrdiff_t at = empty_slot(t, old.slot[i].hash);
        if (at < 0) {
            free(t->slot);
            *t = old;
            return RDC_KEYS_MEET;
        }
        t->slot[at] = old.slot[i];
    }
    free(old.slot);
    return RDC_KEYS_ADDED;
}

/* Requests the slot of a key to come: each search would wait for memory otherwise. */
static void fetch_ahead(const rdc_key_table *t, const uint8_t *key, size_t i, size_t n)
{
    if (i + ROWS_AHEAD < n)
        __builtin_prefetch(t->slot + home(t, hash_of(t, key + (i + ROWS_AHEAD) * RDC_KEY_BYTES)), 1);
}

rdc_keys_verdict rdc_key_table_add(rdc_key_table *t, const uint8_t *key, size_t n, uint32_t first)
{
    if ((double)(t->used + n) > LOAD_MOST * (double)t->length) {
        const rdc_keys_verdict grown = grow(t, n);
        if (grown != RDC_KEYS_ADDED)
            return grown;
    }
    for (size_t i = 0; i < n; i++) {
        fetch_ahead(t, key, i, n);
        const uint32_t hash = hash_of(t, key + i * RDC_KEY_BYTES);
        const ptrdiff_t at = empty_slot(t, hash);
        if (at < 0)
            return RDC_KEYS_MEET;
        t->slot[at] = (rdc_key_slot){hash, first + (uint32_t)i};
        t->used++;
    }
    return RDC_KEYS_ADDED;
}

size_t rdc_key_table_find(const rdc_key_table *t, const uint8_t *key, uint32_t *number, size_t most)
{
    const uint32_t hash = hash_of(t, key);
    size_t found = 0, at = home(t, hash);
    while (t->slot[at].number != RDC_NO_NUMBER) {
        if (t->slot[at].hash == hash) {
            if (found < most)
                number[found] = t->slot[at].number;
            found++;
        }
        at = at + 1 == t->length ? 0 : at + 1;
    }
    return found;
}

size_t rdc_key_table_missing(const rdc_key_table *t, const uint8_t *key, size_t n)
{
    size_t missing = 0;
    for (size_t i = 0; i < n; i++) {
        fetch_ahead(t, key, i, n);
        missing += !rdc_key_table_find(t, key + i * RDC_KEY_BYTES, NULL, 0);
    }
    return missing;
}

void rdc_key_table_end(rdc_key_table *t)
{
    free(t->slot);
    memset(t, 0, sizeof *t);
}
