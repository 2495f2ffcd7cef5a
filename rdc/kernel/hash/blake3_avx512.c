/* blake3_avx512.c - BLAKE3 over 16 lanes in AVX-512. */
#include "cpu.h"
#include "hash/blake3_lanes.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

/* Tuned for CPUs with AVX-512. Otherwise gcc keeps addresses in vector registers, all of which are needed. */
#define FN __attribute__((target("avx512f,avx512bw,avx512vl,tune=skylake-avx512"))) static
#define NAME(f) avx512_##f
#define LANES 16
#define LOAD_WORDS avx512_load_words
typedef uint32_t V __attribute__((vector_size(64)));

/* Transposes 16 rows of 16 words: pairs of words, pairs of pairs, then quarters of the vectors. */
FN inline void avx512_load_words(V m[16], const uint8_t *const block[16])
{
    __m512i r[16], t[16];
    for (int i = 0; i < 16; i++)
        r[i] = _mm512_loadu_si512(block[i]);
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    /* Quarter q of r[4 g + w] holds word 4 q + w of the blocks 4 g to 4 g + 3. */
    for (int w = 0; w < 4; w++) {
        const __m512i a = _mm512_shuffle_i32x4(r[w], r[w + 4], 0x44), b = _mm512_shuffle_i32x4(r[w], r[w + 4], 0xee);
        const __m512i c = _mm512_shuffle_i32x4(r[w + 8], r[w + 12], 0x44);
        const __m512i d = _mm512_shuffle_i32x4(r[w + 8], r[w + 12], 0xee);
        m[w] = (V)_mm512_shuffle_i32x4(a, c, 0x88);
        m[w + 4] = (V)_mm512_shuffle_i32x4(a, c, 0xdd);
        m[w + 8] = (V)_mm512_shuffle_i32x4(b, d, 0x88);
        m[w + 12] = (V)_mm512_shuffle_i32x4(b, d, 0xdd);
    }
}

#include "hash/blake3_body.h"

static int usable(void)
{
    return rdc_cpu_has(RDC_CPU_AVX512F | RDC_CPU_AVX512BW | RDC_CPU_AVX512VL);
}

const rdc_naming rdc_naming_avx512 = {"avx512", usable, avx512_compress};

#endif
