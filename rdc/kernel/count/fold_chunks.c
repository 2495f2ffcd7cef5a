/* fold_chunks.c - coarser chunks from finer ones: groups of neighbours, cut by winnowing.
 *
 * The rule is that of signature levels (rdc/signature/FORMAT.md) with chunks instead of records. While
 * more than max items are left, the next group ends after the rightmost item in (min, max] with the
 * smallest key; the rest is the last group. Windows of six items do not pay for a ring of minima: every
 * item is examined max / (min + 1) times. */
#include "count/count.h"

#include <string.h>

#include "hash/sip.h"

/* Key of the groups' names. It is the same everywhere, because part files of several machines are merged. */
static const uint8_t group_key[16] = {'r', 'd', 'c', ' ', 's', 'u', 'r', 'v', 'e', 'y', ' ', 'g', 'r', 'o', 'u', 'p'};

static void emit(rdc_folder *f, size_t count, uint64_t *out_key, uint64_t *out_size)
{
    rdc_sip state = rdc_sip_start(group_key);
    uint64_t size = 0;
    for (size_t i = 0; i < count; i++) {
        rdc_sip_word(&state, f->key[i]);
        size += f->size[i];
    }
    *out_key = rdc_sip_end(&state, 0, 8 * count);
    *out_size = size;
    f->count -= count;
    memmove(f->key, f->key + count, f->count * sizeof *f->key);
    memmove(f->size, f->size + count, f->count * sizeof *f->size);
}

size_t rdc_folder_feed(rdc_folder *f, const uint64_t *key, const uint64_t *size, size_t count, uint64_t *out_key,
                       uint64_t *out_size)
{
    size_t groups = 0;
    for (size_t i = 0; i < count; i++) {
        if (f->count == f->max) {
            size_t best = f->min;
            for (size_t j = f->min + 1; j < f->max; j++)
                if (f->key[j] <= f->key[best])
                    best = j;
            emit(f, best + 1, out_key + groups, out_size + groups);
            groups++;
        }
        f->key[f->count] = key[i];
        f->size[f->count++] = size[i];
    }
    return groups;
}

size_t rdc_folder_finish(rdc_folder *f, uint64_t *out_key, uint64_t *out_size)
{
    if (!f->count)
        return 0;
    emit(f, f->count, out_key, out_size);
    return 1;
}

/* SplitMix64's finisher is one-to-one. Equal keys are chosen alike, and different salts choose
 * independently. */
static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

size_t rdc_select_chunks(const uint64_t *key, size_t count, uint64_t salt, unsigned shift, uint64_t *index)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (!shift || !(mixed(key[i] + salt) >> (64 - shift)))
            index[found++] = i;
    return found;
}
