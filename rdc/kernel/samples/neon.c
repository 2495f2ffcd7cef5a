/* neon.c - sampling in NEON: 4 functions or 2 packed sets at a time. */
#include "samples/variant.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "mix.h"

#define FN static inline
#define NAME(f) neon_##f
#define V uint32x4_t
#define W 4
#define LOAD(p) vld1q_u32(p)
#define STORE(p, v) vst1q_u32(p, v)
#define ALL(x) vdupq_n_u32(x)
#define LEAST(a, b) vminq_u32(a, b)
#define PRODUCT(a, b) vmulq_u32(a, b)
#define UNROLLED 8

#include "samples/vector_body.h"

static void differences(const uint64_t *query, const uint64_t *packed, size_t blocks, size_t words, unsigned bits,
                        uint32_t *out)
{
    for (size_t block = 0; block < blocks; block++, packed += words * bits * RDC_SET_BLOCK)
        for (size_t lane = 0; lane < RDC_SET_BLOCK; lane += 2) {
            const uint64_t *mine = query, *others = packed + lane;
            uint64x2_t total = vdupq_n_u64(0);
            for (size_t word = 0; word < words; word++) {
                uint64x2_t differ = vdupq_n_u64(0);
                for (unsigned plane = 0; plane < bits; plane++, others += RDC_SET_BLOCK)
                    differ = vorrq_u64(differ, veorq_u64(vld1q_u64(others), vdupq_n_u64(*mine++)));
                total = vaddq_u64(total, vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(vcntq_u8(vreinterpretq_u8_u64(differ))))));
            }
            out[RDC_SET_BLOCK * block + lane] = (uint32_t)vgetq_lane_u64(total, 0);
            out[RDC_SET_BLOCK * block + lane + 1] = (uint32_t)vgetq_lane_u64(total, 1);
        }
}

static int usable(void)
{
    return 1;
}

const rdc_sampling rdc_sampling_neon = {"neon", usable, rdc_high_ranks, rdc_slots, neon_minima, rdc_collect, rdc_spread, differences};

#endif
