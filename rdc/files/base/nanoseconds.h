/* nanoseconds.h - times as 64-bit nanoseconds. */
#ifndef RDC_NANOSECONDS_H
#define RDC_NANOSECONDS_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since the epoch; 64 bits of them end in the year 2262, and later (or earlier) times are clamped. */
static inline int64_t rdc_nanoseconds(struct timespec time)
{
    int64_t seconds = time.tv_sec, rest = time.tv_nsec, result;
    if (seconds < 0) {
        /* Both parts of one sign: then the product overflows only where the sum does. */
        seconds++;
        rest -= 1000000000;
    }
    if (__builtin_mul_overflow(seconds, INT64_C(1000000000), &result) || __builtin_add_overflow(result, rest, &result))
        return rest < 0 ? INT64_MIN : INT64_MAX;
    return result;
}

#endif
