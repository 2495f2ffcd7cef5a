/* columns.h - arguments that are columns of numbers, and functions of the module in other files. */
#ifndef RDC_COUNT_COLUMNS_H
#define RDC_COUNT_COLUMNS_H

#include <Python.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the numbers in a column, or NULL with an exception set. */
static inline const uint64_t *rdc_column_numbers(const Py_buffer *view, size_t *count)
{
    if (view->len % 8 || (view->len && (uintptr_t)view->buf % 8)) {
        PyErr_Format(PyExc_ValueError, "%zd bytes: whole 64-bit numbers, aligned, are expected", view->len);
        return NULL;
    }
    *count = (size_t)view->len / 8;
    return view->buf;
}

/* Returns -1 with an exception set unless columns have one length. */
static inline int rdc_same_length(size_t first, size_t second)
{
    if (first == second)
        return 0;
    PyErr_Format(PyExc_ValueError, "columns of %zu and %zu rows", first, second);
    return -1;
}

/* rows_binding.c */
PyObject *rdc_py_left_after_rows(PyObject *module, PyObject *args);

PyObject *rdc_py_select_chunks(PyObject *module, PyObject *args);

#endif
