/*
 * leased_binding.c - leased_files.c for Python.
 *
 * Where the system is not Linux nothing is added, and rdc/files/names/leased_files.py goes without it.
 */
#include "functions.h"

#ifdef __linux__

#include "bulk/close_files.h"
#include "bulk/leased_files.h"

static int misfit(const char *what)
{
    PyErr_Format(PyExc_ValueError, "%s do not fit together", what);
    return 0;
}

/* Columns of this machine's integers: aligned, which an empty one need not be, and of `count` items. */
static int fits(const Py_buffer *column, size_t count, size_t width, size_t alignment)
{
    return (size_t)column->len == count * width && (!count || (uintptr_t)column->buf % alignment == 0);
}

/* Whether a buffer holds `count` strings, each followed by NUL. */
static int has_strings(const Py_buffer *strings, size_t count)
{
    const char *text = strings->buf;
    size_t found = 0;

    for (Py_ssize_t i = 0; i < strings->len; i++)
        found += !text[i];
    return found == count && (!strings->len || !text[strings->len - 1]);
}

/* Where each string begins; NULL with an exception if there is no memory. */
static const char **starts_of(const Py_buffer *strings, size_t count)
{
    const char **starts = malloc((count + 1) * sizeof *starts), *text = strings->buf;

    if (!starts)
        PyErr_NoMemory();
    for (size_t i = 0; starts && i < count; i++, text += strlen(text) + 1)
        starts[i] = text;
    return starts;
}

static PyObject *lease_files(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER directories = {0}, names = {0};
    rdc_attributes attributes = {0};
    int done;

    if (!PyArg_ParseTuple(args, "y*y*:lease_files", &directories, &names))
        return NULL;
    const size_t count = (size_t)directories.len / 4;
    if (!fits(&directories, count, 4, 4) || !has_strings(&names, count)) {
        misfit("directories and names");
        return NULL;
    }
    RDC_OBJECT *fds = rdc_new_bytes(4 * count), *errors = rdc_new_bytes(4 * count);
    RDC_OBJECT *facts = rdc_new_bytes(count * sizeof(rdc_leased));
    if (!fds || !errors || !facts)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    done = rdc_lease_files(directories.buf, names.buf, count, rdc_inside(fds), rdc_inside(errors), rdc_inside(facts),
                           &attributes);
    Py_END_ALLOW_THREADS
    RDC_MEMORY uint8_t *data = attributes.data;
    if (!done)
        return PyErr_NoMemory();
    PyObject *result = Py_BuildValue("OOOy#", fds, errors, facts, data, (Py_ssize_t)attributes.size);
    if (!result)
        Py_XDECREF(close_files(NULL, fds));
    return result;
}

static PyObject *compare_files(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER fds = {0}, content = {0};
    int done;

    if (!PyArg_ParseTuple(args, "y*y*:compare_files", &fds, &content))
        return NULL;
    const size_t count = (size_t)fds.len / 4;
    if (!fits(&fds, count, 4, 4)) {
        misfit("descriptors");
        return NULL;
    }
    PyObject *equal = rdc_new_bytes(count);
    if (!equal)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    done = rdc_compare_files(fds.buf, count, content.buf, (size_t)content.len, rdc_inside(equal));
    Py_END_ALLOW_THREADS
    if (done)
        return equal;
    Py_DECREF(equal);
    return PyErr_NoMemory();
}

enum { DIRECTORIES, NAMES, DISPLACED, FILES, ORIGINALS, ORIGINAL_DIRECTORIES, ORIGINAL_NAMES, FDS, FACTS, ATTRIBUTES, FIRSTS, BUFFERS };

static int are_sound(const Py_buffer *b, size_t count, size_t files)
{
    const uint32_t *numbers = b[FILES].buf, *originals = b[ORIGINALS].buf;
    const rdc_leased *leased = b[FACTS].buf;
    int64_t end = 0;

    if (!fits(&b[DIRECTORIES], count, 4, 4) || !fits(&b[ORIGINAL_DIRECTORIES], count, 4, 4) ||
        !fits(&b[FILES], count, 4, 4) || !fits(&b[ORIGINALS], count, 4, 4) || !fits(&b[FIRSTS], count, 1, 1) ||
        !has_strings(&b[NAMES], count) || !has_strings(&b[DISPLACED], count) || !has_strings(&b[ORIGINAL_NAMES], count))
        return misfit("columns of names");
    if (!fits(&b[FDS], files, 4, 4) || !fits(&b[FACTS], files, sizeof(rdc_leased), 8))
        return misfit("columns of files");
    for (size_t i = 0; i < count; i++)
        if (numbers[i] >= files || originals[i] >= files)
            return misfit("numbers of files");
    for (size_t i = 0; i < files; i++) {
        if (leased[i].attributes < end || leased[i].attributes > (int64_t)b[ATTRIBUTES].len)
            return misfit("attributes");
        end = leased[i].attributes;
    }
    return 1;
}

typedef int step(const rdc_departures *names, uint8_t *outcomes);

static void release_buffers(Py_buffer (*buffers)[BUFFERS])
{
    for (int i = 0; i < BUFFERS; i++)
        PyBuffer_Release(*buffers + i);
}

static PyObject *take_step(PyObject *args, const char *format, step *take)
{
    RDC_CLEANUP(release_buffers) Py_buffer b[BUFFERS] = {{0}};
    rdc_departures names = {0};
    int done;

    if (!PyArg_ParseTuple(args, format, &names.exchange, &b[DIRECTORIES], &b[NAMES], &b[DISPLACED], &b[FILES],
                          &b[ORIGINALS], &b[ORIGINAL_DIRECTORIES], &b[ORIGINAL_NAMES], &b[FDS], &b[FACTS], &b[ATTRIBUTES],
                          &b[FIRSTS]))
        return NULL;
    names.count = (size_t)b[FIRSTS].len;
    if (!are_sound(b, names.count, (size_t)b[FDS].len / 4))
        return NULL;
    RDC_MEMORY const char **starts = starts_of(&b[NAMES], names.count);
    RDC_MEMORY const char **displaced = starts ? starts_of(&b[DISPLACED], names.count) : NULL;
    RDC_MEMORY const char **originals = displaced ? starts_of(&b[ORIGINAL_NAMES], names.count) : NULL;
    PyObject *outcomes = originals ? rdc_new_bytes(names.count) : NULL;
    if (!outcomes)
        return NULL;
    names.directories = b[DIRECTORIES].buf;
    names.original_directories = b[ORIGINAL_DIRECTORIES].buf;
    names.files = b[FILES].buf;
    names.originals = b[ORIGINALS].buf;
    names.fds = b[FDS].buf;
    names.leased = b[FACTS].buf;
    names.attributes = b[ATTRIBUTES].buf;
    names.firsts = b[FIRSTS].buf;
    names.names = starts;
    names.displaced = displaced;
    names.original_names = originals;
    Py_BEGIN_ALLOW_THREADS
    done = take(&names, rdc_inside(outcomes));
    Py_END_ALLOW_THREADS
    if (done)
        return outcomes;
    Py_DECREF(outcomes);
    return PyErr_NoMemory();
}

static PyObject *displace_files(PyObject *Py_UNUSED(module), PyObject *args)
{
    return take_step(args, "py*y*y*y*y*y*y*y*y*y*y*:displace_files", rdc_displace_files);
}

static PyObject *remove_displaced(PyObject *Py_UNUSED(module), PyObject *args)
{
    return take_step(args, "py*y*y*y*y*y*y*y*y*y*y*:remove_displaced", rdc_remove_displaced);
}

#endif

PyMethodDef rdc_leased_functions[] = {
#ifdef __linux__
    {"lease_files", lease_files, METH_VARARGS, NULL},
    {"compare_files", compare_files, METH_VARARGS, NULL},
    {"displace_files", displace_files, METH_VARARGS, NULL},
    {"remove_displaced", remove_displaced, METH_VARARGS, NULL},
#endif
    {NULL, NULL, 0, NULL},
};
