/* code_binding.c - the targets of branches in machine code, rewritten, as Python functions. */
#include "binding.h"

#include "code_targets.h"
#include "places.h"

/* Rewrites `content` in the pieces that `places` names: an offset and a length each. */
static PyObject *move_targets(PyObject *args, const char *format, rdc_direction direction)
{
    Py_buffer content, places;
    PyObject *result = NULL;
    size_t moved = 0;
    if (!PyArg_ParseTuple(args, format, &content, &places))
        return NULL;
    const uint8_t *packed = places.buf;
    if (!rdc_places_fill(packed, (size_t)places.len, (size_t)content.len)) {
        PyErr_Format(PyExc_ValueError,
                     "code targets: an offset and a length for each piece, of %zd bytes in all (%zd bytes)", content.len,
                     places.len);
        goto done;
    }
    uint8_t *code = content.buf;
    Py_BEGIN_ALLOW_THREADS
    for (size_t i = 0; i < (size_t)places.len / sizeof(rdc_place); i++) {
        const rdc_place place = rdc_place_of(packed, i);
        moved += rdc_move_targets(code, (size_t)place.length, place.offset, direction);
        code += place.length;
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
