/*
 * code_body.h - the search for fields, written once for all forms.
 *
 * A form includes code_form.h, defines FN, what its functions are declared as, and NAME(f), what they are named, and
 *
 *     FN signs NAME(telling)(const uint8_t *code)
 *
 * what each of 64 bytes is the first of; AHEAD bytes behind them are readable.
 */

/* The next that has its fields; whether there is one. */
FN inline __attribute__((always_inline)) int NAME(next_site)(search *s, const uint8_t *code, size_t size, site *found)
{
    for (;;) {
        size_t i;
        if (s->bits) {
            const unsigned bit = (unsigned)__builtin_ctzll(s->bits);
            s->bits &= s->bits - 1;
            i = s->at - STEP + bit;
            if (!begins_seen(s, code, size, bit, found))
                continue;
        } else if (s->at + STEP + AHEAD <= size) {
            s->seen = NAME(telling)(code + s->at);
            s->bits = s->seen.jumps | s->seen.data | s->seen.entries;
            s->at += STEP;
            continue;
        } else if (s->at < size) {
            i = s->at++;
            if (!begins(code, size, i, found))
                continue;
        } else {
            return 0;
        }
        const int alone = i >= s->end;
        if (s->end < i + found->length)
            s->end = i + found->length;
        if (alone)
            return 1;
    }
}

static inline void fill(uint8_t *bytes, const site *where, uint8_t with)
{
    if (!where->fields)
        return;
    memset(bytes + where->field, with, FIELD);
    if (where->fields > 1)
        memset(bytes + where->field + FIELD, with, FIELD);
    if (where->fields > 2)
        memset(bytes + where->third, with, FIELD);
}

FN void NAME(mask)(const uint8_t *code, size_t size, uint8_t *mask)
{
    search s = {0};
    site found;
    memset(mask, 0, size);
    while (NAME(next_site)(&s, code, size, &found))
        fill(mask, &found, 0xff);
}

FN size_t NAME(blank)(uint8_t *code, size_t size, uint8_t blank)
{
    search s = {0};
    site found, last = {.fields = 0};
    size_t count = 0;
    /* What the search still looks at is no earlier than what it found last: of that the fields go later. */
    while (NAME(next_site)(&s, code, size, &found)) {
        fill(code, &last, blank);
        last = found;
        count += found.fields;
    }
    fill(code, &last, blank);
    return count;
}

