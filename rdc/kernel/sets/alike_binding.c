/* alike_binding.c - pairs with mostly equal samples for Python; tests/reference/alike.py documents each name. */
#include "module.h"

#include "sets/sets.h"

typedef struct {
    Py_buffer samples, labels, members, counts;
    rdc_alike_groups groups;
    Py_ssize_t least, first, stop;
} alike_arguments;

typedef struct {
    uint64_t *pairs;
    size_t count, room;
} found_pairs;

static int checked(alike_arguments *a)
{
    rdc_alike_groups *g = &a->groups;
    if (rdc_check_column(&a->labels, 4, "labels") || rdc_check_column(&a->members, 4, "members") ||
        rdc_check_column(&a->counts, 4, "counts"))
        return -1;
    const size_t documents = (size_t)a->labels.len / 4, members = (size_t)a->members.len / 4;
    *g = (rdc_alike_groups){a->samples.buf, a->labels.buf, a->members.buf, a->counts.buf, (size_t)a->counts.len / 4, 0};
    uint64_t total = 0;
    for (size_t i = 0; i < g->groups; i++)
        total += g->counts[i];
    if (total != members) {
        PyErr_Format(PyExc_ValueError, "counts: %zu members are expected", members);
        return -1;
    }
    if (documents ? (size_t)a->samples.len % documents : (size_t)a->samples.len) {
        PyErr_Format(PyExc_ValueError, "samples: equally many of %zu documents are expected", documents);
        return -1;
    }
    g->width = documents ? (size_t)a->samples.len / documents : 0;
    for (size_t i = 0; i < members; i++)
        if (g->members[i] >= documents) {
            PyErr_Format(PyExc_ValueError, "members: numbers below %zu are expected", documents);
            return -1;
        }
    if (a->least < 1 || a->first < 0 || a->stop < 0) {
        PyErr_SetString(PyExc_ValueError, "least, first, stop: 1 or more, and 0 or more, are expected");
        return -1;
    }
    return 0;
}

static size_t largest_group(const rdc_alike_groups *g)
{
    size_t largest = 0;
    for (size_t i = 0; i < g->groups; i++)
        if (g->counts[i] > largest)
            largest = g->counts[i];
    return largest;
}

static void release(alike_arguments *a)
{
    PyBuffer_Release(&a->samples);
    PyBuffer_Release(&a->members);
    PyBuffer_Release(&a->counts);
    PyBuffer_Release(&a->labels);
}

static int parsed(PyObject *args, const char *format, alike_arguments *a)
{
    return PyArg_ParseTuple(args, format, &a->samples, &a->labels, &a->members, &a->counts, &a->least, &a->first, &a->stop) &&
           !checked(a);
}

static int note_pair(void *context, uint32_t one, uint32_t other, size_t equal)
{
    found_pairs *found = context;
    (void)equal;
    if (found->count == found->room) {
        const size_t room = found->room ? 2 * found->room : 1024;
        uint64_t *pairs = room > SIZE_MAX / 8 ? NULL : realloc(found->pairs, 8 * room);
        if (!pairs)
            return -1;
        found->pairs = pairs;
        found->room = room;
    }
    found->pairs[found->count++] = (uint64_t)one << 32 | other;
    return 0;
}

static int note_count(void *context, uint32_t one, uint32_t other, size_t equal)
{
    (void)one, (void)other;
    ((uint64_t *)context)[equal]++;
    return 0;
}

static PyObject *alike_pairs(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_CLEANUP(release) alike_arguments a = {0};
    found_pairs found = {NULL, 0, 0};
    int failed;
    if (!parsed(args, "y*y*y*y*nnn:alike_pairs", &a))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    failed = rdc_alike_pairs(&a.groups, (size_t)a.least, (size_t)a.first, (size_t)a.stop, note_pair, &found);
    Py_END_ALLOW_THREADS
    RDC_MEMORY uint64_t *pairs = found.pairs;
    return failed || found.count > (size_t)PY_SSIZE_T_MAX / 8
               ? PyErr_NoMemory()
               : PyBytes_FromStringAndSize((const char *)pairs, (Py_ssize_t)(8 * found.count));
}

static PyObject *alike_counts(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_CLEANUP(release) alike_arguments a = {0};
    if (!parsed(args, "y*y*y*y*nnn:alike_counts", &a))
        return NULL;
    const size_t size = 8 * (a.groups.width + 1);
    PyObject *result = rdc_new_bytes(size);
    if (!result)
        return NULL;
    uint64_t *counts = rdc_inside(result);
    memset(counts, 0, size);
    Py_BEGIN_ALLOW_THREADS
    rdc_alike_pairs(&a.groups, (size_t)a.least, (size_t)a.first, (size_t)a.stop, note_count, counts);
    Py_END_ALLOW_THREADS
    return result;
}

static PyObject *label_pairs(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_CLEANUP(release) alike_arguments a = {.least = 1};
    if (!PyArg_ParseTuple(args, "y*y*y*:label_pairs", &a.labels, &a.members, &a.counts) || checked(&a))
        return NULL;
    RDC_MEMORY uint32_t *room = malloc(4 * largest_group(&a.groups) + 4);
    PyObject *result = room ? rdc_new_bytes(8 * a.groups.groups) : PyErr_NoMemory();
    if (result)
        rdc_label_pairs(&a.groups, room, rdc_inside(result));
    return result;
}

PyMethodDef rdc_alike_functions[] = {
    {"alike_counts", alike_counts, METH_VARARGS, NULL},
    {"alike_pairs", alike_pairs, METH_VARARGS, NULL},
    {"label_pairs", label_pairs, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
