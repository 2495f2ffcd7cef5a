/* window_binding.c - windows of a content for Python; tests/reference/windows.py documents each name. */
#include "module.h"

#include "sets/sets.h"

static PyObject *window_hashes(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER data = {0};
    unsigned long long last;
    size_t found;
    if (!PyArg_ParseTuple(args, "y*K:window_hashes", &data, &last))
        return NULL;
    PyObject *result = rdc_new_bytes(8 * (uint64_t)data.len);
    if (!result)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    found = rdc_window_hashes(data.buf, (size_t)data.len, last, rdc_inside(result));
    Py_END_ALLOW_THREADS
    _PyBytes_Resize(&result, (Py_ssize_t)(8 * found));
    return result;
}

static PyObject *window_sketch(PyObject *Py_UNUSED(module), PyObject *argument)
{
    RDC_BUFFER data = {0};
    uint8_t sketch[RDC_SKETCH];
    if (PyObject_GetBuffer(argument, &data, PyBUF_SIMPLE))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rdc_window_sketch(data.buf, (size_t)data.len, sketch);
    Py_END_ALLOW_THREADS
    return PyBytes_FromStringAndSize((const char *)sketch, RDC_SKETCH);
}

static PyObject *shared_numbers(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER first = {0}, second = {0};
    size_t shared;
    if (!PyArg_ParseTuple(args, "y*y*:shared_numbers", &first, &second) || rdc_check_column(&first, 8, "first") ||
        rdc_check_column(&second, 8, "second"))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    shared = rdc_shared_numbers(first.buf, (size_t)first.len / 8, second.buf, (size_t)second.len / 8);
    Py_END_ALLOW_THREADS
    return PyLong_FromSize_t(shared);
}

PyMethodDef rdc_window_functions[] = {
    {"shared_numbers", shared_numbers, METH_VARARGS, NULL},
    {"window_hashes", window_hashes, METH_VARARGS, NULL},
    {"window_sketch", window_sketch, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
