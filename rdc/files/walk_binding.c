/*
 * walk_binding.c - rdc.files._walk: read_directory.c as a Python module, and the only file here that knows Python.
 *
 * Where the system is not Linux the module is empty, and rdc/files/packed.py does the same in Python.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "open_beneath.h"
#include "read_directory.h"

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>

static PyObject *read_directory(PyObject *module, PyObject *args)
{
    int fd, part_temporaries, inodes, failed;
    Py_ssize_t limit;
    rdc_entries e;
    (void)module;
    if (!PyArg_ParseTuple(args, "ipnp:read_directory", &fd, &part_temporaries, &limit, &inodes))
        return NULL;
    if (limit < 0) {
        PyErr_SetString(PyExc_ValueError, "the limit is a number of bytes");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    failed = rdc_read_directory(fd, (size_t)limit, part_temporaries, &e);
    Py_END_ALLOW_THREADS
    if (failed) {
        errno = failed;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    const Py_ssize_t n = (Py_ssize_t)e.count;
    /* "y#" makes None of a NULL pointer. */
    PyObject *result = Py_BuildValue(
        "(ny#y#y#y#y#y#y#y#y#)", n, (char *)e.names, (Py_ssize_t)e.names_size, (char *)e.kinds, n, (char *)e.modes,
        2 * n, (char *)e.sizes, 8 * n, (char *)e.mtimes, 8 * n, (char *)e.uids, 4 * n, (char *)e.gids, 4 * n,
        e.targets ? (char *)e.targets : "", (Py_ssize_t)e.targets_size, e.temporaries ? (char *)e.temporaries : "",
        (Py_ssize_t)e.temporaries_size);
    if (result && inodes) {
        PyObject *more = Py_BuildValue("(y#y#y#y#y#)", (char *)e.devices, 8 * n, (char *)e.inodes, 8 * n, (char *)e.links,
                                       4 * n, (char *)e.allocated, 8 * n, (char *)e.ctimes, 8 * n);
        PyObject *both = more ? PySequence_Concat(result, more) : NULL;
        Py_XDECREF(more);
        Py_DECREF(result);
        result = both;
    }
    rdc_entries_free(&e);
    return result;
}

static PyObject *open_directory(PyObject *module, PyObject *args)
{
    int directory, fd;
    const char *path;
    (void)module;
    if (!PyArg_ParseTuple(args, "iy:open_directory", &directory, &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    fd = rdc_open_beneath(directory, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    Py_END_ALLOW_THREADS
    return fd < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromLong(fd);
}

#endif

static PyMethodDef functions[] = {
#ifdef __linux__
    {"open_directory", open_directory, METH_VARARGS, NULL},
    {"read_directory", read_directory, METH_VARARGS, NULL},
#endif
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "rdc.files._walk", NULL, -1, functions, NULL, NULL,
                                        NULL, NULL};

PyMODINIT_FUNC PyInit__walk(void)
{
    return PyModule_Create(&definition);
}
