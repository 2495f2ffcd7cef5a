/* key_table.h - finds the numbers of keys: 8 bytes a slot, for indices of many millions of keys. */
#ifndef RDC_KEY_TABLE_H
#define RDC_KEY_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define RDC_KEY_BYTES 16
#define RDC_NO_NUMBER UINT32_MAX

/* One key: 32 bits of its hash, and its number. The number of an empty slot is RDC_NO_NUMBER. */
typedef struct {
    uint32_t hash, number;
} rdc_key_slot;

typedef struct {
    rdc_key_slot *slot;
    size_t length, used;
    uint64_t seed[2]; /* drawn by the caller, so that nobody can choose keys that meet */
} rdc_key_table;

typedef enum { RDC_KEYS_ADDED, RDC_KEYS_NO_MEMORY, RDC_KEYS_MEET } rdc_keys_verdict;

/* An empty table with room for `rows` keys. Returns -1 without memory. */
int rdc_key_table_start(rdc_key_table *t, size_t rows, const uint64_t seed[2]);

/* Adds n keys with the numbers `first`, first + 1 and so on, below RDC_NO_NUMBER. A key may be added again with another
 * number. RDC_KEYS_MEET: too many keys are equal; then some are missing. */
rdc_keys_verdict rdc_key_table_add(rdc_key_table *t, const uint8_t *key, size_t n, uint32_t first);

/* Writes the numbers of at most `most` rows that may have this key, in no order, and returns how many there are. A row
 * with another key is among them once in 2^32 / used times. */
size_t rdc_key_table_find(const rdc_key_table *t, const uint8_t *key, uint32_t *number, size_t most);

/* Returns how many of n keys no row has. One that another key's hash stands for counts as there. */
size_t rdc_key_table_missing(const rdc_key_table *t, const uint8_t *key, size_t n);

void rdc_key_table_end(rdc_key_table *t);

#endif
