/* blake3_avx2.c - BLAKE3 over 8 lanes in AVX2. */
#include "cpu.h"
#include "hash/blake3_lanes.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define FN __attribute__((target("avx2"))) static
#define NAME(f) avx2_##f
#define LANES 8
#define LOAD_WORDS avx2_load_words
typedef uint32_t V __attribute__((vector_size(32)));

/* Transposes 8 rows of 16 words, one half of the columns at a time. */
FN inline void avx2_load_words(V m[16], const uint8_t *const block[8])
{
    for (int half = 0; half < 2; half++) {
        __m256i r[8], t[8];
        for (int i = 0; i < 8; i++)
            r[i] = _mm256_loadu_si256((const __m256i *)(const void *)(block[i] + 32 * half));
        for (int i = 0; i < 8; i += 2) {
            t[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
            t[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
        }
        for (int i = 0; i < 8; i += 4) {
            r[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
            r[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
            r[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
            r[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
        }
        for (int w = 0; w < 4; w++) {
            m[8 * half + w] = (V)_mm256_permute2x128_si256(r[w], r[w + 4], 0x20);
            m[8 * half + w + 4] = (V)_mm256_permute2x128_si256(r[w], r[w + 4], 0x31);
        }
    }
}

#include "hash/blake3_body.h"

static int usable(void)
{
    return rdc_cpu_has(RDC_CPU_AVX2);
}

const rdc_naming rdc_naming_avx2 = {"avx2", usable, avx2_compress};

#endif
