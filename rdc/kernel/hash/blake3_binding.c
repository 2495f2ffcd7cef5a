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

typedef struct {
    Py_buffer *views;
    Py_ssize_t count;
} held_views;

static void release_views(held_views *held)
{
    while (held->count > 0)
        PyBuffer_Release(held->views + --held->count);
    free(held->views);
}

static PyObject *name_inputs(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *variant;
    PyObject *list;
    if (!PyArg_ParseTuple(args, "O!s:name_inputs", &PyList_Type, &list, &variant))
        return NULL;
    const rdc_naming *naming = find(variant);
    if (!naming)
        return NULL;
    const Py_ssize_t count = PyList_GET_SIZE(list);
    RDC_CLEANUP(release_views) held_views held = {calloc((size_t)count + 1, sizeof *held.views), 0};
    RDC_MEMORY rdc_input *inputs = calloc((size_t)count + 1, sizeof *inputs);
    size_t total = 0;
    if (!held.views || !inputs)
        return PyErr_NoMemory();
    /* Other threads may change the list meanwhile, but not the buffers that are acquired. */
    for (; held.count < count && held.count < PyList_GET_SIZE(list); held.count++) {
        Py_buffer *view = held.views + held.count;
        if (PyObject_GetBuffer(PyList_GET_ITEM(list, held.count), view, PyBUF_SIMPLE))
            return NULL;
        inputs[held.count] = (rdc_input){view->buf, (size_t)view->len};
        total += (size_t)view->len;
    }
    PyObject *result = rdc_new_bytes((uint64_t)held.count * RDC_NAME_BYTES);
    if (!result)
        return NULL;
    PyThreadState *thread = total >= UNLOCK_NAMING_FROM ? PyEval_SaveThread() : NULL;
    const int failed = rdc_name_inputs(naming, NULL, inputs, (size_t)held.count, rdc_inside(result));
    rdc_lock(thread);
    if (!failed)
        return result;
    Py_DECREF(result);
    return PyErr_NoMemory();
}

static PyObject *name_parts(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *variant;
    RDC_BUFFER data = {0}, sizes = {0}, key = {0};
    int failed;
    if (!PyArg_ParseTuple(args, "y*y*z*s:name_parts", &data, &sizes, &key, &variant))
        return NULL;
    const rdc_naming *naming = find(variant);
    const size_t count = (size_t)sizes.len / 8;
    uint64_t left = (uint64_t)data.len;
    if (!naming)
        return NULL;
    if (key.buf && key.len != RDC_NAME_BYTES)
        return PyErr_Format(PyExc_ValueError, "a key of %d bytes is needed", RDC_NAME_BYTES);
    RDC_MEMORY rdc_input *inputs = calloc(count + 1, sizeof *inputs);
    if (!inputs)
        return PyErr_NoMemory();
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
    if (found < count || left || sizes.len % 8)
        return PyErr_Format(PyExc_ValueError, "the sizes, 8 bytes each, add up to another length than the data's");
    PyObject *result = rdc_new_bytes((uint64_t)count * RDC_NAME_BYTES);
    if (!result)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    failed = rdc_name_inputs(naming, key.buf, inputs, count, rdc_inside(result));
    Py_END_ALLOW_THREADS
    if (!failed)
        return result;
    Py_DECREF(result);
    return PyErr_NoMemory();
}

static PyObject *naming_variants(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    RDC_OBJECT *list = PyList_New(0);
    for (const rdc_naming *const *naming = rdc_namings; *naming; naming++)
        if ((*naming)->usable() && rdc_append_name(list, (*naming)->name))
            return NULL;
    return PyList_AsTuple(list);
}

PyMethodDef rdc_naming_functions[] = {
    {"name_parts", name_parts, METH_VARARGS, NULL},
    {"name_inputs", name_inputs, METH_VARARGS, NULL},
    {"naming_variants", naming_variants, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
