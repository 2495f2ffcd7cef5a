/* forms.c - the forms compiled in, fastest first, and the check of one against the plain form. */
#include <string.h>

#include "form.h"

const rdc_form *const rdc_forms[] = {
#if defined(__x86_64__)
    &rdc_avx512, &rdc_avx2, &rdc_ssse3,
#elif defined(__aarch64__)
    &rdc_neon,
#endif
    &rdc_plain,  NULL,
};

/* Bytes of the check: a few vectors and an odd rest, far below a millisecond. */
#define CHECKED 777

int rdc_form_agrees(const rdc_form *form)
{
    uint8_t data[RDC_LOW_WINDOW + CHECKED], lead[2][RDC_BLOCK];
    uint16_t at[2][RDC_PLACES], stairs[2][RDC_PLACES];
    uint64_t low[2][RDC_BATCH];
    rdc_samples samples[2];
    size_t count[2], steps[2];
    const rdc_form *both[2] = {&rdc_plain, form};
    const uint8_t *p = data + RDC_LOW_WINDOW;

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(rdc_mix(i / 8) >> 8 * (i % 8));
    for (int f = 0; f < 2; f++) {
        count[f] = both[f]->scan(p, CHECKED, RDC_LEAD_FEW, lead[f], at[f]);
        steps[f] = both[f]->stairs(lead[f], CHECKED, stairs[f]);
        if (count[f] > RDC_BATCH || count[f] != count[0] || steps[f] != steps[0])
            return 0;
        both[f]->lows(p, at[f], count[f], low[f]);
        rdc_samples_clear(&samples[f]);
        both[f]->sample(&samples[f], low[f], count[f]);
    }
    return count[0] > 0 && !memcmp(lead[0], lead[1], CHECKED) && !memcmp(at[0], at[1], count[0] * sizeof at[0][0]) &&
           !memcmp(low[0], low[1], count[0] * sizeof low[0][0]) &&
           !memcmp(stairs[0], stairs[1], steps[0] * sizeof stairs[0][0]) &&
           !memcmp(samples[0].smallest, samples[1].smallest, sizeof samples[0].smallest);
}
