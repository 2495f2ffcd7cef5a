/*
 * opened_binding.c - opened_files.c for Python.
 *
 * Where the system is not Linux nothing is added, and rdc/files/bulk/open_many.py says that there is no such way.
 */
#include "functions.h"

#ifdef __linux__

#include "bulk/opened_files.h"
#include "depth/seen_binding.h"

/* A caller that asks for more at once has lost count: what is held is to be bounded by it. */
#define RESULT_MOST ((uint64_t)1 << 30)

static int misfit(const char *what)
{
    PyErr_Format(PyExc_ValueError, "%s do not fit together", what);
    return 0;
}

/* Columns of this machine's integers: aligned, which an empty one need not be, and of `count` items. */
static int fits(const Py_buffer *column, size_t count, size_t width)
{
    return (size_t)column->len == count * width && (!count || (uintptr_t)column->buf % width == 0);
}

static PyObject *open_files(PyObject *Py_UNUSED(module), PyObject *args)
{
    enum { FDS, DEVICES, INODES, SIZES, MTIMES, CTIMES, COLUMNS };
    rdc_rows_seen seen = {0};
    int directory, done;
    unsigned depth;
    RDC_BUFFER paths = {0};
    size_t count = 0;
    PyObject *result = NULL;

    if (!PyArg_ParseTuple(args, "iy*I:open_files", &directory, &paths, &depth))
        return NULL;
    const char *text = paths.buf;
    for (Py_ssize_t i = 0; i < paths.len; i++)
        count += !text[i];
    if (paths.len && text[paths.len - 1]) {
        misfit("paths, each followed by NUL,");
        return NULL;
    }
    result = PyTuple_New(COLUMNS);
    for (int column = 0; result && column < COLUMNS; column++) {
        PyObject *made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * (column == FDS ? 4 : 8)));
        if (made)
            PyTuple_SET_ITEM(result, column, made);
        else
            Py_CLEAR(result);
    }
    if (!result)
        return NULL;
    void *columns[COLUMNS];
    for (int column = 0; column < COLUMNS; column++)
        columns[column] = PyBytes_AS_STRING(PyTuple_GET_ITEM(result, column));
    const rdc_opened_facts facts = {columns[DEVICES], columns[INODES], columns[SIZES], columns[MTIMES],
                                    columns[CTIMES]};
    Py_BEGIN_ALLOW_THREADS
    done = rdc_open_files(directory, text, count, columns[FDS], &facts, depth, &seen);
    Py_END_ALLOW_THREADS
    if (done) {
        result = with_seen(result, &seen);
    } else {
        Py_CLEAR(result);
        PyErr_NoMemory();
    }
    return result;
}

static PyObject *read_files(PyObject *Py_UNUSED(module), PyObject *args)
{
    rdc_rows_seen seen = {0};
    unsigned depth;
    RDC_BUFFER fds = {0}, sizes = {0}, mtimes = {0}, ctimes = {0};
    uint64_t total = 0;
    size_t filled;

    if (!PyArg_ParseTuple(args, "y*y*y*y*I:read_files", &fds, &sizes, &mtimes, &ctimes, &depth))
        return NULL;
    const size_t count = (size_t)fds.len / 4;
    if (!fits(&fds, count, 4) || !fits(&sizes, count, 8) || !fits(&mtimes, count, 8) || !fits(&ctimes, count, 8)) {
        misfit("the columns of files to be read");
        return NULL;
    }
    for (size_t i = 0; i < count && total <= RESULT_MOST; i++)
        if (((const int32_t *)fds.buf)[i] >= 0) {
            const uint64_t size = ((const uint64_t *)sizes.buf)[i];
            total = size > RESULT_MOST ? RESULT_MOST + 1 : total + size;
        }
    if (total > RESULT_MOST)
        return PyErr_Format(PyExc_ValueError, "at most 1 GiB is read at a time");
    RDC_OBJECT *content = rdc_new_bytes(total), *good = rdc_new_bytes(count);
    if (!content || !good)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    filled = rdc_read_files(fds.buf, count, sizes.buf, mtimes.buf, ctimes.buf, rdc_inside(content),
                            rdc_inside(good), depth, &seen);
    Py_END_ALLOW_THREADS
    if (filled == SIZE_MAX)
        return PyErr_NoMemory();
    /* Sets `content` to NULL where it fails. */
    return (filled == total || !_PyBytes_Resize(&content, (Py_ssize_t)filled))
               ? with_seen(PyTuple_Pack(2, content, good), &seen)
               : NULL;
}

static PyObject *set_metadata_of_files(PyObject *Py_UNUSED(module), PyObject *args)
{
    rdc_wanted_metadata wanted = {0};
    rdc_rows_seen seen = {0};
    unsigned depth;
    RDC_BUFFER fds = {0}, ctimes = {0}, rows = {0}, modes = {0}, mtimes = {0}, uids = {0}, gids = {0};

    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*pI:set_metadata_of_files", &fds, &ctimes, &rows, &modes, &mtimes, &uids, &gids,
                          &wanted.owner, &depth))
        return NULL;
    const size_t count = (size_t)fds.len / 4, listed = (size_t)modes.len / 2;
    int sound = fits(&fds, count, 4) && fits(&ctimes, count, 8) && fits(&rows, count, 8) &&
                (size_t)mtimes.len == 8 * listed && (size_t)uids.len == 4 * listed && (size_t)gids.len == 4 * listed;
    for (size_t i = 0; sound && i < count; i++)
        sound = ((const uint64_t *)rows.buf)[i] < listed;
    if (!sound) {
        misfit("the columns of what files are to have");
        return NULL;
    }
    wanted.rows = rows.buf;
    wanted.modes = modes.buf;
    wanted.mtimes = mtimes.buf;
    wanted.uids = uids.buf;
    wanted.gids = gids.buf;
    RDC_OBJECT *outcomes = rdc_new_bytes(count);
    if (!outcomes)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    rdc_set_metadata_of_files(fds.buf, count, ctimes.buf, &wanted, rdc_inside(outcomes),
                              depth, &seen);
    Py_END_ALLOW_THREADS
    return with_seen(PyTuple_Pack(1, outcomes), &seen);
}

#endif

PyMethodDef rdc_opened_functions[] = {
#ifdef __linux__
    {"open_files", open_files, METH_VARARGS, NULL},
    {"read_files", read_files, METH_VARARGS, NULL},
    {"set_metadata_of_files", set_metadata_of_files, METH_VARARGS, NULL},
#endif
    {NULL, NULL, 0, NULL},
};
