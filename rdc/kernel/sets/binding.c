/* binding.c - the resemblance of sets for Python; tests/reference/overlaps.py,
 * tests/reference/pairs.py and tests/reference/windows.py document each name.
 *
 * All work is done without the interpreter's lock. */
#include "module.h"

#include "sets/numbers.h"
#include "sets/overlaps.h"
#include "sets/windows.h"

#define UNSORTED SIZE_MAX

typedef struct {
    Py_buffer values, offsets, pairs;
    size_t sets, count; /* sets, pairs */
    size_t largest;     /* elements of the largest set */
} request;

/* Checks what tests/reference/overlaps.py checks. Returns -1 with an exception set. */
static int check(request *r)
{
    if (rdc_whole_numbers(&r->values, 4) || rdc_whole_numbers(&r->offsets, 8) || rdc_whole_numbers(&r->pairs, 4))
        return -1;
    const int64_t *offset = r->offsets.buf;
    const size_t bounds = (size_t)r->offsets.len / 8, size = (size_t)r->values.len / 4;
    if (!bounds || offset[0] < 0 || offset[bounds - 1] > (int64_t)size) {
        PyErr_Format(PyExc_ValueError, "offsets: one more than sets, from 0 to at most %zu, are expected", size);
        return -1;
    }
    r->sets = bounds - 1;
    for (size_t i = 0; i < r->sets; i++) {
        if (offset[i + 1] < offset[i]) {
            PyErr_SetString(PyExc_ValueError, "offsets must not decrease");
            return -1;
        }
        if ((size_t)(offset[i + 1] - offset[i]) > r->largest)
            r->largest = (size_t)(offset[i + 1] - offset[i]);
    }
    const uint32_t *pair = r->pairs.buf;
    const size_t numbers = (size_t)r->pairs.len / 4;
    r->count = numbers / 2;
    for (size_t i = 0; i < numbers; i++)
        if (pair[i] >= r->sets)
            r->count = SIZE_MAX;
    if (r->count == SIZE_MAX || numbers % 2) {
        PyErr_Format(PyExc_ValueError, "pairs: two numbers below %zu each are expected", r->sets);
        return -1;
    }
    return 0;
}

static PyObject *set_resemblances(PyObject *module, PyObject *args)
{
    request r = {0};
    double threshold;
    PyObject *result = NULL;
    uint32_t *room = NULL;
    size_t *sizes = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "w*y*y*d:set_resemblances", &r.values, &r.offsets, &r.pairs, &threshold))
        return NULL;
    if (check(&r))
        goto done;
    if (!(threshold >= 0 && threshold <= 1)) {
        PyErr_SetString(PyExc_ValueError, "threshold: 0 to 1 is expected");
        goto done;
    }
    room = malloc(4 * r.largest + 4);
    sizes = malloc(sizeof *sizes * (r.sets + 1));
    if (!room || !sizes) {
        PyErr_NoMemory();
        goto done;
    }
    result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(sizeof(double) * r.count));
    if (result) {
        const int64_t *offset = r.offsets.buf;
        const uint32_t *pair = r.pairs.buf;
        uint32_t *values = r.values.buf;
        double *found = (double *)(void *)PyBytes_AS_STRING(result);
        Py_BEGIN_ALLOW_THREADS
        for (size_t i = 0; i < r.sets; i++)
            sizes[i] = UNSORTED;
        for (size_t i = 0; i < r.count; i++) {
            const size_t a = pair[2 * i], b = pair[2 * i + 1];
            for (int half = 0; half < 2; half++) {
                const size_t set = half ? b : a;
                if (sizes[set] == UNSORTED)
                    sizes[set] = rdc_sorted_set(values + offset[set], (size_t)(offset[set + 1] - offset[set]), room);
            }
            found[i] = rdc_resemblance(values + offset[a], sizes[a], values + offset[b], sizes[b], threshold);
        }
        Py_END_ALLOW_THREADS
    }
done:
    free(room);
    free(sizes);
    PyBuffer_Release(&r.values);
    PyBuffer_Release(&r.offsets);
    PyBuffer_Release(&r.pairs);
    return result;
}

static PyMethodDef methods[] = {
    {"alike_counts", rdc_py_alike_counts, METH_VARARGS, NULL},
    {"alike_pairs", rdc_py_alike_pairs, METH_VARARGS, NULL},
    {"label_pairs", rdc_py_label_pairs, METH_VARARGS, NULL},
    {"missing_pairs", rdc_py_missing_pairs, METH_VARARGS, NULL},
    {"neighbour_pairs", rdc_py_neighbour_pairs, METH_VARARGS, NULL},
    {"ranked_numbers", rdc_py_ranked_numbers, METH_O, NULL},
    {"set_resemblances", set_resemblances, METH_VARARGS, NULL},
    {"shared_numbers", rdc_py_shared_numbers, METH_VARARGS, NULL},
    {"sorted_pairs", rdc_py_sorted_pairs, METH_O, NULL},
    {"window_hashes", rdc_py_window_hashes, METH_VARARGS, NULL},
    {"window_sketch", rdc_py_window_sketch, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_set_functions(PyObject *module)
{
    rdc_windows_start();
    return PyModule_AddFunctions(module, methods);
}
