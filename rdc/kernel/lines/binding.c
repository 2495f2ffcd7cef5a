/* binding.c - texts of JSON lines for Python; tests/reference/lines.py documents it.
 *
 * All work is done without the interpreter's lock. */
#include "module.h"

#include "lines/json_lines.h"

static PyObject *texts_of(const Py_buffer *block, const Py_buffer *field, size_t most)
{
    PyObject *result = NULL;
    size_t lines = 0, size = 0;
    Py_BEGIN_ALLOW_THREADS
    lines = rdc_count_lines(block->buf, (size_t)block->len);
    Py_END_ALLOW_THREADS
    if (lines > (size_t)PY_SSIZE_T_MAX / 8 - 1 || block->len > PY_SSIZE_T_MAX - RDC_JSON_BLOCK)
        return PyErr_NoMemory();
    /* Texts are shorter than their lines. What is behind them stays, as shrinking or copying takes longer. */
    const size_t room = (size_t)block->len + RDC_JSON_BLOCK;
    RDC_OBJECT *texts = rdc_new_bytes(room), *bounds = rdc_new_bytes(8 * (lines + 1)), *left = rdc_new_bytes(lines);
    if (texts && bounds && left) {
        uint8_t *const to = rdc_inside(texts);
        Py_BEGIN_ALLOW_THREADS
        size = rdc_json_texts(block->buf, (size_t)block->len, field->buf, (size_t)field->len, most, to,
                              rdc_inside(bounds), rdc_inside(left));
        memset(to + size, 0, room - size);
        Py_END_ALLOW_THREADS
        result = PyTuple_Pack(3, texts, bounds, left);
    }
    return result;
}

static PyObject *json_texts(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER block = {0}, field = {0};
    Py_ssize_t most;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*n:json_texts", &block, &field, &most))
        return NULL;
    if (most < 0)
        PyErr_SetString(PyExc_ValueError, "most: 0 or more bytes are expected");
    else
        result = texts_of(&block, &field, (size_t)most);
    return result;
}

PyMethodDef rdc_line_functions[] = {
    {"json_texts", json_texts, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
