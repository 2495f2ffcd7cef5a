/*
 * code_body.h - the search for fields, written once for all forms.
 *
 * A form includes code_form.h, defines FN, what its functions are declared as, and NAME(f), what they are named, and
 *
 *     FN signs NAME(telling)(const uint8_t *code)
 *
 * what each of 64 bytes is the first of; AHEAD bytes behind them are readable; and
 *
 *     FN void NAME(put)(uint8_t *bytes, uint64_t which, uint8_t with)
 *     FN void NAME(show)(uint8_t *bytes, uint64_t which)
 *
 * which overwrite some of 64 bytes; and some of them with FF, the others with 00.
 */

/* Writes `with` over the fields' bytes in the code itself, or a mask of them to what has as many bytes; how many these were. */
FN inline __attribute__((always_inline)) size_t NAME(cover)(const uint8_t *code, size_t size, uint8_t *to, uint8_t with,
                                                            int masked)
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
        /* Mostly nothing begins in what something else takes up, and there is no entry. */
        if (__builtin_expect(seen.entries || (j | d) & (taken | found.fields | d << 1), 0))
            found = found_singly(code, size, at, &seen, taken);
        fields |= found.fields;
        count += (size_t)__builtin_popcountll(fields);
        /* All that is still to be looked at is further on. */
        if (masked)
            NAME(show)(to + at, fields);
        else
            NAME(put)(to + at, fields, with);
        fields = found.fields_behind;
        taken = found.taken_behind;
    }
    uint8_t rest[STEP + AHEAD];
    const size_t left = size - at;
    size_t end = (size_t)__builtin_ctzll(~taken);
    memcpy(rest, code + at, left);
    if (masked)
        memset(to + at, 0, left);
    for (; fields; fields &= fields - 1, count++)
        to[at + (size_t)__builtin_ctzll(fields)] = with;
    for (size_t i = 0; i < left; i++) {
        site here;
        if (!begins(rest, left, i, &here))
            continue;
        if (i >= end) {
            memset(to + at + here.field, with, FIELD);
            if (here.fields > 1)
                memset(to + at + here.field + FIELD, with, FIELD);
            if (here.fields > 2)
                memset(to + at + here.third, with, FIELD);
            count += FIELD * here.fields;
        }
        if (end < i + here.length)
            end = i + here.length;
    }
    return count;
}

FN void NAME(mask)(const uint8_t *code, size_t size, uint8_t *mask)
{
    NAME(cover)(code, size, mask, 0xff, 1);
}

FN size_t NAME(blank)(uint8_t *code, size_t size, uint8_t blank)
{
    return NAME(cover)(code, size, code, blank, 0) / FIELD;
}
