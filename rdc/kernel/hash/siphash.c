/* siphash.c - SipHash-2-4 of 32 bytes: keyed short names of digests. */
#include "hash/siphash.h"

#include "hash/sip.h"

void rdc_short_references(const uint8_t *key, const uint8_t *records, size_t count, size_t stride, unsigned width,
                          uint8_t *out)
{
    const rdc_sip keyed = rdc_sip_start(key);

    for (size_t i = 0; i < count; i++) {
        const uint8_t *record = records + i * stride;
        rdc_sip state = keyed;
        for (int word = 0; word < 4; word++)
            rdc_sip_word(&state, rdc_load64(record + 8 * word));
        uint64_t name = rdc_sip_end(&state, 0, 32);
        for (unsigned j = 0; j < width; j++)
            *out++ = (uint8_t)(name >> 8 * j);
    }
}
