/*
 * contents_binding.c - read_contents.c for Python, and the only file here that knows
 * Python.
 *
 * Where the system is not Linux nothing is added, and rdc/files/bulk/open_many.py does the same in Python.
 */
#include "functions.h"

#include "bulk/read_contents.h"
#include "depth/seen_binding.h"

#ifdef __linux__

#include <endian.h>
#include <string.h>

/* A caller that asks for more at once has lost count: what is held is to be bounded by it. */
#define RESULT_MOST ((uint64_t)1 << 30)

static size_t count_paths(const Py_buffer *paths)
{
    const uint8_t *at = paths->buf;
    size_t count = 0;
    if (paths->len && at[paths->len - 1])
        return SIZE_MAX;
    for (Py_ssize_t i = 0; i < paths->len; i++)
        count += !at[i];
    return count;
}

static PyObject *read_contents(PyObject *Py_UNUSED(module), PyObject *args)
{
    int fd, done;
    unsigned depth, most;
    rdc_rows_seen seen = {0};
    unsigned long long head, tail;
    RDC_BUFFER paths = {0}, wanted = {0};
    uint64_t total = 0;
    if (!PyArg_ParseTuple(args, "iy*y*KKII:read_contents", &fd, &paths, &wanted, &head, &tail, &depth, &most))
        return NULL;
    const size_t count = (size_t)wanted.len / sizeof(rdc_wanted);
    if ((size_t)wanted.len % sizeof(rdc_wanted) || count_paths(&paths) != count)
        return PyErr_Format(PyExc_ValueError, "read_contents: as many paths, each followed by NUL, as rows of 24 bytes");
    for (size_t i = 0; i < count; i++) {
        rdc_wanted one;
        memcpy(&one, (const char *)wanted.buf + i * sizeof one, sizeof one);
        const uint64_t bytes = rdc_content_bytes(le64toh(one.size), head, tail);
        total = bytes > RESULT_MOST ? RESULT_MOST + 1 : total + bytes;
        if (total > RESULT_MOST || head > RESULT_MOST || tail > RESULT_MOST)
            return PyErr_Format(PyExc_ValueError, "read_contents: at most 1 GiB at a time");
    }
    RDC_OBJECT *data = rdc_new_bytes(total), *outcomes = rdc_new_bytes(count * sizeof(int32_t));
    RDC_OBJECT *ctimes = rdc_new_bytes(count * sizeof(int64_t));
    if (!data || !outcomes || !ctimes)
        return NULL;
    /* The buffers of bytes objects are aligned for any of these types; those of a caller's slice may not be. */
    rdc_wanted *rows = malloc(count * sizeof *rows + 1);
    if (!rows)
        return PyErr_NoMemory();
    memcpy(rows, wanted.buf, count * sizeof *rows);
    Py_BEGIN_ALLOW_THREADS
    done = rdc_read_contents(fd, paths.buf, rows, count, head, tail, rdc_inside(data),
                      rdc_inside(outcomes), rdc_inside(ctimes), depth,
                             most, &seen);
    Py_END_ALLOW_THREADS
    free(rows);
    return done ? with_seen(PyTuple_Pack(3, data, outcomes, ctimes), &seen) : PyErr_NoMemory();
}

#endif

PyMethodDef rdc_contents_functions[] = {
#ifdef __linux__
    {"read_contents", read_contents, METH_VARARGS, NULL},
#endif
    {NULL, NULL, 0, NULL},
};
