/* html_text.h - the text of HTML pages; rdc/kernel/pages/reference.py defines it. */
#ifndef RDC_HTML_TEXT_H
#define RDC_HTML_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Texts of pages, one after another. `grow` makes room for so many bytes more, or returns -1. */
typedef struct rdc_byte_list {
    uint8_t *bytes;
    size_t count, room;
    int (*grow)(struct rdc_byte_list *list, size_t more);
} rdc_byte_list;

/* Both append to the list, and return -1 if it does not grow. */
int rdc_html_text(rdc_byte_list *list, const uint8_t *page, size_t size);

/* Text without markup: its character references are decoded. In a value of an attribute, names without their semicolon
 * count less. */
int rdc_html_decode(rdc_byte_list *list, const uint8_t *text, size_t size, int in_value);

static inline int rdc_html_is_letter(uint8_t byte)
{
    return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
}

static inline int rdc_html_is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

#endif
