/* platform.h - loads and stores of fixed byte order, and which CPU extensions may be used. */
#ifndef RDC_PLATFORM_H
#define RDC_PLATFORM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Tests define RDC_ASSUME_OLD to run variants without the optional CPU extensions. */
#ifdef RDC_ASSUME_OLD
#define RDC_NEWER 0
#else
#define RDC_NEWER 1
#endif

/* Eight bytes, little-endian. */
static inline uint64_t rdc_load64(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

/* Four bytes, little-endian. */
static inline uint32_t rdc_load32(const uint8_t *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap32(x);
#endif
    return x;
}

static inline void rdc_store32(uint8_t *p, uint32_t x)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap32(x);
#endif
    memcpy(p, &x, sizeof x);
}

/* Returns the highest bits of the bytes of x that are below limit <= 255. */
static inline uint64_t rdc_bytes_below(uint64_t x, unsigned limit)
{
    const uint64_t high = UINT64_C(0x8080808080808080), s = UINT64_C(0x0101010101010101) * limit;
    /* The highest bit of each byte: whether its other bits are at least those of limit. Bytes do not
     * borrow from each other. */
    const uint64_t at_least = (x | high) - (s & ~high);
    return ((~x & s) | (~(x ^ s) & ~at_least)) & high;
}

static inline void rdc_store64(uint8_t *p, uint64_t x)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    memcpy(p, &x, sizeof x);
}

#endif
