/* neon.c - the block search in NEON: 16 lanes, products by tables of half bytes. */
#include "search/variant.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#define FN static inline
#define NAME(f) neon_##f
#define VALUE neon_value
#define V uint8x16_t
#define W 16
#define PAYS_FROM 1024
#define PAYS_FACTOR 14
#define LOAD(p) vld1q_u8((const uint8_t *)(p))
#define STORE(p, v) vst1q_u8((uint8_t *)(p), v)
#define XOR(a, b) veorq_u8(a, b)
#define AND(a, b) vandq_u8(a, b)
#define MIN(a, b) vminq_u8(a, b)
#define ZERO vdupq_n_u8(0)
#define ROWS(row, i, at) LOAD(row[i] + (at))
#define LOW(a, b) vzip1q_u8(a, b)
#define HIGH(a, b) vzip2q_u8(a, b)
#define MAP neon_map
#define MAKE(map, table) neon_map_of(&(map), table)
#define INDEX neon_index
#define SPLIT(v) ((neon_index){AND(v, vdupq_n_u8(15)), vshrq_n_u8(v, 4)})
#define PRODUCT(map, k, index) \
    XOR(vqtbl1q_u8(LOAD((map).half[k][0]), (index).low), vqtbl1q_u8(LOAD((map).half[k][1]), (index).high))
#define HALVED(v) vshrq_n_u8(v, 4)
#define NIBBLE(table, v) vqtbl1q_u8(LOAD(table), AND(v, vdupq_n_u8(15)))
#define BIT_OF(v) vshlq_u8(vdupq_n_u8(1), vreinterpretq_s8_u8(AND(v, vdupq_n_u8(7))))
#define POSITION(v, mask) \
    vreinterpretq_u8_u32(vandq_u32(vshrq_n_u32(vreinterpretq_u32_u8(v), 6), vdupq_n_u32(mask)))
#define OR(a, b) vorrq_u8(a, b)
#define EIGHTHS(v) vshrq_n_u8(v, 3)
#define HAS(all, some) neon_mask(vceqq_u8(AND(all, some), some))
#define SAME(v, mask, wanted) \
    neon_mask(vreinterpretq_u8_u32(vceqq_u32(vandq_u32(vreinterpretq_u32_u8(v), vdupq_n_u32(mask)), vdupq_n_u32(wanted))))
#define ANY(v) neon_mask(vtstq_u8(v, v))

typedef struct {
    uint8_t half[8][2][16];
} neon_map;

typedef struct {
    V low, high;
} neon_index;

static void neon_map_of(neon_map *map, const uint64_t table[256])
{
    for (int k = 0; k < 8; k++)
        for (int n = 0; n < 16; n++) {
            map->half[k][0][n] = (uint8_t)(table[n] >> 8 * k);
            map->half[k][1][n] = (uint8_t)(table[16 * n] >> 8 * k);
        }
}

FN uint64_t neon_mask(V all)
{
    if (!vmaxvq_u8(all))
        return 0;
    const V one = AND(all, vreinterpretq_u8_u64(vdupq_n_u64(UINT64_C(0x8040201008040201))));
    return (uint64_t)vaddv_u8(vget_low_u8(one)) | (uint64_t)vaddv_u8(vget_high_u8(one)) << 8;
}

static uint64_t neon_value(const rdc_block_key *key, const uint8_t *data, size_t length)
{
    return scaled_value(key, plain_value(key, data, length));
}

#include "search/vector_body.h"

static int usable(void)
{
    return 1;
}

const rdc_block_variant rdc_blocks_neon = {"neon", usable, 128, neon_value, neon_scan, neon_lows, neon_find};

#endif
