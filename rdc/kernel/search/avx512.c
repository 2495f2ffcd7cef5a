/* avx512.c - the block search in AVX-512 with GFNI: 64 lanes, products by bit matrices.
 *
 * There are two variants. Gathers take half the time of scalar loads on Intel's CPUs since Sapphire
 * Rapids. Older CPUs fill the lanes one by one since the gather data sampling leak, and gathers take much
 * longer there; on AMD's CPUs they take longer too. */
#include "cpu.h"
#include "search/variant.h"

#if defined(__x86_64__)

#include <cpuid.h>

#include "search/x86.h"

#define FN __attribute__((target("avx512f,avx512bw,gfni,bmi,pclmul"))) static inline
#define NAME(f) avx512_##f
#define VALUE avx512_value
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
#define POSITION(v, mask) _mm512_and_si512(_mm512_srli_epi32(v, 6), _mm512_set1_epi32((int)(mask)))
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

#include "search/vector_body.h"

static int usable(void)
{
    return RDC_NEWER && rdc_cpu_has(RDC_CPU_AVX512F | RDC_CPU_AVX512BW | RDC_CPU_GFNI | RDC_CPU_PCLMUL | RDC_CPU_BMI);
}

const rdc_block_variant rdc_blocks_avx512 = {"avx512", usable, 128, avx512_value, avx512_scan, avx512_lows, avx512_find};

#undef FN
#undef NAME
#define FN __attribute__((target("avx512f,avx512bw,avx512vbmi2,gfni,bmi,pclmul,popcnt"))) static inline
#define NAME(f) gathering_##f
#define GATHER(bits, position) gathered(bits, position)
#define LIST(mask, first, to) listed(mask, first, to)
#undef LOOK_AGAIN
#define LOOK_AGAIN(batch, filter, number, count) looked_at_again((batch)->low[0], filter, number, count)

FN V gathered(const uint8_t *bits, const V position[4])
{
    V byte[4];
    for (int m = 0; m < 4; m++)
        byte[m] = AND(_mm512_i32gather_epi32(position[m], (const void *)bits, 1), _mm512_set1_epi32(255));
    return _mm512_packus_epi16(_mm512_packus_epi32(byte[0], byte[1]), _mm512_packus_epi32(byte[2], byte[3]));
}

/* Writes 64 numbers; the first are those of the mask's lanes. */
FN size_t listed(uint64_t mask, int first, uint16_t *to)
{
    static const uint8_t order[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                      16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    const V low = _mm512_add_epi16(_mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)order)),
                                   _mm512_set1_epi16((short)first));
    const V high = _mm512_add_epi16(low, _mm512_set1_epi16(32));
    const size_t count = (size_t)__builtin_popcountll(mask & UINT32_MAX);
    STORE(to, _mm512_maskz_compress_epi16((__mmask32)mask, low));
    STORE(to + count, _mm512_maskz_compress_epi16((__mmask32)(mask >> 32), high));
    return (size_t)__builtin_popcountll(mask);
}

/* Sixteen at a time, written no further than they were read. */
FN size_t looked_at_again(const uint32_t *low, const block_filter *filter, uint16_t *number, size_t count)
{
    size_t left = 0;
    for (size_t j = 0; j < count; j += 16) {
        const __mmask16 there = (__mmask16)(count - j < 16 ? (1U << (count - j)) - 1 : 0xffff);
        const V now = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(number + j)));
        /* Lane 16 g + 4 m + e is at word 16 m + 4 g + e. */
        const V e = AND(now, _mm512_set1_epi32(~60)), m = AND(now, _mm512_set1_epi32(12)),
                g = AND(now, _mm512_set1_epi32(48));
        const V at = OR(e, OR(_mm512_slli_epi32(m, 2), _mm512_srli_epi32(g, 2)));
        const V word = _mm512_mask_i32gather_epi32(ZERO, there, at, (const void *)low, 4);
        const V mixed = _mm512_mullo_epi32(AND(word, _mm512_set1_epi32((int)filter->low_mask)),
                                           _mm512_set1_epi32((int)0x9E3779B1));
        const V found = _mm512_i32gather_epi32(_mm512_srl_epi32(mixed, _mm_cvtsi32_si128((int)filter->shift)),
                                               (const void *)filter->again, 4);
        const __mmask16 passed =
            _mm512_mask_test_epi32_mask(there, _mm512_rorv_epi32(found, word), _mm512_set1_epi32(1));
        _mm256_storeu_si256((void *)(number + left), _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(passed, now)));
        left += (size_t)__builtin_popcount(passed);
    }
    return left;
}

#include "search/vector_body.h"

/* Half-precision arithmetic came with the quick gathers; compilers learned its name late. */
static int gathers(void)
{
    unsigned a, b, c, d;
    return usable() && rdc_cpu_has(RDC_CPU_AVX512VBMI2) && __get_cpuid_count(7, 0, &a, &b, &c, &d) && d >> 23 & 1;
}

const rdc_block_variant rdc_blocks_gathering = {"avx512",       gathers,        12,             avx512_value,
                                             gathering_scan, gathering_lows, gathering_find};

#endif
