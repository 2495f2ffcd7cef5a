/* numbers.h - arguments that are columns of numbers, and functions of the module in other files. */
#ifndef RDC_SET_NUMBERS_H
#define RDC_SET_NUMBERS_H

#include <Python.h>
#include <stdint.h>

/* Returns -1 with an exception if a column is no whole, aligned numbers of `width` bytes. */
static inline int rdc_whole_numbers(const Py_buffer *view, Py_ssize_t width)
{
    if (view->len % width == 0 && (!view->len || (uintptr_t)view->buf % (size_t)width == 0))
        return 0;
    PyErr_Format(PyExc_ValueError, "%zd bytes are no whole numbers of %zd bytes", view->len, width);
    return -1;
}

/* alike_binding.c */
PyObject *rdc_py_alike_counts(PyObject *module, PyObject *args);
PyObject *rdc_py_alike_pairs(PyObject *module, PyObject *args);
PyObject *rdc_py_label_pairs(PyObject *module, PyObject *args);

/* pair_binding.c */
PyObject *rdc_py_missing_pairs(PyObject *module, PyObject *args);
PyObject *rdc_py_neighbour_pairs(PyObject *module, PyObject *args);
PyObject *rdc_py_ranked_numbers(PyObject *module, PyObject *argument);
PyObject *rdc_py_sorted_pairs(PyObject *module, PyObject *argument);

/* window_binding.c */
PyObject *rdc_py_window_hashes(PyObject *module, PyObject *args);
PyObject *rdc_py_window_sketch(PyObject *module, PyObject *argument);
PyObject *rdc_py_shared_numbers(PyObject *module, PyObject *args);

#endif
