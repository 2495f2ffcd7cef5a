/* neon.c - the vector variant in NEON: 16 positions at a time; PMULL where the CPU has it. */
#include "cut/variant.h"
#include "cut/low_rank_tables.h"

#if defined(__aarch64__)

#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#ifndef HWCAP_PMULL
#define HWCAP_PMULL (1 << 4)
#endif
#endif

#define FN static inline
#define NAME(f) neon_##f
#define SPARSE 16
#define V uint8x16_t
#define W 16
#define LOAD(q) vld1q_u8(q)
#define STORE(q, v) vst1q_u8(q, v)
#define SPLAT(byte) vdupq_n_u8(byte)
#define XOR(a, b) veorq_u8(a, b)
#define MOVE(k, v, before) vextq_u8(before, v, 16 - (k))
#define DOWN(k, v) vextq_u8(v, vdupq_n_u8(0xff), k)
#define MIN(a, b) vminq_u8(a, b)
#define TABLES                                                                                             \
    const V low1 = LOAD(rdc_lead_double[0]), high1 = LOAD(rdc_lead_double[0] + 16);                        \
    const V low2 = LOAD(rdc_lead_double[1]), high2 = LOAD(rdc_lead_double[1] + 16);                        \
    const V low4 = LOAD(rdc_lead_double[2]), high4 = LOAD(rdc_lead_double[2] + 16);                        \
    const V low8 = LOAD(rdc_lead_double[3]), high8 = LOAD(rdc_lead_double[3] + 16);                        \
    const V nibble = SPLAT(15);                                                                            \
    (void)low8, (void)high8;
#define PRODUCT(k, v) XOR(vqtbl1q_u8(low##k, vandq_u8(v, nibble)), vqtbl1q_u8(high##k, vshrq_n_u8(v, 4)))
#define AT_MOST(v, limit) neon_bits(vcleq_u8(v, limit))

/* One bit a lane: each lane keeps its own bit of eight, and three pairwise sums bring them together. */
FN uint64_t neon_bits(uint8x16_t lanes)
{
    static const uint8_t weights[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t v = vandq_u8(lanes, vld1q_u8(weights));
    v = vpaddq_u8(v, v);
    v = vpaddq_u8(v, v);
    v = vpaddq_u8(v, v);
    return vgetq_lane_u16(vreinterpretq_u16_u8(v), 0);
}

#include "cut/vector_body.h"

/* As in low_rank_x86.h, where the argument stands. */
#if defined(__clang__)
#define MULTIPLY __attribute__((target("crypto")))
#else
#define MULTIPLY __attribute__((target("+crypto")))
#endif

MULTIPLY static inline uint64x2_t product(uint64_t a, uint64_t b)
{
    return vreinterpretq_u64_p128(vmull_p64((poly64_t)a, (poly64_t)b));
}

MULTIPLY static inline uint64_t pmull_window(const uint8_t *p)
{
    uint64x2_t v = vdupq_n_u64(0);
    for (int j = 0; j < 8; j += 2) {
        uint64x2_t words = vreinterpretq_u64_u8(vld1q_u8(p - RDC_LOW_WINDOW + 8 * j));
        v = veorq_u64(v, product(vgetq_lane_u64(words, 0), rdc_low_fold[j]));
        v = veorq_u64(v, product(vgetq_lane_u64(words, 1), rdc_low_fold[j + 1]));
    }
    uint64_t rest = vgetq_lane_u64(v, 1);
    uint64_t m = vgetq_lane_u64(product(rest, rdc_low_reduce[0]), 1) ^ rest;
    return vgetq_lane_u64(v, 0) ^ m ^ vgetq_lane_u64(product(m, rdc_low_reduce[1]), 0);
}

MULTIPLY static void pmull_lows(const uint8_t *p, const uint16_t *at, size_t count, uint64_t *low)
{
    rdc_lows(p, at, count, low, pmull_window);
}

static int has_pmull(void)
{
#if defined(__linux__)
    return (getauxval(AT_HWCAP) & HWCAP_PMULL) != 0;
#elif defined(__APPLE__)
    return 1; /* every Apple processor with 64 bits */
#else
    return 0;
#endif
}

static void lows(const uint8_t *p, const uint16_t *at, size_t count, uint64_t *low)
{
    if (RDC_NEWER && has_pmull())
        pmull_lows(p, at, count, low);
    else
        rdc_plain.lows(p, at, count, low);
}

static int usable(void)
{
    return 1; /* NEON is part of every 64-bit ARM */
}

const rdc_variant rdc_neon = {"neon", SPARSE, usable, neon_scan, lows, rdc_slide_plain, neon_stairs, rdc_contenders_plain};

#endif
