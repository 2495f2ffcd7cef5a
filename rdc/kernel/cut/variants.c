/* variants.c - the compiled variants, fastest first, and the comparison of one with the plain variant. */
#include <string.h>

#include "cut/variant.h"

const rdc_variant *const rdc_variants[] = {
#if defined(__x86_64__)
    &rdc_avx512, &rdc_avx2,
#elif defined(__aarch64__)
    &rdc_neon,
#endif
    &rdc_plain,  NULL,
};

/* Bytes of the comparison: a few vectors and an odd rest, far below a millisecond. */
#define CHECKED 777

int rdc_variant_agrees(const rdc_variant *variant)
{
    uint8_t data[RDC_LOW_WINDOW + CHECKED], lead[2][RDC_BLOCK];
    uint16_t at[2][RDC_POSITIONS], stairs[2][RDC_POSITIONS], near[2][CHECKED];
    uint64_t low[2][RDC_POSITIONS], all[2][CHECKED];
    size_t count[2], steps[2], neighbours[2];
    const rdc_variant *both[2] = {&rdc_plain, variant};
    const uint8_t *p = data + RDC_LOW_WINDOW;

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(rdc_mix(i / 8) >> 8 * (i % 8));
    for (int f = 0; f < 2; f++) {
        count[f] = both[f]->scan(p, CHECKED, RDC_LEAD_FEW, lead[f], at[f]);
        steps[f] = both[f]->stairs(lead[f], CHECKED, stairs[f]);
        if (count[f] > rdc_few(both[f], CHECKED) || count[f] != count[0] || steps[f] != steps[0])
            return 0;
        both[f]->lows(p, at[f], count[f], low[f]);
        both[f]->slide(p, CHECKED, all[f]);
        neighbours[f] = both[f]->contenders(UINT64_MAX / 8, UINT64_MAX / 4, lead[f], all[f], CHECKED, near[f]);
    }
    for (size_t k = 0; k < count[0]; k++)
        if (low[0][k] != all[0][at[0][k] - 1])
            return 0;
    return count[0] > 0 && neighbours[0] > 0 && neighbours[0] == neighbours[1] &&
           !memcmp(lead[0], lead[1], CHECKED) && !memcmp(at[0], at[1], count[0] * sizeof at[0][0]) &&
           !memcmp(low[0], low[1], count[0] * sizeof low[0][0]) &&
           !memcmp(stairs[0], stairs[1], steps[0] * sizeof stairs[0][0]) && !memcmp(all[0], all[1], sizeof all[0]) &&
           !memcmp(near[0], near[1], neighbours[0] * sizeof near[0][0]);
}
