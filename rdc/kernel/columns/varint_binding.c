/* varint_binding.c - Python bindings for columns of varints. */
#include "module.h"

#include "columns/varints.h"

static PyObject *pack_varints(PyObject *module, PyObject *args)
{
    Py_buffer numbers;
    PyObject *packed = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*:pack_varints", &numbers))
        return NULL;
    if (numbers.len % 8)
        PyErr_Format(PyExc_ValueError, "varints: %zd bytes are no 64-bit numbers", numbers.len);
    else if (numbers.len > PY_SSIZE_T_MAX / 2)
        PyErr_NoMemory();
    else
        packed = PyBytes_FromStringAndSize(NULL, numbers.len / 8 * RDC_VARINT_BYTES);
    if (packed) {
        const int64_t made =
            rdc_pack_varints(numbers.buf, (size_t)numbers.len / 8, (uint8_t *)PyBytes_AS_STRING(packed));
        if (made < 0) {
            PyErr_SetString(PyExc_ValueError, "varints: a number past 2^63 - 1");
            Py_CLEAR(packed);
        } else
            _PyBytes_Resize(&packed, (Py_ssize_t)made);
    }
    PyBuffer_Release(&numbers);
    return packed;
}

static PyObject *unpack_varints(PyObject *module, PyObject *args)
{
    Py_buffer data;
    Py_ssize_t start, count;
    PyObject *numbers = NULL, *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*nn:unpack_varints", &data, &start, &count))
        return NULL;
    if (start < 0 || start > data.len || count < 0 || count > data.len - start)
        PyErr_Format(PyExc_ValueError, "varints: %zd are not in %zd bytes from %zd on", count, data.len, start);
    else
        numbers = PyBytes_FromStringAndSize(NULL, 8 * count);
    if (numbers) {
        const int64_t taken = rdc_unpack_varints((const uint8_t *)data.buf + start, (size_t)(data.len - start),
                                                 (size_t)count, (uint64_t *)(void *)PyBytes_AS_STRING(numbers));
        if (taken < 0)
            PyErr_SetString(PyExc_ValueError, "varints: cut short, past 2^63 - 1, or with needless bytes");
        else
            result = Py_BuildValue("(On)", numbers, start + (Py_ssize_t)taken);
    }
    Py_XDECREF(numbers);
    PyBuffer_Release(&data);
    return result;
}

static PyMethodDef functions[] = {
    {"pack_varints", pack_varints, METH_VARARGS, NULL},
    {"unpack_varints", unpack_varints, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_varint_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
