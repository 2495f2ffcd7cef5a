/* html_text.c - what is left of pages without their markup.
 *
 * All bytes that matter to markup are ASCII, so pages are read as bytes. */
#include "pages/html_text.h"

#include <string.h>

typedef struct {
    const uint8_t *at, *end;
} range;

static int is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\f' || byte == '\r';
}

/* Whether the range is this name, in any case of letters. */
static int is_name(range text, const char *name)
{
    for (; text.at < text.end && *name; text.at++, name++)
        if ((rdc_html_is_letter(*text.at) ? *text.at | 0x20 : *text.at) != (uint8_t)*name)
            return 0;
    return text.at == text.end && !*name;
}

static int is_inline(range element)
{
    static const char *const names[] = {"a",    "abbr", "b",     "bdi",  "bdo",    "big", "cite", "code", "em", "font",
                                        "i",    "ins",  "kbd",   "mark", "q",      "s",   "samp", "small", "span", "strike",
                                        "strong", "sub", "sup",  "tt",   "u",      "var", "wbr"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_name(element, names[i]))
            return 1;
    return 0;
}

static int is_address(range element, range attribute)
{
    if (is_name(attribute, "href"))
        return is_name(element, "a") || is_name(element, "area");
    return (is_name(attribute, "src") || is_name(attribute, "alt")) && is_name(element, "img");
}

/* Behind the next `byte`, or the end. */
static const uint8_t *behind(range page, uint8_t byte)
{
    const uint8_t *found = page.at < page.end ? memchr(page.at, byte, (size_t)(page.end - page.at)) : NULL;
    return found ? found + 1 : page.end;
}

/* Behind the next -->, or the end. A comment may begin with it: page.at is behind the <! of <!--. */
static const uint8_t *behind_comment(range page)
{
    const uint8_t *start = page.at;
    do
        page.at = behind(page, '>');
    while (page.at < page.end && (page.at - start < 3 || page.at[-2] != '-' || page.at[-3] != '-'));
    return page.at;
}

/* Where the end tag of a raw element begins, or the end. */
static const uint8_t *end_of_raw(range page, const char *name)
{
    const size_t length = strlen(name);
    while ((page.at = behind(page, '<')) < page.end) {
        const range found = {page.at + 1, page.at + 1 + length};
        if (*page.at == '/' && (size_t)(page.end - page.at) > length + 1 && is_name(found, name) &&
            (is_space(*found.end) || *found.end == '/' || *found.end == '>'))
            return page.at - 1;
    }
    return page.end;
}

/* An attribute: page.at is at its name. Returns where it ends. */
static const uint8_t *take_attribute(range page, range *name, range *value)
{
    const uint8_t *at = page.at + 1;
    while (at < page.end && !is_space(*at) && *at != '/' && *at != '>' && *at != '=')
        at++;
    *name = (range){page.at, at};
    while (at < page.end && is_space(*at))
        at++;
    *value = (range){at, at};
    if (at == page.end || *at != '=')
        return at;
    do
        at++;
    while (at < page.end && is_space(*at));
    if (at < page.end && (*at == '"' || *at == '\'')) {
        const uint8_t *end = behind((range){at + 1, page.end}, *at);
        *value = (range){at + 1, end - 1};
        return end;
    }
    value->at = at;
    while (at < page.end && !is_space(*at) && *at != '>')
        at++;
    value->end = at;
    return at;
}

static int put_byte(rdc_byte_list *list, uint8_t byte)
{
    if (list->count == list->room && list->grow(list, 1))
        return -1;
    list->bytes[list->count++] = byte;
    return 0;
}

/* A tag: page.at is behind its <. Sets page->at to where it ends. A tag that does not end leaves nothing behind. */
static int take_tag(rdc_byte_list *list, range *page)
{
    const int closes = *page->at == '/';
    const size_t before = list->count;
    range element = {page->at + closes, page->at + closes};
    while (element.end < page->end && !is_space(*element.end) && *element.end != '/' && *element.end != '>')
        element.end++;
    page->at = element.end;
    if (!is_inline(element) && put_byte(list, ' '))
        return -1;
    for (;;) {
        while (page->at < page->end && (is_space(*page->at) || *page->at == '/'))
            page->at++;
        if (page->at == page->end) {
            list->count = before;
            return 0;
        }
        if (*page->at == '>')
            break;
        range name, value;
        page->at = take_attribute(*page, &name, &value);
        if (!closes && page->at < page->end && is_address(element, name) &&
            (put_byte(list, ' ') || rdc_html_decode(list, value.at, (size_t)(value.end - value.at), 1) ||
             put_byte(list, ' ')))
            return -1;
    }
    page->at++;
    if (!closes && is_name(element, "script"))
        page->at = end_of_raw(*page, "script");
    else if (!closes && is_name(element, "style"))
        page->at = end_of_raw(*page, "style");
    return 0;
}

/* Markup, or a < that is text: page.at is behind the <. Sets page->at to where it ends. */
static int take_markup(rdc_byte_list *list, range *page)
{
    const size_t left = (size_t)(page->end - page->at);
    const uint8_t next = left ? *page->at : 0;
    if (rdc_html_is_letter(next) || (next == '/' && left > 1 && rdc_html_is_letter(page->at[1])))
        return take_tag(list, page);
    if (left >= 3 && !memcmp(page->at, "!--", 3)) {
        page->at = behind_comment((range){page->at + 1, page->end});
        return 0;
    }
    if (next != '!' && next != '?' && next != '/')
        return put_byte(list, '<');
    page->at = behind((range){page->at + 1, page->end}, '>');
    return put_byte(list, ' ');
}

int rdc_html_text(rdc_byte_list *list, const uint8_t *text, size_t size)
{
    range page = {text, text + size};
    while (page.at < page.end) {
        const uint8_t *stop = behind(page, '<');
        const int found = stop[-1] == '<';
        if (rdc_html_decode(list, page.at, (size_t)(stop - page.at) - (size_t)found, 0))
            return -1;
        page.at = stop;
        if (found && take_markup(list, &page))
            return -1;
    }
    return 0;
}
