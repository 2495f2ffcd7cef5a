/* text_column.h - arguments that are columns of texts. */
#ifndef RDC_TEXT_COLUMN_H
#define RDC_TEXT_COLUMN_H

#include <Python.h>
#include <stdint.h>

/* A column of texts. */
typedef struct {
    Py_buffer text, offsets;
    const uint8_t *bytes;
    const int64_t *offset;
    size_t texts;
} rdc_text_column;

static inline void rdc_release_texts(rdc_text_column *column)
{
    if (column->text.obj)
        PyBuffer_Release(&column->text);
    if (column->offsets.obj)
        PyBuffer_Release(&column->offsets);
}

/* Checks what tests/reference/shingles.py's texts_of() checks. Returns -1 with an exception set. */
static inline int rdc_take_texts(rdc_text_column *column)
{
    if (column->offsets.len % 8) {
        PyErr_Format(PyExc_ValueError, "offsets: %zd bytes are no whole 64-bit numbers", column->offsets.len);
        return -1;
    }
    const size_t bounds = (size_t)column->offsets.len / 8;
    column->bytes = column->text.buf;
    column->offset = column->offsets.buf;
    if (bounds && (uintptr_t)column->offset % 8) {
        PyErr_SetString(PyExc_ValueError, "offsets: the numbers are not aligned");
        return -1;
    }
    if (!bounds || column->offset[0] < 0 || column->offset[bounds - 1] > column->text.len) {
        PyErr_Format(PyExc_ValueError, "offsets: one more than texts, from 0 to at most %zd, are expected",
                     column->text.len);
        return -1;
    }
    for (size_t i = 1; i < bounds; i++)
        if (column->offset[i] < column->offset[i - 1]) {
            PyErr_Format(PyExc_ValueError, "offsets: %lld follows %lld; they must not decrease",
                         (long long)column->offset[i], (long long)column->offset[i - 1]);
            return -1;
        }
    column->texts = bounds - 1;
    return 0;
}

#endif
