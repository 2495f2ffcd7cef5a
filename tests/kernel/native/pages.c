/*
 * pages.c - the text of random pages, in blocks of exactly their size: a sanitizer sees a byte read or written past an end.
 *
 *     pages SEED COUNT    COUNT rounds; whatever differs is printed and ends it with 1
 *
 * What the text is, is compared with its definition in Python. Here two pages that are read one after another must leave what they
 * leave alone, and the text must be UTF-8 whose characters come out of the page again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pages/html_text.h"
#include "shingles/characters.h"
#include "streams.h"

static void *exactly(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory) {
        fputs("pages: no memory\n", stderr);
        exit(2);
    }
    return memory;
}

static int grow(rdc_byte_list *list, size_t more)
{
    uint8_t *bytes = exactly(list->count + more);
    if (list->count)
        memcpy(bytes, list->bytes, list->count);
    free(list->bytes);
    list->bytes = bytes;
    list->room = list->count + more;
    return 0;
}

static const char *const parts[] = {"<", ">", "</", "/", "!--", "-->", "-", "a", "p", "script", "</script>", "<style>", "style", "img ", "area ",
                                    "href", "src", "alt", "=", "'", "\"", " ", "\n", "&", "amp", "amp;", "not", "notin;", "#", "x", "65", ";",
                                    "\u00e9", "\xff", "\xe4\xb8", "<a href=", "<img alt='", "<!", "?", "&#x80;", "&#xd800", "&copy=", "0"};

static uint8_t *random_page(generator *g, size_t *size)
{
    const uint64_t count = below(g, 60), bytes = !below(g, 8);
    uint8_t page[60 * 16];
    *size = 0;
    for (uint64_t i = 0; i < count; i++) {
        const char *part = parts[below(g, sizeof parts / sizeof *parts)];
        const size_t length = bytes ? 1 : strlen(part);
        memcpy(page + *size, part, length);
        if (bytes)
            page[*size] = (uint8_t)draw(g);
        *size += length;
    }
    uint8_t *exact = exactly(*size);
    memcpy(exact, page, *size);
    return exact;
}

static int is_utf8(const rdc_byte_list *list)
{
    for (size_t at = 0; at < list->count;) {
        const rdc_character character = rdc_character_at(list->bytes + at, list->count - at);
        if (character.code == RDC_BAD_CHARACTER && memcmp(list->bytes + at, "\xef\xbf\xbd", 3 < list->count - at ? 3 : list->count - at))
            return 0;
        at += character.size;
    }
    return 1;
}

static int pages_agree(generator *g)
{
    rdc_byte_list both = {NULL, 0, 0, grow};
    int agree = 1;
    for (int i = 0; i < 2; i++) {
        rdc_byte_list alone = {NULL, 0, 0, grow};
        size_t size;
        uint8_t *page = random_page(g, &size);
        const size_t before = both.count;
        if (rdc_html_text(&alone, page, size) || rdc_html_text(&both, page, size))
            exit(2);
        agree = agree && is_utf8(&alone) && both.count - before == alone.count &&
                (!alone.count || !memcmp(both.bytes + before, alone.bytes, alone.count));
        free(alone.bytes);
        free(page);
    }
    free(both.bytes);
    return agree;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    generator g = {strtoull(argv[1], NULL, 10)};
    const long rounds = strtol(argv[2], NULL, 10);
    for (long i = 0; i < rounds; i++)
        if (!pages_agree(&g)) {
            printf("round %ld differs\n", i);
            return 1;
        }
    printf("%ld rounds from seed %s agree\n", rounds, argv[1]);
    return 0;
}
