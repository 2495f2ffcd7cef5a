/* weighted_body.h - one feature of a weighted set against many functions; weighted_reference.py defines it. A
 * variant defines FN and NAME(f), as for vector_body.h.
 *
 * The loop has neither calls nor branches, so the compiler makes vectors of it. No product may be fused with a
 * sum: that rounds once instead of twice, and samples would differ from one machine to another. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

FN void NAME(weigh)(uint64_t feature, double weight, const uint64_t *keys, size_t lanes, rdc_winners *winners)
{
    double *const least = winners->least, *const steps = winners->steps;
    uint64_t *const names = winners->names;
    for (size_t j = 0; j < lanes; j++) {
        const uint64_t one = rdc_mix(feature + keys[j]), two = rdc_mix(one), three = rdc_mix(two);
        const double r = -rdc_logarithm(rdc_uniform(one >> 32) * rdc_uniform(one & UINT32_MAX), 0.0);
        const double c = -rdc_logarithm(rdc_uniform(two >> 32) * rdc_uniform(two & UINT32_MAX), 0.0);
        const double beta = rdc_uniform(three >> 32);
        const double t = rdc_floor(weight / r + beta);
        const double a = rdc_logarithm(c, 0.0) - r * (t - beta) - r;
        const double best = least[j], step = steps[j];
        const uint64_t name = names[j];
        steps[j] = a < best ? t : step;
        const uint64_t wins = -(uint64_t)(a < best);
        names[j] = (feature & wins) | (name & ~wins);
        least[j] = a < best ? a : best;
    }
}
