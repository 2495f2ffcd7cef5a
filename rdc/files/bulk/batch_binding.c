/*
 * batch_binding.c - read_small.c and write_small.c for Python.
 *
 * Where the system is not Linux nothing is added, and rdc/files/bulk/small_files.py says that there is no such way.
 */
#include "functions.h"

#ifdef __linux__

#include "bulk/close_files.h"
#include "bulk/column.h"
#include "bulk/small_files.h"
#include "depth/seen_binding.h"

/* The names must be `count` single components: what was checked where they came from is cheap to check again. */
static int check_names(const char *names, Py_ssize_t size, size_t count)
{
    const char *end = names + size;

    for (; count && names < end; count--) {
        const char *stop = memchr(names, 0, (size_t)(end - names));
        if (!stop || stop == names || memchr(names, '/', (size_t)(stop - names)) || !strcmp(names, ".") ||
            !strcmp(names, ".."))
            break;
        names = stop + 1;
    }
    if (!count && names == end)
        return 1;
    PyErr_SetString(PyExc_ValueError, "the names are not one component a file, each followed by NUL");
    return 0;
}

/* The number of files by their column of sizes, and the sum of these, which must be at most `limit`. */
static int measure(const Py_buffer *sizes, uint64_t limit, size_t *count, size_t *total)
{
    uint64_t sum = 0;

    *count = (size_t)sizes->len / 8;
    for (size_t i = 0; i < *count && sum <= limit; i++) {
        uint64_t size = column_u64(sizes->buf, i);
        sum = size > limit ? limit + 1 : sum + size;
    }
    *total = (size_t)sum;
    if (sum <= limit && sizes->len % 8 == 0)
        return 1;
    PyErr_SetString(PyExc_ValueError, "the sizes are no column, or more than there is room for");
    return 0;
}

static int check_column(const Py_buffer *column, size_t count, Py_ssize_t width, const char *name)
{
    if (column->len == (Py_ssize_t)count * width)
        return 1;
    PyErr_Format(PyExc_ValueError, "the column of %s has %zd bytes, not %zd for each of %zu files", name, column->len,
                 width, count);
    return 0;
}

/* One number of this machine's order a file and column: what the files are to replace, if they are to. */
static int check_expected(const Py_buffer *columns, size_t count, unsigned fields, rdc_expected *expected)
{
    const uint64_t *numbers = columns->buf;
    if (!numbers)
        return 1;
    if (!check_column(columns, count, 5 * 8, "what is expected"))
        return 0;
    if (count && (uintptr_t)numbers % 8) {
        PyErr_SetString(PyExc_ValueError, "what is expected is not aligned");
        return 0;
    }
    *expected = (rdc_expected){numbers, numbers + count, numbers + 2 * count, (const int64_t *)numbers + 3 * count,
                               (const int64_t *)numbers + 4 * count, fields};
    return 1;
}

static int check_directories(const Py_buffer *directories, size_t count)
{
    if (!check_column(directories, count, 4, "directories"))
        return 0;
    if (!count || (uintptr_t)directories->buf % 4 == 0)
        return 1;
    PyErr_SetString(PyExc_ValueError, "the column of directories is not aligned");
    return 0;
}

static PyObject *read_small(PyObject *Py_UNUSED(module), PyObject *args)
{
    rdc_small_files files = {0};
    rdc_rows_seen seen = {0};
    RDC_BUFFER names = {0}, sizes = {0}, mtimes = {0};
    unsigned long long limit;
    int directory;
    size_t total, filled;

    if (!PyArg_ParseTuple(args, "iy*y*y*K:read_small", &directory, &names, &sizes, &mtimes, &limit))
        return NULL;
    if (limit > PY_SSIZE_T_MAX / 2)
        limit = PY_SSIZE_T_MAX / 2;
    if (!measure(&sizes, limit, &files.count, &total) || !check_names(names.buf, names.len, files.count) ||
        !check_column(&mtimes, files.count, 8, "mtimes"))
        return NULL;
    files.names = names.buf;
    files.sizes = sizes.buf;
    files.mtimes = mtimes.buf;
    RDC_OBJECT *content = rdc_new_bytes(total), *good = rdc_new_bytes(files.count);
    if (!content || !good)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    filled = rdc_read_small(directory, &files, rdc_inside(content), rdc_inside(good),
                            &seen);
    Py_END_ALLOW_THREADS
    /* Sets `content` to NULL where it fails. */
    return (filled == total || !_PyBytes_Resize(&content, (Py_ssize_t)filled))
               ? with_seen(PyTuple_Pack(2, content, good), &seen)
               : NULL;
}

static PyObject *stage_small(PyObject *Py_UNUSED(module), PyObject *args)
{
    rdc_small_files files = {0};
    rdc_ownership ownership = {0};
    rdc_expected looked_at = {0};
    rdc_rows_seen seen = {0};
    RDC_BUFFER directories = {0}, names = {0}, sizes = {0}, mtimes = {0}, modes = {0}, uids = {0}, gids = {0}, content = {0}, random = {0}, expected = {0};
    unsigned depth, fields;
    unsigned long long hole;
    int done;
    size_t total;

    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*py*Ky*z*II:stage_small", &directories, &names, &sizes, &mtimes, &modes,
                          &uids, &gids, &ownership.owner, &content, &hole, &random, &expected, &fields, &depth))
        return NULL;
    if (!measure(&sizes, (uint64_t)content.len, &files.count, &total) ||
        !check_names(names.buf, names.len, files.count) || !check_column(&mtimes, files.count, 8, "mtimes") ||
        !check_column(&modes, files.count, 2, "modes") || !check_column(&uids, files.count, 4, "uids") ||
        !check_column(&gids, files.count, 4, "gids") || !check_column(&random, files.count, 4, "random numbers") ||
        !check_directories(&directories, files.count) || !check_expected(&expected, files.count, fields, &looked_at))
        return NULL;
    if (total != (size_t)content.len)
        return PyErr_Format(PyExc_ValueError, "%zd bytes for files of %zu", content.len, total);
    files.names = names.buf;
    files.sizes = sizes.buf;
    files.mtimes = mtimes.buf;
    ownership.modes = modes.buf;
    ownership.uids = uids.buf;
    ownership.gids = gids.buf;
    RDC_OBJECT *fds = rdc_new_bytes(files.count * sizeof(int32_t));
    RDC_OBJECT *temporaries = rdc_new_bytes(files.count * RDC_TEMPORARY_SIZE);
    if (!fds || !temporaries)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    done = rdc_stage_small(directories.buf, &files, &ownership, expected.buf ? &looked_at : NULL, content.buf, hole, random.buf,
                    rdc_inside(fds),
                    (char(*)[RDC_TEMPORARY_SIZE])(void *)PyBytes_AS_STRING(temporaries), depth, &seen);
    Py_END_ALLOW_THREADS
    return done ? with_seen(PyTuple_Pack(2, fds, temporaries), &seen) : PyErr_NoMemory();
}

static PyObject *rename_small(PyObject *Py_UNUSED(module), PyObject *args)
{
    rdc_expected looked_at = {0};
    rdc_rows_seen seen = {0};
    RDC_BUFFER directories = {0}, temporaries = {0}, names = {0}, fds = {0}, expected = {0};
    unsigned depth, fields;
    int done;

    if (!PyArg_ParseTuple(args, "y*y*y*y*z*II:rename_small", &directories, &temporaries, &names, &fds, &expected,
                          &fields, &depth))
        return NULL;
    const size_t count = (size_t)fds.len / sizeof(int32_t);
    if (!check_names(names.buf, names.len, count) || !check_names(temporaries.buf, temporaries.len, count) ||
        !check_column(&temporaries, count, RDC_TEMPORARY_SIZE, "temporaries") ||
        !check_column(&fds, count, 4, "fds") || !check_directories(&directories, count) ||
        !check_expected(&expected, count, fields, &looked_at))
        return NULL;
    RDC_OBJECT *errors = rdc_new_bytes(count * sizeof(int32_t));
    if (!errors)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    done = rdc_rename_small(directories.buf, count, temporaries.buf, names.buf, fds.buf, expected.buf ? &looked_at : NULL,
                    rdc_inside(errors), depth, &seen);
    Py_END_ALLOW_THREADS
    return done ? with_seen(PyTuple_Pack(1, errors), &seen) : PyErr_NoMemory();
}

#endif

PyMethodDef rdc_batch_functions[] = {
#ifdef __linux__
    {"read_small", read_small, METH_VARARGS, NULL},
    {"stage_small", stage_small, METH_VARARGS, NULL},
    {"rename_small", rename_small, METH_VARARGS, NULL},
    {"close_files", close_files, METH_O, NULL},
#endif
    {NULL, NULL, 0, NULL},
};
