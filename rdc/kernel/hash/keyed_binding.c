/* keyed_binding.c - Python bindings for short references and name ranks, both by keyed SipHash. */
#include "module.h"

#include "hash/name_ranks.h"
#include "hash/siphash.h"

static PyObject *short_references(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"key", "records", "stride", "width", NULL};
    Py_buffer key, records;
    Py_ssize_t stride, width;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*y*nn:short_references", names, &key, &records, &stride, &width))
        return NULL;
    if (key.len != 16 || stride < 32 || width < 1 || width > 8 || records.len % stride) {
        PyErr_Format(PyExc_ValueError,
                     "short references: a key of 16 bytes (found %zd), a width of 1 to 8 (%zd), records of >= 32 "
                     "bytes (%zd) without a rest (%zd bytes)",
                     key.len, width, stride, records.len);
        goto done;
    }
    Py_ssize_t count = records.len / stride;
    result = PyBytes_FromStringAndSize(NULL, count * width);
    if (!result)
        goto done;
    uint8_t *out = (uint8_t *)PyBytes_AS_STRING(result);
    Py_BEGIN_ALLOW_THREADS
    rdc_short_references(key.buf, records.buf, (size_t)count, (size_t)stride, (unsigned)width, out);
    Py_END_ALLOW_THREADS
done:
    PyBuffer_Release(&key);
    PyBuffer_Release(&records);
    return result;
}

static PyObject *name_ranks(PyObject *module, PyObject *args)
{
    Py_buffer key, names;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*:name_ranks", &key, &names))
        return NULL;
    const size_t count = rdc_count_names(names.buf, (size_t)names.len);
    if (key.len != 16 || count == SIZE_MAX) {
        PyErr_Format(PyExc_ValueError,
                     "name ranks: a key of 16 bytes (found %zd), names each followed by NUL (%zd bytes)", key.len,
                     names.len);
        goto done;
    }
    result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(8 * count));
    if (!result)
        goto done;
    uint8_t *out = (uint8_t *)PyBytes_AS_STRING(result);
    if (names.len >= UNLOCK_FROM) {
        Py_BEGIN_ALLOW_THREADS
        rdc_name_ranks(key.buf, names.buf, count, out);
        Py_END_ALLOW_THREADS
    } else {
        rdc_name_ranks(key.buf, names.buf, count, out);
    }
done:
    PyBuffer_Release(&key);
    PyBuffer_Release(&names);
    return result;
}

static PyMethodDef functions[] = {
    {"name_ranks", name_ranks, METH_VARARGS, NULL},
    {"short_references", (PyCFunction)(void (*)(void))short_references, METH_VARARGS | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_keyed_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
