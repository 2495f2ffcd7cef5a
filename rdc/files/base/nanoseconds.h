/* nanoseconds.h - packed times, as rdc/model/preserved.py defines them: 64-bit nanoseconds, and stamps for distant times. */
#ifndef RDC_NANOSECONDS_H
#define RDC_NANOSECONDS_H

#include <stdint.h>
#include <time.h>

#define RDC_FIRST_SECOND INT64_C(-9214560000) /* 1678-01-01: FIRST_NS of rdc/model/preserved.py, a test compares */
#define RDC_END_SECOND INT64_C(9214646400)    /* 2262-01-01: END_NS */

/* Sets `*result` to nanoseconds since the epoch; to INT64_MIN or INT64_MAX, which are no stamps, for a distant time.
   Returns whether it is distant. */
static inline int rdc_is_distant(struct timespec time, int64_t *result)
{
    if (time.tv_sec < RDC_FIRST_SECOND || time.tv_sec >= RDC_END_SECOND) {
        *result = time.tv_sec < 0 ? INT64_MIN : INT64_MAX;
        return 1;
    }
    *result = (int64_t)time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
    return 0;
}

static inline int64_t rdc_nanoseconds(struct timespec time)
{
    int64_t result;
    rdc_is_distant(time, &result);
    return result;
}

/* The inverse of rdc_is_distant. Returns 0 for a stamp, whose time only Python knows. */
static inline int rdc_time_of(int64_t packed, struct timespec *time)
{
    if (packed < RDC_FIRST_SECOND * INT64_C(1000000000) || packed >= RDC_END_SECOND * INT64_C(1000000000))
        return 0;
    time->tv_sec = packed / 1000000000;
    time->tv_nsec = packed % 1000000000;
    if (time->tv_nsec < 0) {
        time->tv_sec--;
        time->tv_nsec += 1000000000;
    }
    return 1;
}

#endif
