/* siphash.c - SipHash-2-4 of 32 bytes (Aumasson, Bernstein 2012): keyed short names of digests. */
#include "siphash.h"

#include "form.h"

static uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void rounds(uint64_t v[4], int count)
{
    while (count-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

void rdc_short_references(const uint8_t *key, const uint8_t *records, size_t count, size_t stride, unsigned width,
                          uint8_t *out)
{
    const uint64_t k0 = rdc_load64(key), k1 = rdc_load64(key + 8);

    for (size_t i = 0; i < count; i++) {
        const uint8_t *record = records + i * stride;
        uint64_t v[4] = {k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
                         k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)};
        for (int word = 0; word < 5; word++) {
            /* The last word is the message's length in its highest byte. */
            uint64_t m = word < 4 ? rdc_load64(record + 8 * word) : UINT64_C(32) << 56;
            v[3] ^= m;
            rounds(v, 2);
            v[0] ^= m;
        }
        v[2] ^= 0xff;
        rounds(v, 4);
        uint64_t name = v[0] ^ v[1] ^ v[2] ^ v[3];
        for (unsigned j = 0; j < width; j++)
            *out++ = (uint8_t)(name >> 8 * j);
    }
}
