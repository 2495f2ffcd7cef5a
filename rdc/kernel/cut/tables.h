/* tables.h - constants of the kernel; written by scripts/kernel_tables.py, do not edit.
 * It derives them from the polynomials. */
#ifndef RDC_TABLES_H
#define RDC_TABLES_H

#include <stdint.h>

#define RDC_LEAD_WINDOW 16
#define RDC_LEAD_POLYNOMIAL UINT64_C(0xaf)
#define RDC_LEAD_CONSTANT 0xe6
#define RDC_LEAD_FEW 4
#define RDC_LOW_WINDOW 64
#define RDC_LOW_POLYNOMIAL UINT64_C(0xe74fae00dfafc755)
#define RDC_FEW_FEATURES_BELOW 65536
#define RDC_GOLDEN UINT64_C(0x9e3779b97f4a7c15)
#define RDC_TRAIT_COUNT 12
#define RDC_TRAIT_BYTES 9

/* No file uses all of them. */
#define RDC_TABLE __attribute__((unused))
#define RDC_COMPUTED __attribute__((visibility("hidden")))

/* Computed by tables.c. Byte b times x^8 and x^128 modulo the polynomial of lead(). */
extern RDC_COMPUTED uint8_t rdc_lead_carry[256], rdc_lead_leaving[256];
/* In byte j, from the lowest on, b times x^(8 j). */
extern RDC_COMPUTED uint64_t rdc_lead_powers[256];
/* Byte j of a fingerprint, times x^64, and b times x^512, modulo the polynomial of low(). */
extern RDC_COMPUTED uint64_t rdc_low_slice[8][256], rdc_low_leaving[256];
/* The positions, from 1, of the bits set in a byte; then zeros. */
extern RDC_COMPUTED uint16_t rdc_bit_positions[256][8];

static const uint64_t rdc_trait_multiplier[3] RDC_TABLE = {
    UINT64_C(0xdfdbf66266b80725), UINT64_C(0xf965fb1267bc8179), UINT64_C(0xc7dc6d47f2e28aeb),
};

/* Doubling k = 1, 2, 4, 8: n and n << 4 times x^(8 k); of k = 8 the first half XOR 0xe6. */
static const uint8_t rdc_lead_double[4][32] RDC_TABLE = {
    {0x00, 0x28, 0x50, 0x78, 0xa0, 0x88, 0xf0, 0xd8, 0x1f, 0x37, 0x4f, 0x67, 0xbf, 0x97, 0xef, 0xc7,
     0x00, 0x3e, 0x7c, 0x42, 0xf8, 0xc6, 0x84, 0xba, 0xaf, 0x91, 0xd3, 0xed, 0x57, 0x69, 0x2b, 0x15},
    {0x00, 0x63, 0xc6, 0xa5, 0xd3, 0xb0, 0x15, 0x76, 0xf9, 0x9a, 0x3f, 0x5c, 0x2a, 0x49, 0xec, 0x8f,
     0x00, 0xad, 0x05, 0xa8, 0x0a, 0xa7, 0x0f, 0xa2, 0x14, 0xb9, 0x11, 0xbc, 0x1e, 0xb3, 0x1b, 0xb6},
    {0x00, 0xaa, 0x0b, 0xa1, 0x16, 0xbc, 0x1d, 0xb7, 0x2c, 0x86, 0x27, 0x8d, 0x3a, 0x90, 0x31, 0x9b,
     0x00, 0x58, 0xb0, 0xe8, 0x3f, 0x67, 0x8f, 0xd7, 0x7e, 0x26, 0xce, 0x96, 0x41, 0x19, 0xf1, 0xa9},
    {0xe6, 0x0f, 0x6b, 0x82, 0xa3, 0x4a, 0x2e, 0xc7, 0x6c, 0x85, 0xe1, 0x08, 0x29, 0xc0, 0xa4, 0x4d,
     0x00, 0x4b, 0x96, 0xdd, 0x73, 0x38, 0xe5, 0xae, 0xe6, 0xad, 0x70, 0x3b, 0x95, 0xde, 0x03, 0x48},
};

/* The same products as bit matrices, without the constant. */
static const uint64_t rdc_lead_matrix[4] RDC_TABLE = {
    UINT64_C(0x8898b8f97af562c4), UINT64_C(0x3d47b2588c190f1e), UINT64_C(0x42c7ccdbf4e99021), UINT64_C(0x57f8a61b60c1d5ab),
};

/* Carry-less multiplication: what the words of a window are multiplied by; reduction. */
static const uint64_t rdc_low_fold[8] RDC_TABLE = {
    UINT64_C(0x2ea53c1a72531c1e), UINT64_C(0x0143bee4d970c7f2), UINT64_C(0x0e6b8ca12b2947a9), UINT64_C(0xb920c8b15a0afcfd),
    UINT64_C(0xce168678f872f162), UINT64_C(0x9f0c16dd78025973), UINT64_C(0x262297286bb2d72b), UINT64_C(0x0000000000000001),
};

static const uint64_t rdc_low_reduce[2] RDC_TABLE = {
    UINT64_C(0xbbb94f39bb46a40a), UINT64_C(0xce9f5c01bf5f8eaa),
};

#endif
