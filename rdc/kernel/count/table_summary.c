/* table_summary.c - statistics of the chunks in a table. */
#include "count/count.h"

#include <string.h>

static unsigned bits(uint64_t number)
{
    return number ? 64 - (unsigned)__builtin_clzll(number) : 0;
}

void rdc_table_summarize(const rdc_table *t, rdc_table_summary *s)
{
    size_t position = 0;
    rdc_wide chunk;

    memset(s, 0, sizeof *s);
    while (rdc_table_next(t, &position, &chunk)) {
        s->unique_chunks++;
        s->unique_bytes += chunk.size;
        s->unique_squares += (double)chunk.size * (double)chunk.size;
        if (chunk.count > 1 && chunk.size) {
            s->groups++;
            s->group_bytes += (chunk.count - 1) * chunk.size;
        }
        s->size_chunks[bits(chunk.size)]++;
        s->size_bytes[bits(chunk.size)] += chunk.size;
        s->copy_chunks[bits(chunk.count)]++;
        s->copy_bytes[bits(chunk.count)] += chunk.size;
        if (chunk.size > s->largest_size)
            s->largest_size = chunk.size;
        if (chunk.count > s->largest_count)
            s->largest_count = chunk.count;
    }
}
