/* word_binding.c - Python bindings for the differences between rows of number tables. */
#include "module.h"

#include "ranges.h"
#include "columns/columns.h"

typedef void rewriting(uint8_t *part, size_t size, uint64_t offset, size_t stride);

static PyObject *rewrite(PyObject *args, const char *format, rewriting *each)
{
    RDC_BUFFER content = {0}, ranges = {0};
    Py_ssize_t stride;
    if (!PyArg_ParseTuple(args, format, &content, &ranges, &stride))
        return NULL;
    const uint8_t *packed = ranges.buf;
    if (stride < 4 || stride % 4)
        return PyErr_Format(PyExc_ValueError, "word differences: a stride of %zd bytes", stride);
    if (!rdc_ranges_fill(packed, (size_t)ranges.len, (size_t)content.len))
        return PyErr_Format(PyExc_ValueError,
                            "word differences: an offset and a length for each part, of %zd bytes in all (%zd bytes)",
                            content.len, ranges.len);
    uint8_t *part = content.buf;
    Py_BEGIN_ALLOW_THREADS
    for (size_t i = 0; i < (size_t)ranges.len / sizeof(rdc_range); i++) {
        const rdc_range range = rdc_range_of(packed, i);
        each(part, (size_t)range.length, range.offset, (size_t)stride);
        part += range.length;
    }
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *difference_words(PyObject *Py_UNUSED(module), PyObject *args)
{
    return rewrite(args, "w*y*n:difference_words", rdc_difference_words);
}

static PyObject *sum_words(PyObject *Py_UNUSED(module), PyObject *args)
{
    return rewrite(args, "w*y*n:sum_words", rdc_sum_words);
}

static PyObject *nonzero_bytes(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER content = {0};
    if (!PyArg_ParseTuple(args, "y*:nonzero_bytes", &content))
        return NULL;
    return PyLong_FromSize_t(rdc_nonzero_bytes(content.buf, (size_t)content.len));
}

PyMethodDef rdc_word_functions[] = {
    {"difference_words", difference_words, METH_VARARGS, NULL},
    {"nonzero_bytes", nonzero_bytes, METH_VARARGS, NULL},
    {"sum_words", sum_words, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
