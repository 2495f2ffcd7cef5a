/* varint_binding.c - Python bindings for columns of varints. */
#include "module.h"

#include "columns/columns.h"

static PyObject *pack_varints(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER numbers = {0};
    if (!PyArg_ParseTuple(args, "y*:pack_varints", &numbers))
        return NULL;
    if (numbers.len % 8)
        return PyErr_Format(PyExc_ValueError, "varints: %zd bytes are no 64-bit numbers", numbers.len);
    PyObject *packed = rdc_new_bytes((uint64_t)numbers.len / 8 * RDC_VARINT_BYTES);
    if (!packed)
        return NULL;
    const int64_t made = rdc_pack_varints(numbers.buf, (size_t)numbers.len / 8, rdc_inside(packed));
    if (made < 0) {
        Py_DECREF(packed);
        return PyErr_Format(PyExc_ValueError, "varints: a number past 2^63 - 1");
    }
    _PyBytes_Resize(&packed, (Py_ssize_t)made);
    return packed;
}

static PyObject *unpack_varints(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER data = {0};
    Py_ssize_t start, count;
    if (!PyArg_ParseTuple(args, "y*nn:unpack_varints", &data, &start, &count))
        return NULL;
    if (start < 0 || start > data.len || count < 0 || count > data.len - start)
        return PyErr_Format(PyExc_ValueError, "varints: %zd are not in %zd bytes from %zd on", count, data.len, start);
    RDC_OBJECT *numbers = rdc_new_bytes(8 * (uint64_t)count);
    if (!numbers)
        return NULL;
    const int64_t taken = rdc_unpack_varints((const uint8_t *)data.buf + start, (size_t)(data.len - start), (size_t)count,
                                             rdc_inside(numbers));
    if (taken < 0)
        return PyErr_Format(PyExc_ValueError, "varints: cut short, past 2^63 - 1, or with needless bytes");
    return Py_BuildValue("(On)", numbers, start + (Py_ssize_t)taken);
}

PyMethodDef rdc_varint_functions[] = {
    {"pack_varints", pack_varints, METH_VARARGS, NULL},
    {"unpack_varints", unpack_varints, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
