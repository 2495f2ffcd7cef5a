/*
 * xattrs_binding.c - list_xattrs.c for Python, and the only file here that knows Python.
 *
 * Where the system is not Linux nothing is added.
 */
#include "functions.h"

#include "facts/list_xattrs.h"
#include "root/open_beneath.h"

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PASS_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define LISTED_MOST (256 << 10) /* a call stops here: directories may have any number of entries */
#define VALUE_USUAL 256
#define VALUE_MOST 65536 /* XATTR_SIZE_MAX: a longer value is E2BIG, whatever is offered */

static PyObject *failure(int number)
{
    errno = number;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *go_by_name(PyObject *Py_UNUSED(module), PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(rdc_xattrs_go_by_name());
}

/* What list_xattrs returns of these rows. */
static PyObject *listed_rows(const rdc_listed_entries *l)
{
    PyObject *rows = PyList_New((Py_ssize_t)l->count);
    const char *names = l->names;
    for (size_t i = 0; rows && i < l->count; i++) {
        const rdc_listed *one = &l->rows[i];
        PyObject *row = one->error
                            ? Py_BuildValue("(Ki)", (unsigned long long)one->row, one->error)
                            : Py_BuildValue("(Ky#)", (unsigned long long)one->row, names, (Py_ssize_t)one->size);
        if (row)
            PyList_SET_ITEM(rows, (Py_ssize_t)i, row);
        else
            Py_CLEAR(rows);
        names += one->size;
    }
    return rows ? Py_BuildValue("(KnN)", (unsigned long long)l->next_row, (Py_ssize_t)l->next_offset, rows) : NULL;
}

static PyObject *list_xattrs(PyObject *Py_UNUSED(module), PyObject *args)
{
    int directory, by_name, failed;
    const char *path, *entries;
    Py_ssize_t length, size, offset;
    unsigned long long row;
    rdc_listed_entries listed;
    if (!PyArg_ParseTuple(args, "iy#y#Knp:list_xattrs", &directory, &path, &length, &entries, &size, &row, &offset,
                          &by_name))
        return NULL;
    if (strlen(path) != (size_t)length || (length && !rdc_is_plain_path(path)))
        return failure(EINVAL);
    if (offset < 0 || offset > size || (size && entries[size - 1]))
        return PyErr_Format(PyExc_ValueError, "list_xattrs: names, each followed by NUL, and the offset of one");
    Py_BEGIN_ALLOW_THREADS
    const int fd = length ? rdc_open_beneath(directory, path, PASS_FLAGS) : directory;
    failed = fd < 0 ? errno
                    : rdc_list_xattrs(fd, entries, (size_t)size, row, (size_t)offset, LISTED_MOST, by_name, &listed);
    if (length && fd >= 0)
        close(fd);
    Py_END_ALLOW_THREADS
    if (failed)
        return failure(failed);
    PyObject *result = listed_rows(&listed);
    rdc_listed_free(&listed);
    return result;
}

static PyObject *get_xattr(PyObject *Py_UNUSED(module), PyObject *args)
{
    int directory;
    const char *entry, *attribute;
    Py_ssize_t offered = VALUE_USUAL;
    if (!PyArg_ParseTuple(args, "iyy:get_xattr", &directory, &entry, &attribute))
        return NULL;
    for (;;) {
        PyObject *value = PyBytes_FromStringAndSize(NULL, offered);
        ssize_t size;
        if (!value)
            return NULL;
        char *at = PyBytes_AS_STRING(value);
        Py_BEGIN_ALLOW_THREADS
        size = rdc_get_xattr(directory, entry, attribute, at, (size_t)offered);
        Py_END_ALLOW_THREADS
        if (size >= 0) {
            _PyBytes_Resize(&value, size);
            return value;
        }
        const int error = errno;
        Py_DECREF(value);
        /* Once: no value that is set meanwhile is longer than the longest. */
        if (error != ERANGE || offered == VALUE_MOST)
            return failure(error);
        offered = VALUE_MOST;
    }
}

#endif

PyMethodDef rdc_xattrs_functions[] = {
#ifdef __linux__
    {"get_xattr", get_xattr, METH_VARARGS, NULL},
    {"go_by_name", go_by_name, METH_NOARGS, NULL},
    {"list_xattrs", list_xattrs, METH_VARARGS, NULL},
#endif
    {NULL, NULL, 0, NULL},
};
