/*
 * walk_binding.c - rdc.files.root._walk: read_directory.c as a Python module, and the only file here that knows Python.
 *
 * Where the system is not Linux the module is empty, and rdc/files/root/packed_listing.py does the same in Python.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "depth/seen_binding.h"
#include "root/open_beneath.h"
#include "root/read_directory.h"

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* What read_directory returns of these entries, which are freed. */
static PyObject *columns_of(rdc_entries *e, int inodes, const rdc_rows_seen *seen)
{
    const Py_ssize_t n = (Py_ssize_t)e->count;
    /* "y#" makes None of a NULL pointer. */
    PyObject *result = Py_BuildValue(
        "(ny#y#y#y#y#y#y#y#y#)", n, (char *)e->names, (Py_ssize_t)e->names_size, (char *)e->kinds, n, (char *)e->modes,
        2 * n, (char *)e->sizes, 8 * n, (char *)e->mtimes, 8 * n, (char *)e->uids, 4 * n, (char *)e->gids, 4 * n,
        e->targets ? (char *)e->targets : "", (Py_ssize_t)e->link_bytes, e->temporaries ? (char *)e->temporaries : "",
        (Py_ssize_t)e->temporaries_size);
    if (result && inodes) {
        PyObject *more = Py_BuildValue("(y#y#y#y#y#)", (char *)e->devices, 8 * n, (char *)e->inodes, 8 * n,
                                       (char *)e->links, 4 * n, (char *)e->allocated, 8 * n, (char *)e->ctimes, 8 * n);
        PyObject *both = more ? PySequence_Concat(result, more) : NULL;
        Py_XDECREF(more);
        Py_DECREF(result);
        result = both;
    }
    rdc_entries_free(e);
    return with_seen(result, seen);
}

static int check_limit(Py_ssize_t limit)
{
    if (limit >= 0)
        return 1;
    PyErr_SetString(PyExc_ValueError, "the limit is a number of bytes");
    return 0;
}

static PyObject *failure(int number)
{
    errno = number;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *read_directory(PyObject *module, PyObject *args)
{
    int fd, part_temporaries, inodes, failed;
    unsigned depth, most;
    Py_ssize_t limit;
    rdc_rows_seen seen = {0};
    rdc_entries e;
    (void)module;
    if (!PyArg_ParseTuple(args, "ipnpII:read_directory", &fd, &part_temporaries, &limit, &inodes, &depth,
                          &most) ||
        !check_limit(limit))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    failed = rdc_read_directory(fd, (size_t)limit, part_temporaries, &e, depth, most, &seen);
    Py_END_ALLOW_THREADS
    return failed ? failure(failed) : columns_of(&e, inodes, &seen);
}

static PyObject *list_directory(PyObject *module, PyObject *args)
{
    int directory, part_temporaries, inodes, failed;
    unsigned depth, most;
    const char *path;
    Py_ssize_t length, limit;
    rdc_rows_seen seen = {0};
    rdc_entries e;
    (void)module;
    if (!PyArg_ParseTuple(args, "iy#pnpII:list_directory", &directory, &path, &length, &part_temporaries, &limit,
                          &inodes, &depth, &most) ||
        !check_limit(limit))
        return NULL;
    if (strlen(path) != (size_t)length || !rdc_is_plain_path(path))
        return failure(EINVAL);
    Py_BEGIN_ALLOW_THREADS
    const uint64_t begun = rdc_steady_clock();
    const int fd = rdc_open_beneath(directory, path, DIRECTORY_FLAGS);
    failed = fd < 0 ? errno : rdc_read_directory(fd, (size_t)limit, part_temporaries, &e, depth, most, &seen);
    if (fd >= 0)
        close(fd);
    seen.elapsed = rdc_steady_clock() - begun;
    Py_END_ALLOW_THREADS
    return failed ? failure(failed) : columns_of(&e, inodes, &seen);
}

static PyObject *open_directory(PyObject *module, PyObject *args)
{
    int directory, fd;
    const char *path;
    (void)module;
    if (!PyArg_ParseTuple(args, "iy:open_directory", &directory, &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    fd = rdc_open_beneath(directory, path, DIRECTORY_FLAGS);
    Py_END_ALLOW_THREADS
    return fd < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromLong(fd);
}

#endif

static PyMethodDef functions[] = {
#ifdef __linux__
    {"list_directory", list_directory, METH_VARARGS, NULL},
    {"open_directory", open_directory, METH_VARARGS, NULL},
    {"read_directory", read_directory, METH_VARARGS, NULL},
#endif
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "rdc.files.root._walk", NULL, -1, functions, NULL, NULL,
                                        NULL, NULL};

PyMODINIT_FUNC PyInit__walk(void)
{
    return PyModule_Create(&definition);
}
