/* branch_binding.c - Python bindings that make x86 displacements absolute and back. */
#include "module.h"

#include "x86/x86.h"
#include "ranges.h"

/* Rewrites `content` in the parts that the argument lists: an offset and a length each. */
static PyObject *move_displacements(PyObject *args, const char *format, rdc_direction direction)
{
    RDC_BUFFER content = {0}, ranges = {0};
    size_t moved = 0;
    if (!PyArg_ParseTuple(args, format, &content, &ranges))
        return NULL;
    const uint8_t *packed = ranges.buf;
    if (!rdc_ranges_fill(packed, (size_t)ranges.len, (size_t)content.len))
        return PyErr_Format(PyExc_ValueError,
                            "displacements: an offset and a length for each part, of %zd bytes in all (%zd bytes)", content.len,
                            ranges.len);
    uint8_t *code = content.buf;
    Py_BEGIN_ALLOW_THREADS
    for (size_t i = 0; i < (size_t)ranges.len / sizeof(rdc_range); i++) {
        const rdc_range range = rdc_range_of(packed, i);
        moved += rdc_move_displacements(code, (size_t)range.length, range.offset, direction);
        code += range.length;
    }
    Py_END_ALLOW_THREADS
    return PyLong_FromSize_t(moved);
}

static PyObject *absolute_displacements(PyObject *Py_UNUSED(module), PyObject *args)
{
    return move_displacements(args, "w*y*:absolute_displacements", RDC_ABSOLUTE);
}

static PyObject *relative_displacements(PyObject *Py_UNUSED(module), PyObject *args)
{
    return move_displacements(args, "w*y*:relative_displacements", RDC_RELATIVE);
}

PyMethodDef rdc_branch_functions[] = {
    {"absolute_displacements", absolute_displacements, METH_VARARGS, NULL},
    {"relative_displacements", relative_displacements, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
