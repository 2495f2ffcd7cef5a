/* word_binding.c - Python bindings for the differences between rows of number tables. */
#include "module.h"

#include "ranges.h"
#include "columns/word_differences.h"

typedef void rewriting(uint8_t *part, size_t size, uint64_t offset, size_t stride);

static PyObject *rewrite(PyObject *args, const char *format, rewriting *each)
{
    Py_buffer content, ranges;
    Py_ssize_t stride;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, format, &content, &ranges, &stride))
        return NULL;
    const uint8_t *packed = ranges.buf;
    if (stride < 4 || stride % 4) {
        PyErr_Format(PyExc_ValueError, "word differences: a stride of %zd bytes", stride);
    } else if (!rdc_ranges_fill(packed, (size_t)ranges.len, (size_t)content.len)) {
        PyErr_Format(PyExc_ValueError,
                     "word differences: an offset and a length for each part, of %zd bytes in all (%zd bytes)",
                     content.len, ranges.len);
    } else {
        uint8_t *part = content.buf;
        Py_BEGIN_ALLOW_THREADS
        for (size_t i = 0; i < (size_t)ranges.len / sizeof(rdc_range); i++) {
            const rdc_range range = rdc_range_of(packed, i);
            each(part, (size_t)range.length, range.offset, (size_t)stride);
            part += range.length;
        }
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    PyBuffer_Release(&content);
    PyBuffer_Release(&ranges);
    return result;
}

static PyObject *difference_words(PyObject *module, PyObject *args)
{
    (void)module;
    return rewrite(args, "w*y*n:difference_words", rdc_difference_words);
}

static PyObject *sum_words(PyObject *module, PyObject *args)
{
    (void)module;
    return rewrite(args, "w*y*n:sum_words", rdc_sum_words);
}

static PyObject *nonzero_bytes(PyObject *module, PyObject *args)
{
    Py_buffer content;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*:nonzero_bytes", &content))
        return NULL;
    const size_t count = rdc_nonzero_bytes(content.buf, (size_t)content.len);
    PyBuffer_Release(&content);
    return PyLong_FromSize_t(count);
}

static PyMethodDef functions[] = {
    {"difference_words", difference_words, METH_VARARGS, NULL},
    {"nonzero_bytes", nonzero_bytes, METH_VARARGS, NULL},
    {"sum_words", sum_words, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_word_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
