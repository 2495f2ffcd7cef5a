/* wide_chunks.c - the chunks of a table whose size or count does not fit a slot, in the order of keys. */
#include "count/count.h"

#include <stdlib.h>
#include <string.h>

rdc_wide *rdc_find_wide(const rdc_table *t, uint64_t key)
{
    size_t low = 0, high = t->wides;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (t->wide[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return t->wide ? t->wide + low : NULL;
}

int rdc_add_wide(rdc_table *t, uint64_t key, uint64_t size, uint64_t count)
{
    if (t->wides == t->wide_room) {
        const size_t room = t->wide_room ? 2 * t->wide_room : 16;
        rdc_wide *grown = realloc(t->wide, room * sizeof *grown);
        if (!grown)
            return -1;
        t->wide = grown;
        t->wide_room = room;
    }
    rdc_wide *at = rdc_find_wide(t, key);
    memmove(at + 1, at, (size_t)(t->wide + t->wides - at) * sizeof *at);
    *at = (rdc_wide){key, count, size};
    t->wides++;
    return 0;
}
