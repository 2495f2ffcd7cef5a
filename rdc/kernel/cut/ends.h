/* ends.h - a growing list of chunk ends. */
#ifndef RDC_ENDS_H
#define RDC_ENDS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct rdc_ends {
    uint64_t *end;
    size_t count, room;
} rdc_ends;

static inline int rdc_ends_append(rdc_ends *e, uint64_t end)
{
    if (e->count == e->room) {
        size_t room = e->room ? 2 * e->room : 64;
        uint64_t *grown = realloc(e->end, room * sizeof *grown);
        if (!grown)
            return -1;
        e->end = grown;
        e->room = room;
    }
    e->end[e->count++] = end;
    return 0;
}

#endif
