/* cpu.h - which extensions this x86 CPU has and the system lets programs use.
 *
 * Not __builtin_cpu_supports: it asks the compiler's own library, which finds nothing where zig links. Bits are those
 * of CPUID (Intel SDM vol. 2A, CPUID), states those of XCR0 (vol. 1, 13.3). */
#ifndef RDC_CPU_H
#define RDC_CPU_H

#if defined(__x86_64__)

#include <cpuid.h>
#include <stdint.h>

enum {
    RDC_CPU_ASKED = 1 << 0, /* the others are known */
    RDC_CPU_POPCNT = 1 << 1,
    RDC_CPU_PCLMUL = 1 << 2,
    RDC_CPU_BMI = 1 << 3,
    RDC_CPU_BMI2 = 1 << 4,
    RDC_CPU_AVX2 = 1 << 5,
    RDC_CPU_AVX512F = 1 << 6,
    RDC_CPU_AVX512BW = 1 << 7,
    RDC_CPU_AVX512VL = 1 << 8,
    RDC_CPU_AVX512DQ = 1 << 9,
    RDC_CPU_AVX512VBMI2 = 1 << 10,
    RDC_CPU_GFNI = 1 << 11,
    RDC_CPU_VPCLMUL = 1 << 12,
    RDC_CPU_AVX512VPOPCNTDQ = 1 << 13,
};

static inline unsigned rdc_cpu_ask(void)
{
    enum { YMM = 0x06, ZMM = 0xe6 }; /* the registers that the system saves for a program */
    unsigned a, b = 0, c = 0, d, found = RDC_CPU_ASKED, more_b = 0, more_c = 0;
    uint32_t saved = 0, high;

    if (!__get_cpuid(1, &a, &b, &c, &d))
        return found;
    found |= c >> 23 & 1 ? RDC_CPU_POPCNT : 0;
    found |= c >> 1 & 1 ? RDC_CPU_PCLMUL : 0;
    if (c >> 27 & 1)
        __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if (!__get_cpuid_count(7, 0, &a, &more_b, &more_c, &d))
        return found;
    found |= more_b >> 3 & 1 ? RDC_CPU_BMI : 0;
    found |= more_b >> 8 & 1 ? RDC_CPU_BMI2 : 0;
    if ((saved & YMM) != YMM)
        return found;
    found |= more_b >> 5 & 1 ? RDC_CPU_AVX2 : 0;
    found |= more_c >> 10 & 1 ? RDC_CPU_VPCLMUL : 0;
    found |= more_c >> 8 & 1 ? RDC_CPU_GFNI : 0;
    if ((saved & ZMM) != ZMM)
        return found;
    found |= more_b >> 16 & 1 ? RDC_CPU_AVX512F : 0;
    found |= more_b >> 17 & 1 ? RDC_CPU_AVX512DQ : 0;
    found |= more_b >> 30 & 1 ? RDC_CPU_AVX512BW : 0;
    found |= more_b >> 31 & 1 ? RDC_CPU_AVX512VL : 0;
    found |= more_c >> 6 & 1 ? RDC_CPU_AVX512VBMI2 : 0;
    found |= more_c >> 14 & 1 ? RDC_CPU_AVX512VPOPCNTDQ : 0;
    return found;
}

/* Whether all of these extensions, RDC_CPU_... joined by |, may be used. The CPU is asked once: under a hypervisor that
 * takes microseconds. Threads that ask at the same time store the same. */
static inline int rdc_cpu_has(unsigned wanted)
{
    static unsigned known;
    unsigned found = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!found) {
        found = rdc_cpu_ask();
        __atomic_store_n(&known, found, __ATOMIC_RELAXED);
    }
    return (found & wanted) == wanted;
}

#endif
#endif
