/* block_avx512.c - the block search in AVX-512 with GFNI: 64 lanes, products by bit matrices. */
#include "block_form.h"

#if defined(__x86_64__)

#include "block_x86.h"

#define FN __attribute__((target("avx512f,avx512bw,gfni,bmi,pclmul"))) static inline
#define NAME(f) avx512_##f
#define V __m512i
#define W 64
#define PAYS_FROM 1024
#define PAYS_FACTOR 5
#define LOAD(p) _mm512_loadu_si512((const void *)(p))
#define STORE(p, v) _mm512_storeu_si512((void *)(p), v)
#define XOR(a, b) _mm512_xor_si512(a, b)
#define ZERO _mm512_setzero_si512()
#define QUARTER(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define ROWS(row, i, at)                                                                                           \
    _mm512_inserti32x4(                                                                                            \
        _mm512_inserti32x4(_mm512_inserti32x4(_mm512_castsi128_si512(QUARTER(row[i] + (at))),                      \
                                              QUARTER(row[16 + (i)] + (at)), 1),                                   \
                           QUARTER(row[32 + (i)] + (at)), 2),                                                      \
        QUARTER(row[48 + (i)] + (at)), 3)
#define LOW(a, b) _mm512_unpacklo_epi8(a, b)
#define HIGH(a, b) _mm512_unpackhi_epi8(a, b)
#define MAP avx512_map
#define MAKE(map, table) avx512_map_of(&(map), table)
#define INDEX V
#define SPLIT(v) (v)
#define PRODUCT(map, k, index) _mm512_gf2p8affine_epi64_epi8(index, _mm512_set1_epi64((long long)(map).matrix[k]), 0)
#define BIT_OF(v)                                                                                                  \
    _mm512_shuffle_epi8(_mm512_set1_epi64((long long)UINT64_C(0x8040201008040201)),                                \
                        _mm512_and_si512(v, _mm512_set1_epi8(7)))
#define AND(a, b) _mm512_and_si512(a, b)
#define MIN(a, b) _mm512_min_epu8(a, b)
#define HALVED(v) _mm512_srli_epi16(v, 4)
#define NIBBLE(table, v) _mm512_shuffle_epi8(_mm512_broadcast_i32x4(QUARTER(table)), AND(v, _mm512_set1_epi8(15)))
#define PLACE(v, mask) _mm512_and_si512(_mm512_srli_epi32(v, 6), _mm512_set1_epi32((int)(mask)))
#define OR(a, b) _mm512_or_si512(a, b)
#define EIGHTHS(v) _mm512_srli_epi16(v, 3)
#define HAS(all, some) (uint64_t) _mm512_cmpeq_epi8_mask(AND(all, some), some)
#define SAME(v, mask, wanted)                                                                                      \
    (uint64_t) _mm512_movepi8_mask(_mm512_maskz_set1_epi32(                                                        \
        _mm512_cmpeq_epi32_mask(AND(v, _mm512_set1_epi32((int)(mask))), _mm512_set1_epi32((int)(wanted))), -1))
#define ANY(v) (uint64_t) _mm512_test_epi8_mask(v, v)

/* A product's byte k: the matrix's byte 7 - i says which bits of the factor add up to bit i. */
typedef struct {
    uint64_t matrix[8];
} avx512_map;

/* Bit i of the product of bit j is to be bit j of byte 7 - i. The bytes of the products of bits 7 to 0, as a matrix, times
 * the bytes with one bit each turn them. */
FN void avx512_map_of(avx512_map *map, const uint64_t table[256])
{
    uint8_t byte[8][8];
    for (int k = 0; k < 8; k++)
        for (int j = 0; j < 8; j++)
            byte[k][7 - j] = (uint8_t)(table[1 << j] >> 8 * k);
    STORE(map->matrix, _mm512_gf2p8affine_epi64_epi8(_mm512_set1_epi64(0x0102040810204080), LOAD(byte), 0));
}

static uint64_t avx512_value(const rdc_block_key *key, const uint8_t *data, size_t length)
{
    return rdc_value_x86(key, data, length);
}

#include "block_body.h"

static int usable(void)
{
    return RDC_NEWER && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("gfni") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("bmi");
}

const rdc_block_form rdc_blocks_avx512 = {"avx512", usable, avx512_value, avx512_scan, avx512_lows, avx512_find};

#endif
