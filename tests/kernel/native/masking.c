/*
 * masking.c - machine code without its displacements, from a seed, in blocks of exactly their size: a sanitizer sees a byte read
 * or written past an end.
 *
 *     fillers SEED COUNT    COUNT rounds; whatever differs is printed and ends it with 1
 *
 * What counts as a field and what is told of it is compared with its definition from Python; here all variants must find the
 * same, and all that was taken must come back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "x86/x86.h"
#include "streams.h"

static const char *const variants[] = {"c", "avx2"};

static uint8_t *exactly(size_t size)
{
    uint8_t *memory = malloc(size ? size : 1);
    if (!memory) {
        fputs("blanks: no memory\n", stderr);
        exit(2);
    }
    return memory;
}

static uint8_t *copy(const uint8_t *bytes, size_t size)
{
    uint8_t *made = exactly(size);
    memcpy(made, bytes, size);
    return made;
}

static int is_set(const uint8_t *bits, size_t i)
{
    return bits[i / 8] >> i % 8 & 1;
}

static uint8_t *code_of(generator *g, size_t size)
{
    static const uint8_t telling[] = {0xe8, 0xe9, 0x8b, 0x8d, 0x05, 0x3d, 0, 0, 0, 0xff, 0x03, 0xfc, 0x10, 0x14};
    uint8_t *code = exactly(size);
    for (size_t i = 0; i < size; i++)
        code[i] = below(g, 4) ? telling[below(g, sizeof telling)] : (uint8_t)below(g, 256);
    return code;
}

/* Runs of any length, most of them a field's; bits behind the last byte's are anything. */
static uint8_t *any_bits(generator *g, size_t size)
{
    uint8_t *bits = exactly((size + 7) / 8);
    const unsigned others = below(g, 3) ? 30 : 2;
    memset(bits, 0, (size + 7) / 8);
    for (size_t at = 0; at < size;) {
        at += below(g, 5) ? below(g, 12) : below(g, 200);
        const size_t length = below(g, others) ? 4 : below(g, 140);
        for (size_t i = at; i < at + length && i < 8 * ((size + 7) / 8); i++)
            bits[i / 8] |= (uint8_t)(1 << i % 8);
        at += length + 1;
    }
    return bits;
}

static uint8_t *displacement_bits(const uint8_t *code, size_t size, size_t part)
{
    uint8_t *bits = exactly((size + 7) / 8);
    rdc_bits to = {bits, 0, 0};
    for (size_t at = 0; at < size; at += part) {
        const size_t length = size - at < part ? size - at : part;
        uint8_t *alone = copy(code + at, length);
        rdc_displacement_bits(alone, length, &to);
        free(alone);
    }
    rdc_end_bits(&to);
    return bits;
}

/* Whether `code` is `plain` but for what the bits select, which is `filler`. */
static int hidden(const uint8_t *code, const uint8_t *plain, const uint8_t *bits, size_t size, uint8_t filler)
{
    for (size_t i = 0; i < size; i++)
        if (code[i] != (is_set(bits, i) ? filler : plain[i]))
            return 0;
    return 1;
}

static int taken_and_put(generator *g, const uint8_t *plain, const uint8_t *bits, size_t size)
{
    const uint64_t offset = below(g, 2) ? below(g, 5000) : (UINT64_C(1) << 62) - below(g, 5000);
    uint8_t *code = copy(plain, size), *alone = copy(plain, size);
    size_t set = 0;
    for (size_t i = 0; i < size; i++)
        set += (size_t)is_set(bits, i);
    uint8_t *taken = exactly(set);
    int agrees = rdc_count_bits(bits, size) == set;
    agrees = agrees && rdc_take_displacements(code, bits, size, offset, 0x7f, taken) == set && hidden(code, plain, bits, size, 0x7f);
    rdc_overwrite_marked(alone, bits, size, 0x7f);
    agrees = agrees && hidden(alone, plain, bits, size, 0x7f);

    /* Bits to put by are of whole bytes, and each is of one that was taken. */
    uint8_t *whole = copy(bits, (size + 7) / 8);
    if (size % 8)
        whole[size / 8] &= (uint8_t)~(0xff << size % 8);
    const size_t before = below(g, 90), length = below(g, (unsigned)size + 180);
    const uint64_t start = offset > before ? offset - before + below(g, 180) : below(g, 90);
    rdc_content content = {exactly(length), start, length, 0};
    memset(content.bytes, 0x55, length);
    agrees = agrees && rdc_put_displacements(whole, 8 * ((size + 7) / 8), offset, taken, set, &content) == set;
    for (size_t i = 0; agrees && i < length; i++) {
        const uint64_t at = start + i - offset;
        const int belongs = start + i >= offset && at < size && is_set(whole, at);
        agrees = content.bytes[i] == (belongs ? plain[at] : 0x55);
    }
    if (set)
        agrees = agrees && rdc_put_displacements(whole, 8 * ((size + 7) / 8), offset, taken, set - 1, &content) == SIZE_MAX;
    free(code), free(alone), free(taken), free(whole), free(content.bytes);
    return agrees;
}

static int round_agrees(generator *g)
{
    const size_t size = below(g, 9) ? below(g, 1000) : below(g, 20000), part = 1 + below(g, 700);
    uint8_t *code = code_of(g, size), *any = any_bits(g, size), *first = NULL;
    int agrees = 1;
    for (size_t i = 0; agrees && i < sizeof variants / sizeof *variants; i++) {
        agrees = rdc_choose_code(variants[i]);
        uint8_t *bits = displacement_bits(code, size, part), *masked = copy(code, size);
        first = first ? first : copy(bits, (size + 7) / 8);
        agrees = agrees && !memcmp(bits, first, (size + 7) / 8);
        size_t fields = 0;
        for (size_t at = 0; at < size; at += part)
            fields += rdc_mask_displacements(masked + at, size - at < part ? size - at : part, 0x80);
        agrees = agrees && 4 * fields == rdc_count_bits(bits, size) && hidden(masked, code, bits, size, 0x80);
        agrees = agrees && taken_and_put(g, code, bits, size) && taken_and_put(g, code, any, size);
        free(bits), free(masked);
    }
    free(code), free(any), free(first);
    return agrees;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const long count = strtol(argv[2], NULL, 10);
    generator g = {strtoull(argv[1], NULL, 10)};
    for (long i = 0; i < count; i++)
        if (!round_agrees(&g)) {
            fprintf(stderr, "blanks: round %ld differs\n", i);
            return 1;
        }
    printf("%ld rounds from seed %s agree\n", count, argv[1]);
    return 0;
}
