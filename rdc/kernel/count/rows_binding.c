/* rows_binding.c - the checks of a part's rows, and the choice of rows by key, for Python; tests/reference/counts.py documents them. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "count/columns.h"
#include "count/fold_chunks.h"
#include "count/part_rows.h"

PyObject *rdc_py_left_after_rows(PyObject *module, PyObject *args)
{
    Py_buffer keys, sizes, counts;
    PyObject *lowest;
    unsigned shift;
    unsigned long long chunks, bytes;
    size_t rows, others;
    rdc_rows_verdict verdict = RDC_ROWS_FINE;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*y*O!IKK:left_after_rows", &keys, &sizes, &counts, &PyLong_Type, &lowest, &shift,
                          &chunks, &bytes))
        return NULL;
    rdc_rows_left left = {chunks, bytes};
    const uint64_t *key = rdc_column_numbers(&keys, &rows), *size = NULL, *count = NULL;
    if (key && (size = rdc_column_numbers(&sizes, &others)) && !rdc_same_length(rows, others) &&
        (count = rdc_column_numbers(&counts, &others)) && !rdc_same_length(rows, others)) {
        const uint64_t least = PyLong_AsUnsignedLongLong(lowest);
        if (shift > 63) {
            PyErr_Format(PyExc_ValueError, "a sample of one in 2^%u: 2^0 to 2^63 is expected", shift);
        } else if (PyErr_Occurred()) {
            if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
                PyErr_Clear(); /* behind the last key there is */
                verdict = RDC_ROWS_DISORDERED;
            }
        } else if (rows) {
            verdict = rdc_judge_rows(key, size, count, rows, least, shift, &left);
        }
    }
    if (verdict == RDC_ROWS_DISORDERED)
        PyErr_SetString(PyExc_ValueError, "keys out of order");
    else if (verdict == RDC_ROWS_TOO_MANY)
        PyErr_SetString(PyExc_ValueError, "more chunks than the table has");
    PyBuffer_Release(&keys);
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&counts);
    return PyErr_Occurred() ? NULL : Py_BuildValue("(KK)", (unsigned long long)left.chunks, (unsigned long long)left.bytes);
}

static PyObject *selected(const uint64_t *index, size_t count)
{
    return PyBytes_FromStringAndSize((const char *)index, (Py_ssize_t)(8 * count));
}

PyObject *rdc_py_select_chunks(PyObject *module, PyObject *args)
{
    Py_buffer keys;
    unsigned long long salt;
    unsigned shift;
    size_t rows;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*KI:select_chunks", &keys, &salt, &shift))
        return NULL;
    const uint64_t *key = rdc_column_numbers(&keys, &rows);
    if (key && shift > 63) {
        PyErr_Format(PyExc_ValueError, "a choice of one in 2^%u: 2^0 to 2^63 is expected", shift);
    } else if (key) {
        uint64_t *index = malloc(8 * rows + 1);
        result = index ? selected(index, rdc_select_chunks(key, rows, salt, shift, index)) : PyErr_NoMemory();
        free(index);
    }
    PyBuffer_Release(&keys);
    return result;
}
