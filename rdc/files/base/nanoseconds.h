/* nanoseconds.h - times as 64-bit nanoseconds. */
#ifndef RDC_NANOSECONDS_H
#define RDC_NANOSECONDS_H

#include <stdint.h>
#include <time.h>

/* Sets `*result` to nanoseconds since the epoch, clamped to 64 bits, which end in the years 1677 and 2262. Returns
   whether it had to be clamped. */
static inline int rdc_clamped_nanoseconds(struct timespec time, int64_t *result)
{
    int64_t seconds = time.tv_sec, rest = time.tv_nsec;
    if (seconds < 0) {
        /* Both parts of one sign: then the product overflows only where the sum does. */
        seconds++;
        rest -= 1000000000;
    }
    if (!__builtin_mul_overflow(seconds, INT64_C(1000000000), result) && !__builtin_add_overflow(*result, rest, result))
        return 0;
    *result = rest < 0 ? INT64_MIN : INT64_MAX;
    return 1;
}

static inline int64_t rdc_nanoseconds(struct timespec time)
{
    int64_t result;
    rdc_clamped_nanoseconds(time, &result);
    return result;
}

#endif
