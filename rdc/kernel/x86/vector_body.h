/*
 * vector_body.h - the search for fields, written once for all variants.
 *
 * A variant includes variant.h, defines FN, what its functions are declared as, and NAME(f), what they are named, and
 *
 *     FN signs NAME(telling)(const uint8_t *code)
 *
 * what each of 64 bytes is the first of; AHEAD bytes behind them are readable; and
 *
 *     FN void NAME(put)(uint8_t *bytes, uint64_t which, uint8_t with)
 *
 * which overwrites some of 64 bytes.
 */

/* Overwrites the bytes of fields with `with` in the code itself, or appends one bit per byte to `bits`.
 * Returns the number of these bytes. */
FN inline __attribute__((always_inline)) size_t NAME(cover)(const uint8_t *code, size_t size, uint8_t *to, uint8_t with,
                                                            rdc_bits *bits)
{
    uint64_t fields = 0, taken = 0; /* of the next 64 bytes, by what began earlier */
    size_t at = 0, count = 0;
    for (; at + STEP + AHEAD <= size; at += STEP) {
        rdc_fetch_ahead(code + at);
        const signs seen = NAME(telling)(code + at);
        const uint64_t j = seen.jumps, d = seen.data;
        found_bytes found = {
            j << 1 | j << 2 | j << 3 | j << 4 | d << 2 | d << 3 | d << 4 | d << 5,
            j >> 63 | j >> 62 | j >> 61 | j >> 60 | d >> 62 | d >> 61 | d >> 60 | d >> 59,
            0,
        };
        found.taken_behind = found.fields_behind | d >> 63;
        /* Mostly candidates do not overlap, and there is no frame table entry. */
        if (__builtin_expect(seen.entries || (j | d) & (taken | found.fields | d << 1), 0))
            found = found_singly(code, size, at, &seen, taken);
        fields |= found.fields;
        count += (size_t)__builtin_popcountll(fields);
        /* Everything still to be examined is further on. */
        if (bits)
            rdc_add_bits(bits, fields, STEP);
        else
            NAME(put)(to + at, fields, with);
        fields = found.fields_behind;
        taken = found.taken_behind;
    }
    uint8_t rest[STEP + AHEAD];
    const size_t left = size - at, first = left < STEP ? left : STEP;
    size_t end = (size_t)__builtin_ctzll(~taken);
    found_bytes found = {fields, 0, 0};
    memcpy(rest, code + at, left);
    for (size_t i = 0; i < left; i++) {
        site here;
        if (!begins(rest, left, i, &here))
            continue;
        if (i >= end) {
            add_field(&found, here.field);
            if (here.fields > 1)
                add_field(&found, here.field + FIELD);
            if (here.fields > 2)
                add_field(&found, here.third);
        }
        if (end < i + here.length)
            end = i + here.length;
    }
    if (bits) {
        rdc_add_bits(bits, found.fields, first);
        rdc_add_bits(bits, found.fields_behind, left - first);
    } else {
        for (uint64_t set = found.fields; set; set &= set - 1)
            to[at + (size_t)__builtin_ctzll(set)] = with;
        for (uint64_t set = found.fields_behind; set; set &= set - 1)
            to[at + STEP + (size_t)__builtin_ctzll(set)] = with;
    }
    return count + (size_t)__builtin_popcountll(found.fields) + (size_t)__builtin_popcountll(found.fields_behind);
}

FN void NAME(bits)(const uint8_t *code, size_t size, rdc_bits *bits)
{
    rdc_bits here = *bits; /* which nothing that is written can be part of */
    NAME(cover)(code, size, NULL, 0, &here);
    *bits = here;
}

FN size_t NAME(mask_fields)(uint8_t *code, size_t size, uint8_t filler)
{
    return NAME(cover)(code, size, code, filler, NULL) / FIELD;
}

FN void NAME(overwrite_marked)(uint8_t *content, const uint8_t *bits, size_t size, uint8_t filler)
{
    size_t at = 0;
    for (; size - at >= STEP; at += STEP) {
        const uint64_t set = rdc_load64(bits + at / 8);
        rdc_fetch_ahead(content + at);
        if (set)
            NAME(put)(content + at, set, filler);
    }
    for (uint64_t set = rdc_bits_at(bits, size, at); set; set &= set - 1)
        content[at + (size_t)__builtin_ctzll(set)] = filler;
}

FN size_t NAME(count)(const uint8_t *bits, size_t size)
{
    size_t at = 0, count = 0;
    for (; size - at >= STEP; at += STEP)
        count += (size_t)__builtin_popcountll(rdc_load64(bits + at / 8));
    return count + (size_t)__builtin_popcountll(rdc_bits_at(bits, size, at));
}

/* Most words have few fields, but their number changes from word to word. Some are listed without a test. */
FN size_t NAME(list)(rdc_runs *runs, uint32_t *starts)
{
    const size_t end = runs->size < UINT32_MAX ? runs->size : UINT32_MAX; /* further on all are taken one by one */
    size_t count = 0, at = runs->at;
    uint64_t begun = 0, last = 0; /* bits of fields that began in the word before, and the last bit of that
                                   * word */
    while (count <= RDC_LISTED - STEP / FIELD && at + STEP <= end) {
        const uint64_t set = rdc_bits_at(runs->of, runs->size, at);
        uint64_t first = set & ~(set << 1 | last);
        if ((first | first << 1 | first << 2 | first << 3 | begun) != set)
            break;
        begun = first >> 63 | first >> 62 | first >> 61;
        last = set >> 63;
        const size_t fields = (size_t)__builtin_popcountll(first);
        for (size_t i = 0; i < UNSEEN; i++, first &= first - 1)
            starts[count + i] = (uint32_t)(at + (size_t)__builtin_ctzll(first | UINT64_C(1) << (STEP - 1)));
        for (size_t i = UNSEEN; i < fields; i++, first &= first - 1)
            starts[count + i] = (uint32_t)(at + (size_t)__builtin_ctzll(first));
        count += fields;
        at += STEP;
    }
    /* A run up to the end of the scanned bits may continue. */
    runs->at = last ? starts[--count] : at;
    return count;
}
