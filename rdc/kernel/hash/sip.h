/* sip.h - SipHash-2-4 (Aumasson, Bernstein 2012), a word at a time. */
#ifndef RDC_SIP_H
#define RDC_SIP_H

#include <stdint.h>

#include "platform.h"

typedef struct {
    uint64_t v[4];
} rdc_sip;

static inline uint64_t rdc_rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static inline void rdc_sip_rounds(rdc_sip *s, int count)
{
    uint64_t *v = s->v;
    while (count-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rdc_rotate(v[1], 13) ^ v[0];
        v[3] = rdc_rotate(v[3], 16) ^ v[2];
        v[0] = rdc_rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rdc_rotate(v[1], 17) ^ v[2];
        v[3] = rdc_rotate(v[3], 21) ^ v[0];
        v[2] = rdc_rotate(v[2], 32);
    }
}

/* The key has 16 bytes. */
static inline rdc_sip rdc_sip_start(const uint8_t *key)
{
    const uint64_t k0 = rdc_load64(key), k1 = rdc_load64(key + 8);
    return (rdc_sip){{k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
                      k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)}};
}

/* Takes 8 bytes of the message as a little-endian number. */
static inline void rdc_sip_word(rdc_sip *s, uint64_t word)
{
    s->v[3] ^= word;
    rdc_sip_rounds(s, 2);
    s->v[0] ^= word;
}

/* Takes the last word, length % 8 bytes of the message, and gives the hash. */
static inline uint64_t rdc_sip_end(rdc_sip *s, uint64_t word, uint64_t length)
{
    rdc_sip_word(s, word | length << 56);
    s->v[2] ^= 0xff;
    rdc_sip_rounds(s, 4);
    return s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
}

#endif
