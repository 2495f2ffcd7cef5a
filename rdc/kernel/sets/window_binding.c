/* window_binding.c - windows of a content for Python; tests/reference/windows.py documents each name. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "sets/numbers.h"
#include "sets/windows.h"

PyObject *rdc_py_window_hashes(PyObject *module, PyObject *args)
{
    Py_buffer data;
    unsigned long long last;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*K:window_hashes", &data, &last))
        return NULL;
    if (data.len > PY_SSIZE_T_MAX / 8)
        PyErr_NoMemory();
    else
        result = PyBytes_FromStringAndSize(NULL, 8 * data.len);
    if (result) {
        size_t found;
        Py_BEGIN_ALLOW_THREADS
        found = rdc_window_hashes(data.buf, (size_t)data.len, last, (uint64_t *)(void *)PyBytes_AS_STRING(result));
        Py_END_ALLOW_THREADS
        _PyBytes_Resize(&result, (Py_ssize_t)(8 * found));
    }
    PyBuffer_Release(&data);
    return result;
}

PyObject *rdc_py_window_sketch(PyObject *module, PyObject *argument)
{
    Py_buffer data;
    uint8_t sketch[RDC_SKETCH];
    (void)module;
    if (PyObject_GetBuffer(argument, &data, PyBUF_SIMPLE))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rdc_window_sketch(data.buf, (size_t)data.len, sketch);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    return PyBytes_FromStringAndSize((const char *)sketch, RDC_SKETCH);
}

PyObject *rdc_py_shared_numbers(PyObject *module, PyObject *args)
{
    Py_buffer first, second;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*:shared_numbers", &first, &second))
        return NULL;
    if (!rdc_whole_numbers(&first, 8) && !rdc_whole_numbers(&second, 8)) {
        size_t shared;
        Py_BEGIN_ALLOW_THREADS
        shared = rdc_shared_numbers(first.buf, (size_t)first.len / 8, second.buf, (size_t)second.len / 8);
        Py_END_ALLOW_THREADS
        result = PyLong_FromSize_t(shared);
    }
    PyBuffer_Release(&first);
    PyBuffer_Release(&second);
    return result;
}
