/*
 * compare.c - every variant of the kernel against the plain one, on streams from a seed or a fuzzer.
 *
 *     compare SEED COUNT [FILE ...]    COUNT streams from SEED on, then each file, in several splits and sizes
 *
 * Compiled with -DFUZZ it is a libFuzzer target instead. Spans lie in blocks of exactly their size, so that a
 * sanitizer sees a byte read past an end; whatever differs is printed and aborts.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cut/cuts.h"
#include "streams.h"

typedef struct result {
    uint64_t *end;
    size_t count;
    uint8_t traits[RDC_TRAIT_BYTES];
    int traits_length;
} result;

static void *must(void *memory)
{
    if (!memory) {
        fputs("compare: no memory\n", stderr);
        exit(2);
    }
    return memory;
}

static result taken(rdc_cutter *c)
{
    result r = {must(malloc(c->ends.count * sizeof *r.end + 1)), c->ends.count, {0}, rdc_cutter_traits(c, r.traits)};

    if (r.count)
        memcpy(r.end, c->ends.end, r.count * sizeof *r.end);
    rdc_cutter_end(c);
    return r;
}

/* Feed `data` in one span (split = 0) or in spans of lengths drawn from `split`. */
static result run(const rdc_variant *variant, const uint8_t *data, size_t n, uint64_t min, uint64_t max, uint64_t split)
{
    static const size_t spans[] = {1, 2, 15, 16, 17, 63, 64, 65, 100, 127, 128, 1000, 4095, 4096, 4097, 20000};
    generator g = {split};
    rdc_cutter c;

    rdc_cutter_start(&c, variant, min, max);
    for (size_t at = 0; at < n;) {
        size_t span = split ? spans[below(&g, 16)] : n;
        if (span > n - at)
            span = n - at;
        uint8_t *copy = must(malloc(span));
        memcpy(copy, data + at, span);
        if (rdc_cutter_feed(&c, copy, span))
            must(NULL);
        free(copy);
        at += span;
    }
    return taken(&c);
}

/* All of `data` at once, for its cuts alone. */
static result run_whole(const rdc_variant *variant, const uint8_t *data, size_t n, uint64_t min, uint64_t max)
{
    rdc_cutter c;

    rdc_cutter_start(&c, variant, min, max);
    c.plain = 1;
    uint8_t *copy = must(malloc(n + 1));
    memcpy(copy + 1, data, n);
    if (rdc_cutter_whole(&c, copy + 1, n))
        must(NULL);
    free(copy);
    return taken(&c);
}

/* Chunk lengths in (min, max], and n - c <= max at the end. */
static int in_bounds(const result *r, size_t n, uint64_t min, uint64_t max)
{
    uint64_t before = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (r->end[i] - before <= min || r->end[i] - before > max)
            return 0;
        before = r->end[i];
    }
    return n - before <= max;
}

static void compare(const uint8_t *data, size_t n, uint64_t min, uint64_t max, uint64_t split, const char *what)
{
    result plain = run(&rdc_plain, data, n, min, max, 0);
    for (const rdc_variant *const *variant = rdc_variants; *variant; variant++) {
        if (!(*variant)->usable())
            continue;
        result whole = run_whole(*variant, data, n, min, max);
        if (whole.count != plain.count || memcmp(whole.end, plain.end, whole.count * sizeof *whole.end) ||
            whole.traits_length) {
            fprintf(stderr, "%s differs for the cuts alone: %s, %zu bytes, sizes %llu to %llu\n", (*variant)->name, what, n,
                    (unsigned long long)min, (unsigned long long)max);
            abort();
        }
        free(whole.end);
        for (int way = 0; way < 2; way++) {
            result r = run(*variant, data, n, min, max, way ? split : 0);
            if (r.count != plain.count || memcmp(r.end, plain.end, r.count * sizeof *r.end) ||
                r.traits_length != plain.traits_length || memcmp(r.traits, plain.traits, sizeof r.traits) ||
                !in_bounds(&r, n, min, max)) {
                fprintf(stderr, "%s differs: %s, %zu bytes, sizes %llu to %llu, split %llu\n", (*variant)->name, what, n,
                        (unsigned long long)min, (unsigned long long)max, way ? (unsigned long long)split : 0);
                abort();
            }
            free(r.end);
        }
    }
    free(plain.end);
}

/* The plain variant, counting what it is asked for. */
static size_t scanned, hashed;

static int count_usable(void)
{
    return 1;
}

static size_t count_scan(const uint8_t *p, size_t n, unsigned limit, uint8_t *lead, uint16_t *at)
{
    scanned += n;
    return rdc_plain.scan(p, n, limit, lead, at);
}

static void count_lows(const uint8_t *p, const uint16_t *at, size_t count, uint64_t *low)
{
    hashed += count;
    rdc_plain.lows(p, at, count, low);
}

static void count_slide(const uint8_t *p, size_t n, uint64_t *low)
{
    hashed += n;
    rdc_plain.slide(p, n, low);
}

/* Linear on every stream: a quarter of the positions is scanned again at most, each is hashed once, in the first 64 KiB
 * twice, and of a periodic run one period is. Where the cuts alone are asked for, a stream of one chunk costs nothing. */
static void check_cost(const uint8_t *data, size_t n, uint64_t min, uint64_t max, const char *what)
{
    const rdc_variant counting = {"counting", rdc_plain.sparse, count_usable,     count_scan,
                               count_lows, count_slide,      rdc_plain.stairs, rdc_plain.contenders};
    const size_t early = n < RDC_FEW_FEATURES_BELOW ? n : RDC_FEW_FEATURES_BELOW;
    scanned = hashed = 0;
    free(run(&counting, data, n, min, max, 0).end);
    if (scanned > n + n / 4 + n / 64 + 64 || hashed > n + early + n / 64 + 64) {
        fprintf(stderr, "%s costs %zu scans and %zu hashes for %zu bytes\n", what, scanned, hashed, n);
        abort();
    }
    scanned = hashed = 0;
    free(run_whole(&counting, data, n, min, max).end);
    if (scanned > n + n / 4 + n / 64 + 64 || hashed > n + n / 64 + 64 || (n <= max && scanned)) {
        fprintf(stderr, "%s costs %zu scans and %zu hashes for the cuts of %zu bytes\n", what, scanned, hashed, n);
        abort();
    }
}

/* Sizes inside the limits, small ones more often. */
static void draw_sizes(generator *g, uint64_t *min, uint64_t *max)
{
    *min = 64 + below(g, below(g, 4) ? 300 : 5000);
    *max = *min + 1 + below(g, 7 * *min);
}

#ifdef FUZZ

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

/* Bytes 0 to 7 choose sizes and splits, byte 8 how the rest becomes a stream: as it is, as leads, or repeated. */
int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    uint64_t min, max;
    if (size < 10)
        return 0;
    generator g = {rdc_load64(input)};
    draw_sizes(&g, &min, &max);
    unsigned how = input[8];
    const uint8_t *body = input + 9;
    size_t length = size - 9, n = how & 4 ? length * (2 + how / 8) : length;
    uint8_t *data = must(malloc(n)), f = 0;
    for (size_t i = 0; i < n; i++) {
        data[i] = body[i % length];
        if (how & 1 && i >= RDC_LEAD_WINDOW) {
            uint8_t wanted = (how & 2 ? data[i] % 3 : data[i]) ^ RDC_LEAD_CONSTANT;
            data[i] = rdc_lead_carry[f] ^ wanted ^ rdc_lead_leaving[data[i - RDC_LEAD_WINDOW]];
            f = wanted;
        } else {
            f = rdc_lead_carry[f] ^ data[i];
        }
    }
    compare(data, n, min, max, draw(&g), "fuzz input");
    check_cost(data, n, min, max, "fuzz input");
    free(data);
    return 0;
}

#else

static void compare_file(const char *path, generator *g)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = must(malloc(1 << 20));
    size_t n = file ? fread(data, 1, 1 << 20, file) : 0;
    if (!file || n == 0) {
        fprintf(stderr, "compare: cannot read %s\n", path);
        exit(2);
    }
    fclose(file);
    for (int i = 0; i < 8; i++) {
        uint64_t min, max;
        draw_sizes(g, &min, &max);
        compare(data, n, min, max, draw(g), path);
        check_cost(data, n, min, max, path);
    }
    free(data);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: compare SEED COUNT [FILE ...]\n", stderr);
        return 2;
    }
    uint64_t seed = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    generator g = {0};
    for (const rdc_variant *const *variant = rdc_variants; *variant; variant++)
        if ((*variant)->usable() && !rdc_variant_agrees(*variant))
            fprintf(stderr, "%s fails its self-check\n", (*variant)->name);
    for (uint64_t i = 0; i < count; i++) {
        char what[80];
        uint64_t min, max;
        g.state = (seed + i) << 32;
        size_t pieces = 1 + below(&g, 3), n = 0, room = 3 * 90000;
        uint8_t *data = must(malloc(room));
        unsigned kind = 0;
        while (pieces-- > 0) {
            size_t length = below(&g, below(&g, 5) ? 9000 : 90000);
            kind = (unsigned)below(&g, STREAM_KINDS);
            make_stream(&g, kind, data + n, length);
            n += length;
        }
        draw_sizes(&g, &min, &max);
        snprintf(what, sizeof what, "seed %llu, last of kind %s", (unsigned long long)(seed + i), stream_names[kind]);
        compare(data, n, min, max, draw(&g), what);
        check_cost(data, n, min, max, what);
        free(data);
    }
    for (int i = 3; i < argc; i++)
        compare_file(argv[i], &g);
    printf("%llu streams and %d files: all of", (unsigned long long)count, argc - 3);
    for (const rdc_variant *const *variant = rdc_variants; *variant; variant++)
        if ((*variant)->usable())
            printf(" %s", (*variant)->name);
    puts(" agree");
    return 0;
}

#endif
