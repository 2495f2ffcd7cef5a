/* file_clock.h - waits for the clock that stamps files; rdc/files/base/metadata.py has the definition and the reasons. */
#ifndef RDC_FILE_CLOCK_H
#define RDC_FILE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "base/nanoseconds.h"

/* Returns once a file that is changed gets another ctime than this one: the nanoseconds that took, most often 0. */
static inline uint64_t rdc_outlast(struct timespec changed)
{
    const int64_t second = 1000000000, future = 2 * second;
    const struct timespec pause = {0, 1000000};
    struct timespec clock;
    int64_t end = rdc_nanoseconds(changed), now, begun = 0;

    if (end > INT64_MAX - second)
        return 0;
    if (!changed.tv_nsec)
        end += second - 1;
    while (!clock_gettime(CLOCK_REALTIME_COARSE, &clock)) {
        now = rdc_nanoseconds(clock);
        if (!begun)
            begun = now;
        if (now > end || end - now > future)
            return now > begun ? (uint64_t)(now - begun) : 0;
        nanosleep(&pause, NULL);
    }
    return 0;
}

#endif
