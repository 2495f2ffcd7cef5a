/* word_differences.c - replaces rows of number tables by differences, and back.
 * tests/reference/words.py defines them. */
#include "columns/columns.h"

#include "platform.h"

#define WORD 4

/* The first number with a predecessor, and how many have one. */
static size_t numbers(size_t size, uint64_t offset, size_t stride, size_t *first)
{
    const size_t start = (size_t)(-offset % WORD);
    if (stride > size || size - stride < start + WORD)
        return 0;
    *first = start + stride;
    return (size - *first) / WORD;
}

void rdc_difference_words(uint8_t *part, size_t size, uint64_t offset, size_t stride)
{
    size_t first;
    /* From the last number on: each predecessor is still unchanged. */
    for (size_t left = numbers(size, offset, stride, &first); left--;) {
        uint8_t *at = part + first + WORD * left;
        rdc_store32(at, rdc_load32(at) - rdc_load32(at - stride));
    }
}

void rdc_sum_words(uint8_t *part, size_t size, uint64_t offset, size_t stride)
{
    size_t first;
    const size_t count = numbers(size, offset, stride, &first);
    for (size_t i = 0; i < count; i++) {
        uint8_t *at = part + first + WORD * i;
        rdc_store32(at, rdc_load32(at) + rdc_load32(at - stride));
        /* One at a time: in vectors, a sum would wait for stores of another width where rows are short. */
        __asm__ volatile("" ::: "memory");
    }
}

size_t rdc_nonzero_bytes(const uint8_t *bytes, size_t size)
{
    enum { LANES = 64 };
    size_t count = 0, at = 0;
    /* Each lane counts separately, no more than a byte holds. Compilers turn this into a few vector
     * instructions. */
    while (size - at >= LANES) {
        uint8_t lane[LANES] = {0};
        const size_t left = (size - at) / LANES, rounds = left < UINT8_MAX ? left : UINT8_MAX;
        for (size_t i = 0; i < rounds; i++, at += LANES)
            for (size_t j = 0; j < LANES; j++)
                lane[j] = (uint8_t)(lane[j] + (bytes[at + j] != 0));
        for (size_t j = 0; j < LANES; j++)
            count += lane[j];
    }
    for (; at < size; at++)
        count += bytes[at] != 0;
    return count;
}
