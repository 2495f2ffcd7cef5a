/* scalar.c - text with baseline instructions of the architecture: 8 bytes of a word at a time.
 *
 * Sums of 7 bits and a constant do not reach the next byte, and carry into bit 7 what is at least a bound. */
#include "shingles/variant.h"

#define FN static
#define LOWEST(x) __builtin_ctzll((x) | UINT64_C(1) << 63)
#define NAME(f) plain_##f

#include "shingles/word_body.h"

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Bit 7 of each byte from `first` to `last`, both ASCII; `low` has bit 7 of no byte. */
static inline uint64_t between(uint64_t low, unsigned first, unsigned last)
{
    return (low + EACH(0x80u - first)) & ~(low + EACH(0x7fu - last)) & EACH(0x80u);
}

/* The bits 7 of 8 bytes, side by side. */
static inline uint64_t gathered(uint64_t bits)
{
    return (bits >> 7) * UINT64_C(0x0102040810204080) >> 56;
}

static void classify(const uint8_t *text, size_t blocks, uint8_t *lower, rdc_text_masks *masks)
{
    for (; blocks; blocks--, masks++) {
        uint64_t words = 0, high = 0;
        for (int at = 0; at < RDC_TEXT_BLOCK; at += 8, text += 8, lower += 8) {
            const uint64_t bytes = rdc_load64(text), low = bytes & EACH(0x7fu), above = bytes & EACH(0x80u);
            const uint64_t letter = between(low | EACH(0x20u), 'a', 'z') & ~above;
            const uint64_t word = letter | ((between(low, '0', '9') | between(low, '_', '_')) & ~above);
            rdc_store64(lower, bytes | letter >> 2);
            words |= gathered(word) << at;
            high |= gathered(above) << at;
        }
        masks->words = words;
        masks->high = high;
    }
}

static int usable(void)
{
    return 1;
}

const rdc_shingling rdc_shingling_plain = {"c", usable, classify, plain_edges, plain_hash_words, plain_combine};
