/* avx2.c - the block search in AVX2: 32 lanes, products by tables of half bytes. */
#include "cpu.h"
#include "search/variant.h"

#if defined(__x86_64__)

#include "search/x86.h"

#define FN __attribute__((target("avx2,bmi,pclmul"))) static inline
#define NAME(f) avx2_##f
#define VALUE avx2_value
#define V __m256i
#define W 32
#define PAYS_FROM 1024
#define PAYS_FACTOR 14
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define XOR(a, b) _mm256_xor_si256(a, b)
#define ZERO _mm256_setzero_si256()
#define HALF(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define ROWS(row, i, at) _mm256_inserti128_si256(_mm256_castsi128_si256(HALF(row[i] + (at))), HALF(row[16 + (i)] + (at)), 1)
#define LOW(a, b) _mm256_unpacklo_epi8(a, b)
#define HIGH(a, b) _mm256_unpackhi_epi8(a, b)
#define MAP avx2_map
#define MAKE(map, table) avx2_map_of(&(map), table)
#define INDEX avx2_index
#define SPLIT(v) avx2_split(v)
#define PRODUCT(map, k, index)                                                                             \
    XOR(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(HALF((map).half[k][0])), (index).low),             \
        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(HALF((map).half[k][1])), (index).high))
#define BIT_OF(v)                                                                                                  \
    _mm256_shuffle_epi8(_mm256_set1_epi64x((long long)UINT64_C(0x8040201008040201)),                               \
                        _mm256_and_si256(v, _mm256_set1_epi8(7)))
#define AND(a, b) _mm256_and_si256(a, b)
#define MIN(a, b) _mm256_min_epu8(a, b)
#define HALVED(v) _mm256_srli_epi16(v, 4)
#define NIBBLE(table, v) _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(HALF(table)), AND(v, _mm256_set1_epi8(15)))
#define POSITION(v, mask) _mm256_and_si256(_mm256_srli_epi32(v, 6), _mm256_set1_epi32((int)(mask)))
#define OR(a, b) _mm256_or_si256(a, b)
#define EIGHTHS(v) _mm256_srli_epi16(v, 3)
#define HAS(all, some) (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(AND(all, some), some))
#define SAME(v, mask, wanted)                                                                                      \
    (uint64_t)(uint32_t)_mm256_movemask_epi8(                                                                      \
        _mm256_cmpeq_epi32(AND(v, _mm256_set1_epi32((int)(mask))), _mm256_set1_epi32((int)(wanted))))
#define ANY(v) (uint64_t)(uint32_t) ~_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, ZERO))

/* Byte k of a byte's product is half[k][0][its low bits] + half[k][1][its high bits]. */
typedef struct {
    uint8_t half[8][2][16];
} avx2_map;

typedef struct {
    V low, high;
} avx2_index;

/* Row n has the products of n and 16 n; turned, it is the tables. Inlined for each map, it takes compilers seconds. */
__attribute__((noinline)) static void avx2_map_of(avx2_map *map, const uint64_t table[256])
{
    __m128i a[16], b[16];
    for (int n = 0; n < 16; n++)
        a[n] = _mm_set_epi64x((long long)table[16 * n], (long long)table[n]);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 8; i++)
            b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]), b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
        for (int i = 0; i < 8; i++)
            a[2 * i] = _mm_unpacklo_epi8(b[i], b[i + 8]), a[2 * i + 1] = _mm_unpackhi_epi8(b[i], b[i + 8]);
    }
    for (int k = 0; k < 8; k++) {
        _mm_storeu_si128((__m128i *)(void *)map->half[k][0], a[k]);
        _mm_storeu_si128((__m128i *)(void *)map->half[k][1], a[8 + k]);
    }
}

FN avx2_index avx2_split(V v)
{
    const V nibble = _mm256_set1_epi8(15);
    return (avx2_index){_mm256_and_si256(v, nibble), _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble)};
}

static uint64_t avx2_value(const rdc_block_key *key, const uint8_t *data, size_t length)
{
    return rdc_value_x86(key, data, length);
}

#include "search/vector_body.h"

static int usable(void)
{
    return rdc_cpu_has(RDC_CPU_AVX2 | RDC_CPU_PCLMUL | RDC_CPU_BMI);
}

const rdc_block_variant rdc_blocks_avx2 = {"avx2", usable, 128, avx2_value, avx2_scan, avx2_lows, avx2_find};

#endif
