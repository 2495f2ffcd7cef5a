/*
 * walk_binding.c - read_directory.c and read_directories.c for Python.
 *
 * Where the system is not Linux nothing is added, and rdc/files/root/lister.py does the same in Python.
 */
#include "functions.h"

#include "depth/seen_binding.h"
#include "root/open_beneath.h"
#include "root/read_directories.h"

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* A list of (row, seconds, nanoseconds); None of no times. */
static PyObject *distant_times(const rdc_distant_times *distant)
{
    if (!distant->count)
        Py_RETURN_NONE;
    PyObject *list = PyList_New((Py_ssize_t)distant->count);
    for (size_t i = 0; list && i < distant->count; i++) {
        const rdc_distant_time *t = distant->times + i;
        PyObject *one = Py_BuildValue("(ILI)", t->row, (long long)t->seconds, t->rest);
        if (one)
            PyList_SET_ITEM(list, (Py_ssize_t)i, one);
        else
            Py_CLEAR(list);
    }
    return list;
}

/* A list of (name, errno, call, is_directory); None of no entries. */
static PyObject *bad_entries(const rdc_entries *e)
{
    const char *name = (const char *)e->bad_names;
    if (!e->bad_count)
        Py_RETURN_NONE;
    PyObject *list = PyList_New((Py_ssize_t)e->bad_count);
    for (size_t i = 0; list && i < e->bad_count; i++) {
        const rdc_bad_entry *b = e->bad + i;
        PyObject *one = Py_BuildValue("(yiiO)", name, b->error, (int)b->call, b->is_directory ? Py_True : Py_False);
        if (one)
            PyList_SET_ITEM(list, (Py_ssize_t)i, one);
        else
            Py_CLEAR(list);
        name += strlen(name) + 1;
    }
    return list;
}

/* What list_directory returns of these entries, which are freed. */
static PyObject *columns_of(rdc_entries *e, const rdc_rows_seen *seen)
{
    const Py_ssize_t n = (Py_ssize_t)e->count;
    /* "y#" makes None of a NULL pointer. "N" takes over, and passes on NULL as a failure. */
    PyObject *result = Py_BuildValue(
        "((ny#y#y#y#y#y#y#y#)(y#y#y#y#y#)y#NNN)", n, (char *)e->names, (Py_ssize_t)e->names_size, (char *)e->kinds, n,
        (char *)e->modes, 2 * n, (char *)e->sizes, 8 * n, (char *)e->mtimes, 8 * n, (char *)e->uids, 4 * n,
        (char *)e->gids, 4 * n, e->targets ? (char *)e->targets : "", (Py_ssize_t)e->link_bytes, (char *)e->devices,
        8 * n, (char *)e->inodes, 8 * n, (char *)e->links, 4 * n, (char *)e->allocated, 8 * n, (char *)e->ctimes,
        8 * n, e->temporaries ? (char *)e->temporaries : "", (Py_ssize_t)e->temporaries_size,
        distant_times(&e->distant_mtimes), distant_times(&e->distant_ctimes), bad_entries(e));
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

static PyObject *list_directory(PyObject *Py_UNUSED(module), PyObject *args)
{
    int directory, failed;
    unsigned depth, most;
    const char *path;
    Py_ssize_t length, limit;
    rdc_rows_seen seen = {0};
    rdc_entries e;
    if (!PyArg_ParseTuple(args, "iy#nII:list_directory", &directory, &path, &length, &limit, &depth, &most) ||
        !check_limit(limit))
        return NULL;
    if (strlen(path) != (size_t)length || (length && !rdc_is_plain_path(path)))
        return failure(EINVAL);
    Py_BEGIN_ALLOW_THREADS
    const uint64_t begun = rdc_steady_clock();
    const int fd =
        length ? rdc_open_beneath(directory, path, DIRECTORY_FLAGS) : openat(directory, ".", DIRECTORY_FLAGS);
    failed = fd < 0 ? errno : rdc_read_directory(fd, (size_t)limit, &e, depth, most, &seen);
    if (fd >= 0)
        close(fd);
    seen.elapsed = rdc_steady_clock() - begun;
    Py_END_ALLOW_THREADS
    return failed ? failure(failed) : columns_of(&e, &seen);
}

/* A tuple of the columns; they are freed one by one, so that nothing is held twice for long. */
static PyObject *run_columns(rdc_run *run)
{
    PyObject *columns = PyTuple_New(RDC_RUN_COLUMNS);
    for (Py_ssize_t i = 0; columns && i < RDC_RUN_COLUMNS; i++) {
        rdc_grown *c = run->columns + i;
        PyObject *one = PyBytes_FromStringAndSize((char *)c->at, (Py_ssize_t)c->size);
        free(c->at);
        *c = (rdc_grown){0};
        if (one)
            PyTuple_SET_ITEM(columns, i, one);
        else
            Py_CLEAR(columns);
    }
    return columns;
}

/* The path and the columns of the directory that is alone; None of none. */
static PyObject *run_alone(rdc_run *run)
{
    if (!run->has_alone)
        Py_RETURN_NONE;
    const rdc_rows_seen none = {0};
    run->has_alone = 0;
    PyObject *found = columns_of(&run->alone, &none);
    return found ? Py_BuildValue("(y#N)", (char *)run->alone_path.at, (Py_ssize_t)run->alone_path.size - 1, found) : NULL;
}

static PyObject *list_directories(PyObject *Py_UNUSED(module), PyObject *args)
{
    int directory, failed;
    unsigned depth, most;
    const char *todo;
    Py_ssize_t length, limit;
    if (!PyArg_ParseTuple(args, "iy#nII:list_directories", &directory, &todo, &length, &limit, &depth, &most) ||
        !check_limit(limit))
        return NULL;
    if (length && todo[length - 1])
        return failure(EINVAL);
    rdc_run run = {0};
    Py_BEGIN_ALLOW_THREADS
    failed = rdc_grow(&run.todo, todo, (size_t)length);
    if (!failed)
        failed = rdc_read_directories(directory, (size_t)limit, depth, most, &run);
    Py_END_ALLOW_THREADS
    PyObject *result = NULL;
    if (failed)
        failure(failed);
    else
        result = with_seen(Py_BuildValue("(nnNy#iN(nnKK))", (Py_ssize_t)run.directories, (Py_ssize_t)run.rows,
                                         run_columns(&run), run.todo.at ? (char *)run.todo.at : "",
                                         (Py_ssize_t)run.todo.size, run.error, run_alone(&run), (Py_ssize_t)run.looked,
                                         (Py_ssize_t)run.slow, (unsigned long long)run.waited,
                                         (unsigned long long)run.elapsed),
                           &run.seen);
    rdc_run_free(&run);
    return result;
}

static PyObject *open_directory(PyObject *Py_UNUSED(module), PyObject *args)
{
    int directory, fd;
    const char *path;
    if (!PyArg_ParseTuple(args, "iy:open_directory", &directory, &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    fd = rdc_open_beneath(directory, path, DIRECTORY_FLAGS);
    Py_END_ALLOW_THREADS
    return fd < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromLong(fd);
}

#endif

PyMethodDef rdc_walk_functions[] = {
#ifdef __linux__
    {"list_directory", list_directory, METH_VARARGS, NULL},
    {"list_directories", list_directories, METH_VARARGS, NULL},
    {"open_directory", open_directory, METH_VARARGS, NULL},
#endif
    {NULL, NULL, 0, NULL},
};
