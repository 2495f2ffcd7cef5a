/* pair_binding.c - pairs of neighbours for Python; tests/reference/pairs.py documents each name. */
#include "module.h"

#include "sets/sets.h"

static PyObject *pairs_of(const Py_buffer *members, const Py_buffer *counts, Py_ssize_t window, Py_ssize_t first,
                          Py_ssize_t stop)
{
    const size_t size = (size_t)members->len / 4, groups = (size_t)counts->len / 4;
    const uint32_t *count = counts->buf;
    uint64_t total = 0;
    for (size_t i = 0; i < groups; i++)
        total += count[i];
    if (total != size)
        return PyErr_Format(PyExc_ValueError, "counts: %zu members are expected", size);
    if (window < 0 || first < 0 || stop < 0)
        return PyErr_Format(PyExc_ValueError, "window, first, stop: 0 or more is expected");
    const size_t found =
        rdc_neighbour_pairs(members->buf, count, groups, (size_t)window, (size_t)first, (size_t)stop, NULL);
    PyObject *result = found > SIZE_MAX / 8 ? PyErr_NoMemory() : rdc_new_bytes(8 * found);
    if (result)
        rdc_neighbour_pairs(members->buf, count, groups, (size_t)window, (size_t)first, (size_t)stop, rdc_inside(result));
    return result;
}

static PyObject *neighbour_pairs(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER members = {0}, counts = {0};
    Py_ssize_t window, first, stop;
    if (!PyArg_ParseTuple(args, "y*y*nnn:neighbour_pairs", &members, &counts, &window, &first, &stop) ||
        rdc_check_column(&members, 4, "members") || rdc_check_column(&counts, 4, "counts"))
        return NULL;
    return pairs_of(&members, &counts, window, first, stop);
}

static PyObject *sorted_pairs(PyObject *Py_UNUSED(module), PyObject *argument)
{
    RDC_BUFFER pairs = {0};
    size_t count;
    if (PyObject_GetBuffer(argument, &pairs, PyBUF_SIMPLE) || rdc_check_column(&pairs, 8, "pairs"))
        return NULL;
    RDC_MEMORY uint64_t *room = malloc((size_t)pairs.len + 1);
    PyObject *result = room ? PyBytes_FromStringAndSize(pairs.buf, pairs.len) : PyErr_NoMemory();
    if (!result || !pairs.len)
        return result;
    Py_BEGIN_ALLOW_THREADS
    count = rdc_sorted_pairs(rdc_inside(result), (size_t)pairs.len / 8, room);
    Py_END_ALLOW_THREADS
    _PyBytes_Resize(&result, (Py_ssize_t)(8 * count));
    return result;
}

static PyObject *missing_pairs(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER pairs = {0}, known = {0};
    size_t count;
    if (!PyArg_ParseTuple(args, "y*y*:missing_pairs", &pairs, &known) || rdc_check_column(&pairs, 8, "pairs") ||
        rdc_check_column(&known, 8, "known"))
        return NULL;
    PyObject *result = rdc_new_bytes((uint64_t)pairs.len);
    if (!result)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    count = rdc_missing_pairs(pairs.buf, (size_t)pairs.len / 8, known.buf, (size_t)known.len / 8, rdc_inside(result));
    Py_END_ALLOW_THREADS
    _PyBytes_Resize(&result, (Py_ssize_t)(8 * count));
    return result;
}

static PyObject *ranked_numbers(PyObject *Py_UNUSED(module), PyObject *argument)
{
    RDC_BUFFER numbers = {0};
    size_t found;
    if (PyObject_GetBuffer(argument, &numbers, PyBUF_SIMPLE) || rdc_check_column(&numbers, 4, "numbers"))
        return NULL;
    const size_t count = (size_t)numbers.len / 4;
    if (count > UINT32_MAX)
        return PyErr_Format(PyExc_ValueError, "at most %u numbers are expected", UINT32_MAX);
    RDC_MEMORY uint64_t *room = malloc(16 * count + 1);
    RDC_OBJECT *different = rdc_new_bytes(4 * count), *ranks = rdc_new_bytes(4 * count);
    if (!room || !different || !ranks)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    found = rdc_ranked_numbers(numbers.buf, count, room, room + count, rdc_inside(different), rdc_inside(ranks));
    Py_END_ALLOW_THREADS
    return _PyBytes_Resize(&different, (Py_ssize_t)(4 * found)) ? NULL : PyTuple_Pack(2, different, ranks);
}

PyMethodDef rdc_pair_functions[] = {
    {"missing_pairs", missing_pairs, METH_VARARGS, NULL},
    {"neighbour_pairs", neighbour_pairs, METH_VARARGS, NULL},
    {"ranked_numbers", ranked_numbers, METH_O, NULL},
    {"sorted_pairs", sorted_pairs, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
