/* vector_body.h - the smallest values of many functions at once. A variant defines:
 *
 *   FN            attributes of its functions
 *   NAME(f)       the name of its form of f
 *   V, W          a vector of W numbers of 32 bits
 *   LOAD, STORE   unaligned
 *   ALL(x)        x in every lane
 *   LEAST(a, b)   the smaller of both, unsigned
 *   PRODUCT(a, b) modulo 2^32
 *   UNROLLED      vectors that stay in registers, twice
 *
 * The functions of a set's features are independent, so each vector of functions walks over all features and
 * keeps its minima in a register. */

/* One pass over the features for VECTORS vectors of functions. */
#define PASS(VECTORS)                                                                                              \
    do {                                                                                                           \
        V factor[VECTORS], least[VECTORS];                                                                         \
        for (int u = 0; u < VECTORS; u++) {                                                                        \
            factor[u] = LOAD(factors + at + u * W);                                                                \
            least[u] = LOAD(samples + at + u * W);                                                                 \
        }                                                                                                          \
        for (size_t i = 0; i < count; i++) {                                                                       \
            const V one = ALL(high[i]);                                                                            \
            for (int u = 0; u < VECTORS; u++)                                                                      \
                least[u] = LEAST(least[u], PRODUCT(one, factor[u]));                                               \
        }                                                                                                          \
        for (int u = 0; u < VECTORS; u++)                                                                          \
            STORE(samples + at + u * W, least[u]);                                                                 \
        at += VECTORS * W;                                                                                         \
    } while (0)

FN void NAME(minima)(const uint32_t *high, size_t count, const uint32_t *factors, size_t lanes, uint32_t *samples)
{
    size_t at = 0;
    while (lanes - at >= UNROLLED * W)
        PASS(UNROLLED);
    while (lanes - at >= 2 * W)
        PASS(2);
    if (at < lanes)
        PASS(1);
}

#undef PASS
