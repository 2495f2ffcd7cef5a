/*
 * ranges_binding.c - many ranges of one open file, one behind another, in one call.
 *
 * rdc/files/root/source_file.py reads them one by one where the module says that it could not.
 */
#include "functions.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* A caller that asks for more at once has lost count: what is held is to be bounded by it. */
#define RESULT_MOST ((uint64_t)1 << 30)

typedef struct {
    uint64_t offset, length;
} range;

static range range_at(const Py_buffer *rows, size_t row)
{
    range one;
    memcpy(&one, (const char *)rows->buf + sizeof one * row, sizeof one);
    return one;
}

/* Bytes of all ranges; RESULT_MOST + 1 where they are more, or end beyond any file. */
static uint64_t sum_of(const Py_buffer *rows)
{
    uint64_t total = 0;
    for (size_t row = 0; row < (size_t)rows->len / sizeof(range); row++) {
        const range one = range_at(rows, row);
        if (one.length > RESULT_MOST - total || one.offset > (uint64_t)INT64_MAX - one.length)
            return RESULT_MOST + 1;
        total += one.length;
    }
    return total;
}

/* Whether all of it was there and could be read. */
static int read_all(int fd, const Py_buffer *rows, uint8_t *to)
{
    for (size_t row = 0; row < (size_t)rows->len / sizeof(range); row++) {
        range left = range_at(rows, row);
        while (left.length) {
            const ssize_t count = pread(fd, to, (size_t)left.length, (off_t)left.offset);
            if (count < 0 && errno == EINTR)
                continue;
            if (count <= 0)
                return 0;
            to += count;
            left.offset += (uint64_t)count;
            left.length -= (uint64_t)count;
        }
    }
    return 1;
}

static int check(const Py_buffer *rows)
{
    if ((size_t)rows->len % sizeof(range) == 0 && sum_of(rows) <= RESULT_MOST)
        return 0;
    PyErr_SetString(PyExc_ValueError, "ranges: rows of 16 bytes, of at most 1 GiB in all");
    return -1;
}

static PyObject *read_ranges(PyObject *Py_UNUSED(module), PyObject *args)
{
    int fd, read = 0;
    RDC_BUFFER rows = {0};
    PyObject *content = NULL;
    if (!PyArg_ParseTuple(args, "iy*:read_ranges", &fd, &rows))
        return NULL;
    if (!check(&rows) && (content = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sum_of(&rows)))) {
        uint8_t *to = rdc_inside(content);
        Py_BEGIN_ALLOW_THREADS
        read = read_all(fd, &rows, to);
        Py_END_ALLOW_THREADS
        if (!read)
            Py_SETREF(content, Py_NewRef(Py_None));
    }
    return content;
}

static PyObject *read_ranges_into(PyObject *Py_UNUSED(module), PyObject *args)
{
    int fd, read = 0;
    RDC_BUFFER rows = {0}, memory = {0};
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "iy*w*:read_ranges_into", &fd, &rows, &memory))
        return NULL;
    if (!check(&rows)) {
        if (sum_of(&rows) != (uint64_t)memory.len) {
            PyErr_Format(PyExc_ValueError, "ranges: of %zd bytes", memory.len);
        } else {
            Py_BEGIN_ALLOW_THREADS
            read = read_all(fd, &rows, memory.buf);
            Py_END_ALLOW_THREADS
            result = PyBool_FromLong(read);
        }
    }
    return result;
}

PyMethodDef rdc_ranges_functions[] = {
    {"read_ranges", read_ranges, METH_VARARGS, NULL},
    {"read_ranges_into", read_ranges_into, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
