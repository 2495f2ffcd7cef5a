/* minima.h - the ring of candidate minima: positions and ranks both increase from front to back. */
#ifndef RDC_MINIMA_H
#define RDC_MINIMA_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct rdc_candidate {
    uint64_t position;
    uint64_t low;
    uint64_t lead;
} rdc_candidate;

/* entry[front .. back) are the suffix minima of the ranks pushed: a push drops from the back what is larger OR
 * EQUAL (rightmost tie). Every entry comes and goes once, so the work is linear whatever the ranks. On random ranks
 * the ring is as long as the logarithm of the window; an adversary who sorts ranks can make it as long as the
 * window has positions, 24 bytes each. */
typedef struct rdc_minima {
    rdc_candidate *entry;
    size_t front, back, room;
} rdc_minima;

/* Makes room for `more` entries; returns -1 without memory. Moving the entries down pays for itself: at least as many
 * were popped from the front since the last move. */
static inline int rdc_minima_reserve(rdc_minima *m, size_t more)
{
    while (m->room - m->back < more) {
        if (m->front >= m->back - m->front && m->front > 0) {
            memmove(m->entry, m->entry + m->front, (m->back - m->front) * sizeof *m->entry);
            m->back -= m->front;
            m->front = 0;
            continue;
        }
        size_t room = m->room ? 2 * m->room : 64;
        rdc_candidate *entry = realloc(m->entry, room * sizeof *entry);
        if (!entry)
            return -1;
        m->entry = entry;
        m->room = room;
    }
    return 0;
}

/* Whether a is not below the rank (lead, low). */
static inline int rdc_candidate_not_below(const rdc_candidate *a, uint64_t lead, uint64_t low)
{
    return a->lead > lead || (a->lead == lead && a->low >= low);
}

/* Drops from the back what is larger than or equal to a rank. Where rings are long, many at a time are. */
static inline void rdc_minima_drop(rdc_minima *m, uint64_t lead, uint64_t low)
{
    const rdc_candidate *const first = m->entry + m->front, *last = m->entry + m->back;

    while (last - first >= 8 && rdc_candidate_not_below(last - 8, lead, low))
        last -= 8;
    while (last > first && rdc_candidate_not_below(last - 1, lead, low))
        last--;
    m->back = (size_t)(last - m->entry);
    if (last == first)
        m->front = m->back = 0;
}

static inline int rdc_minima_push(rdc_minima *m, uint64_t position, uint64_t lead, uint64_t low)
{
    if (m->back > m->front)
        rdc_minima_drop(m, lead, low);
    if (rdc_minima_reserve(m, 1))
        return -1;
    m->entry[m->back++] = (rdc_candidate){position, low, lead};
    return 0;
}

/* Forgets the entries up to `position`; returns the front of the rest, or NULL. */
static inline const rdc_candidate *rdc_minima_after(rdc_minima *m, uint64_t position)
{
    while (m->back - m->front >= 8 && m->entry[m->front + 7].position <= position)
        m->front += 8;
    while (m->front < m->back && m->entry[m->front].position <= position)
        m->front++;
    return m->front < m->back ? &m->entry[m->front] : NULL;
}

#endif
