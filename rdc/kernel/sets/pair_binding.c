/* pair_binding.c - pairs of neighbours for Python; tests/reference/pairs.py documents each name. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "sets/numbers.h"
#include "sets/pairs.h"

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
    if (found > (size_t)PY_SSIZE_T_MAX / 8)
        return PyErr_NoMemory();
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(8 * found));
    if (result)
        rdc_neighbour_pairs(members->buf, count, groups, (size_t)window, (size_t)first, (size_t)stop,
                            (uint64_t *)(void *)PyBytes_AS_STRING(result));
    return result;
}

PyObject *rdc_py_neighbour_pairs(PyObject *module, PyObject *args)
{
    Py_buffer members, counts;
    Py_ssize_t window, first, stop;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*nnn:neighbour_pairs", &members, &counts, &window, &first, &stop))
        return NULL;
    if (!rdc_whole_numbers(&members, 4) && !rdc_whole_numbers(&counts, 4))
        result = pairs_of(&members, &counts, window, first, stop);
    PyBuffer_Release(&members);
    PyBuffer_Release(&counts);
    return result;
}

PyObject *rdc_py_sorted_pairs(PyObject *module, PyObject *argument)
{
    Py_buffer pairs;
    PyObject *result = NULL;
    (void)module;
    if (PyObject_GetBuffer(argument, &pairs, PyBUF_SIMPLE))
        return NULL;
    if (!rdc_whole_numbers(&pairs, 8))
        result = PyBytes_FromStringAndSize(pairs.buf, pairs.len);
    if (result && pairs.len) {
        uint64_t *room = malloc((size_t)pairs.len);
        size_t count = 0;
        Py_BEGIN_ALLOW_THREADS
        if (room)
            count = rdc_sorted_pairs((uint64_t *)(void *)PyBytes_AS_STRING(result), (size_t)pairs.len / 8, room);
        Py_END_ALLOW_THREADS
        free(room);
        if (!room) {
            Py_CLEAR(result);
            PyErr_NoMemory();
        } else {
            _PyBytes_Resize(&result, (Py_ssize_t)(8 * count));
        }
    }
    PyBuffer_Release(&pairs);
    return result;
}

PyObject *rdc_py_missing_pairs(PyObject *module, PyObject *args)
{
    Py_buffer pairs, known;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*:missing_pairs", &pairs, &known))
        return NULL;
    if (!rdc_whole_numbers(&pairs, 8) && !rdc_whole_numbers(&known, 8))
        result = PyBytes_FromStringAndSize(NULL, pairs.len);
    if (result) {
        size_t count;
        Py_BEGIN_ALLOW_THREADS
        count = rdc_missing_pairs(pairs.buf, (size_t)pairs.len / 8, known.buf, (size_t)known.len / 8,
                                  (uint64_t *)(void *)PyBytes_AS_STRING(result));
        Py_END_ALLOW_THREADS
        _PyBytes_Resize(&result, (Py_ssize_t)(8 * count));
    }
    PyBuffer_Release(&pairs);
    PyBuffer_Release(&known);
    return result;
}

PyObject *rdc_py_ranked_numbers(PyObject *module, PyObject *argument)
{
    Py_buffer numbers;
    PyObject *different = NULL, *ranks = NULL, *result = NULL;
    (void)module;
    if (PyObject_GetBuffer(argument, &numbers, PyBUF_SIMPLE))
        return NULL;
    const size_t count = (size_t)numbers.len / 4;
    uint64_t *room = NULL;
    if (rdc_whole_numbers(&numbers, 4))
        goto done;
    if (count > UINT32_MAX) {
        PyErr_Format(PyExc_ValueError, "at most %u numbers are expected", UINT32_MAX);
        goto done;
    }
    room = malloc(16 * count + 1);
    if (!room) {
        PyErr_NoMemory();
        goto done;
    }
    different = PyBytes_FromStringAndSize(NULL, numbers.len);
    ranks = PyBytes_FromStringAndSize(NULL, numbers.len);
    if (different && ranks) {
        size_t found = 0;
        Py_BEGIN_ALLOW_THREADS
        found = rdc_ranked_numbers(numbers.buf, count, room, room + count, (uint32_t *)(void *)PyBytes_AS_STRING(different),
                                   (uint32_t *)(void *)PyBytes_AS_STRING(ranks));
        Py_END_ALLOW_THREADS
        if (!_PyBytes_Resize(&different, (Py_ssize_t)(4 * found)))
            result = PyTuple_Pack(2, different, ranks);
    }
done:
    free(room);
    Py_XDECREF(different);
    Py_XDECREF(ranks);
    PyBuffer_Release(&numbers);
    return result;
}
