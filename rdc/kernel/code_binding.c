/* code_binding.c - the targets of branches in machine code, rewritten, as Python functions. */
#include "binding.h"

#include "code_targets.h"

/* Rewrites `content` in the pieces that `places` names: an offset and a length each. */
static PyObject *move_targets(PyObject *args, const char *format, rdc_direction direction)
{
    Py_buffer content, places;
    PyObject *result = NULL;
    uint64_t total = 0;
    size_t moved = 0;
    if (!PyArg_ParseTuple(args, format, &content, &places))
        return NULL;
    const size_t pieces = (size_t)places.len / 16, size = (size_t)content.len;
    int fits = places.len % 16 == 0;
    for (size_t i = 0; fits && i < pieces; i++) {
        uint64_t length;
        memcpy(&length, (const uint8_t *)places.buf + 16 * i + 8, sizeof length);
        fits = length <= size - total;
        total += length;
    }
    if (!fits || total != size) {
        PyErr_Format(PyExc_ValueError,
                     "code targets: an offset and a length for each piece, of %zd bytes in all (%zd bytes)", content.len,
                     places.len);
        goto done;
    }
    uint8_t *code = content.buf;
    Py_BEGIN_ALLOW_THREADS
    for (size_t i = 0; i < pieces; i++) {
        uint64_t place[2];
        memcpy(place, (const uint8_t *)places.buf + 16 * i, sizeof place);
        moved += rdc_move_targets(code, (size_t)place[1], place[0], direction);
        code += place[1];
    }
    Py_END_ALLOW_THREADS
    result = PyLong_FromSize_t(moved);
done:
    PyBuffer_Release(&content);
    PyBuffer_Release(&places);
    return result;
}

static PyObject *absolute_targets(PyObject *module, PyObject *args)
{
    (void)module;
    return move_targets(args, "w*y*:absolute_targets", RDC_ABSOLUTE);
}

static PyObject *relative_targets(PyObject *module, PyObject *args)
{
    (void)module;
    return move_targets(args, "w*y*:relative_targets", RDC_RELATIVE);
}

static PyMethodDef functions[] = {
    {"absolute_targets", absolute_targets, METH_VARARGS, NULL},
    {"relative_targets", relative_targets, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_code_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
