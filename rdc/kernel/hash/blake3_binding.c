/* blake3_binding.c - BLAKE3 of many inputs as a Python module;
 * rdc/kernel/blake3_many.py documents it. */
#include "module.h"

#include <string.h>

#include "hash/blake3_lanes.h"

/* From this many bytes on, releasing the lock costs less than holding it: a few microseconds of work. */
#define UNLOCK_NAMING_FROM 16384

static const rdc_naming *find(const char *name)
{
    for (const rdc_naming *const *naming = rdc_namings; *naming; naming++)
        if (!strcmp((*naming)->name, name) && (*naming)->usable())
            return *naming;
    PyErr_Format(PyExc_ValueError, "no naming by %s here", name);
    return NULL;
}

static PyObject *name_inputs(PyObject *module, PyObject *args)
{
    const char *variant;
    PyObject *list, *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!s:name_inputs", &PyList_Type, &list, &variant))
        return NULL;
    const rdc_naming *naming = find(variant);
    if (!naming)
        return NULL;
    const Py_ssize_t count = PyList_GET_SIZE(list);
    Py_buffer *views = PyMem_Calloc((size_t)count + 1, sizeof *views);
    rdc_input *inputs = PyMem_Calloc((size_t)count + 1, sizeof *inputs);
    Py_ssize_t acquired = 0;
    size_t total = 0;
    int failed;
    if (!views || !inputs) {
        PyErr_NoMemory();
        goto done;
    }
    /* Other threads may change the list meanwhile, but not the buffers that are acquired. */
    for (; acquired < count && acquired < PyList_GET_SIZE(list); acquired++) {
        if (PyObject_GetBuffer(PyList_GET_ITEM(list, acquired), views + acquired, PyBUF_SIMPLE))
            goto done;
        inputs[acquired] = (rdc_input){views[acquired].buf, (size_t)views[acquired].len};
        total += (size_t)views[acquired].len;
    }
    result = PyBytes_FromStringAndSize(NULL, acquired * RDC_NAME_BYTES);
    if (!result)
        goto done;
    uint8_t *out = (uint8_t *)PyBytes_AS_STRING(result);
    if (total >= UNLOCK_NAMING_FROM) {
        Py_BEGIN_ALLOW_THREADS
        failed = rdc_name_inputs(naming, NULL, inputs, (size_t)acquired, out);
        Py_END_ALLOW_THREADS
    } else {
        failed = rdc_name_inputs(naming, NULL, inputs, (size_t)acquired, out);
    }
    if (failed) {
        Py_CLEAR(result);
        PyErr_NoMemory();
    }
done:
    while (acquired-- > 0)
        PyBuffer_Release(views + acquired);
    PyMem_Free(views);
    PyMem_Free(inputs);
    return result;
}

static PyObject *name_parts(PyObject *module, PyObject *args)
{
    const char *variant;
    Py_buffer data, sizes, key = {0};
    PyObject *result = NULL;
    rdc_input *inputs = NULL;
    int failed;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*z*s:name_parts", &data, &sizes, &key, &variant))
        return NULL;
    const rdc_naming *naming = find(variant);
    const size_t count = (size_t)sizes.len / 8;
    uint64_t left = (uint64_t)data.len;
    if (!naming)
        goto done;
    if (key.buf && key.len != RDC_NAME_BYTES) {
        PyErr_Format(PyExc_ValueError, "a key of %d bytes is needed", RDC_NAME_BYTES);
        goto done;
    }
    inputs = PyMem_Calloc(count + 1, sizeof *inputs);
    result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * RDC_NAME_BYTES));
    if (!inputs || !result) {
        Py_CLEAR(result);
        PyErr_NoMemory();
        goto done;
    }
    const uint8_t *at = data.buf;
    size_t found = 0;
    for (; found < count; found++) {
        uint64_t size;
        memcpy(&size, (const char *)sizes.buf + 8 * found, 8);
        if (size > left)
            break;
        inputs[found] = (rdc_input){at, (size_t)size};
        at += size;
        left -= size;
    }
    if (found < count || left || sizes.len % 8) {
        PyErr_SetString(PyExc_ValueError, "the sizes, 8 bytes each, add up to another length than the data's");
        Py_CLEAR(result);
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    failed = rdc_name_inputs(naming, key.buf, inputs, count, (uint8_t *)PyBytes_AS_STRING(result));
    Py_END_ALLOW_THREADS
    if (failed) {
        Py_CLEAR(result);
        PyErr_NoMemory();
    }
done:
    PyMem_Free(inputs);
    PyBuffer_Release(&data);
    PyBuffer_Release(&sizes);
    if (key.obj)
        PyBuffer_Release(&key);
    return result;
}

static PyObject *naming_variants(PyObject *module, PyObject *ignored)
{
    PyObject *list = PyList_New(0), *tuple = NULL;
    (void)module, (void)ignored;
    for (const rdc_naming *const *naming = rdc_namings; list && *naming; naming++) {
        if (!(*naming)->usable())
            continue;
        PyObject *name = PyUnicode_FromString((*naming)->name);
        if (!name || PyList_Append(list, name))
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    if (list)
        tuple = PyList_AsTuple(list);
    Py_XDECREF(list);
    return tuple;
}

static PyMethodDef functions[] = {
    {"name_parts", name_parts, METH_VARARGS, NULL},
    {"name_inputs", name_inputs, METH_VARARGS, NULL},
    {"naming_variants", naming_variants, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_naming_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
