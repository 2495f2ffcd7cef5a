/* neon.c - text in NEON: 16 bytes at a time. */
#include "shingles/variant.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#define FN static
#define LOWEST(x) __builtin_ctzll((x) | UINT64_C(1) << 63)
#define NAME(f) neon_##f

#include "shingles/word_body.h"

/* Bit i is of byte i of the four vectors. */
static inline uint64_t mask_of(const uint8x16_t bytes[4])
{
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t bit = vld1q_u8(bits);
    const uint8x16_t low = vpaddq_u8(vandq_u8(bytes[0], bit), vandq_u8(bytes[1], bit));
    const uint8x16_t high = vpaddq_u8(vandq_u8(bytes[2], bit), vandq_u8(bytes[3], bit));
    const uint8x16_t all = vpaddq_u8(low, high);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}

static void classify(const uint8_t *text, size_t blocks, uint8_t *lower, rdc_text_masks *masks)
{
    const uint8x16_t bit = vdupq_n_u8(0x20);
    for (; blocks; blocks--, masks++) {
        uint8x16_t word[4], high[4];
        for (int part = 0; part < 4; part++, text += 16, lower += 16) {
            const uint8x16_t bytes = vld1q_u8(text);
            const uint8x16_t letter = vcleq_u8(vsubq_u8(vorrq_u8(bytes, bit), vdupq_n_u8('a')), vdupq_n_u8('z' - 'a'));
            const uint8x16_t digit = vcleq_u8(vsubq_u8(bytes, vdupq_n_u8('0')), vdupq_n_u8(9));
            word[part] = vorrq_u8(vorrq_u8(letter, digit), vceqq_u8(bytes, vdupq_n_u8('_')));
            high[part] = vcgeq_u8(bytes, vdupq_n_u8(0x80));
            vst1q_u8(lower, vorrq_u8(bytes, vandq_u8(letter, bit)));
        }
        masks->words = mask_of(word);
        masks->high = mask_of(high);
    }
}

static int usable(void)
{
    return 1;
}

const rdc_shingling rdc_shingling_neon = {"neon", usable, classify, neon_edges, neon_hash_words, neon_combine};

#endif
