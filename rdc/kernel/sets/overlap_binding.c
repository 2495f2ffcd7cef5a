/* overlap_binding.c - the resemblance of sets for Python; tests/reference/overlaps.py documents it.
 *
 * All work is done without the interpreter's lock. */
#include "module.h"

#include "sets/sets.h"

#define UNSORTED SIZE_MAX

/* Returns the elements of the largest set, or -1 with an exception set unless each number of a pair is that of a set. */
static int64_t largest_set(const int64_t *offset, Py_ssize_t sets, const Py_buffer *pairs)
{
    const uint32_t *pair = pairs->buf;
    int64_t largest = 0;
    int fit = pairs->len % 8 == 0;
    for (Py_ssize_t i = 0; i < sets; i++)
        if (offset[i + 1] - offset[i] > largest)
            largest = offset[i + 1] - offset[i];
    for (Py_ssize_t i = 0; i < pairs->len / 4; i++)
        fit &= pair[i] < (uint64_t)sets;
    if (fit)
        return largest;
    PyErr_Format(PyExc_ValueError, "pairs: two numbers below %zd each are expected", sets);
    return -1;
}

static PyObject *set_resemblances(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER column = {0}, offsets = {0}, pairs = {0};
    double threshold;
    if (!PyArg_ParseTuple(args, "w*y*y*d:set_resemblances", &column, &offsets, &pairs, &threshold) ||
        rdc_check_column(&column, 4, "values") || rdc_check_column(&pairs, 4, "pairs"))
        return NULL;
    const Py_ssize_t sets = rdc_rows_of_offsets(&offsets, column.len / 4, "sets");
    const int64_t *offset = offsets.buf, largest = sets < 0 ? -1 : largest_set(offset, sets, &pairs);
    if (largest < 0)
        return NULL;
    if (!(threshold >= 0 && threshold <= 1))
        return PyErr_Format(PyExc_ValueError, "threshold: 0 to 1 is expected");
    RDC_MEMORY uint32_t *room = malloc(4 * (size_t)largest + 4);
    RDC_MEMORY size_t *sizes = malloc(sizeof *sizes * ((size_t)sets + 1));
    const size_t count = (size_t)pairs.len / 8;
    PyObject *result = room && sizes ? rdc_new_bytes(sizeof(double) * count) : PyErr_NoMemory();
    if (!result)
        return NULL;
    const uint32_t *pair = pairs.buf;
    uint32_t *values = column.buf;
    double *found = rdc_inside(result);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < sets; i++)
        sizes[i] = UNSORTED;
    for (size_t i = 0; i < count; i++) {
        const size_t a = pair[2 * i], b = pair[2 * i + 1];
        for (int half = 0; half < 2; half++) {
            const size_t set = half ? b : a;
            if (sizes[set] == UNSORTED)
                sizes[set] = rdc_sorted_set(values + offset[set], (size_t)(offset[set + 1] - offset[set]), room);
        }
        found[i] = rdc_resemblance(values + offset[a], sizes[a], values + offset[b], sizes[b], threshold);
    }
    Py_END_ALLOW_THREADS
    return result;
}

PyMethodDef rdc_resemblance_functions[] = {
    {"set_resemblances", set_resemblances, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
