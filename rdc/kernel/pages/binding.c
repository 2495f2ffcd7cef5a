/* binding.c - rdc.kernel.pages._pages: the text of HTML pages as a Python module; reference.py documents it.
 *
 * It is a module of its own because a sync needs none of it. All work is done without the interpreter's lock. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "pages/html_text.h"
#include "shingles/text_column.h"

typedef struct {
    rdc_byte_list list;
    PyObject *bytes; /* NULL after a failure */
    PyThreadState *thread;
} growing_text;

static int resize(growing_text *to, size_t room)
{
    if (room == to->list.room)
        return 0;
    if (room > (size_t)PY_SSIZE_T_MAX || _PyBytes_Resize(&to->bytes, (Py_ssize_t)room))
        return -1;
    to->list.bytes = (uint8_t *)PyBytes_AS_STRING(to->bytes);
    to->list.room = room;
    return 0;
}

static int grow(rdc_byte_list *list, size_t more)
{
    growing_text *to = (growing_text *)(void *)list;
    const size_t half = list->room / 2;
    PyEval_RestoreThread(to->thread);
    const int result = resize(to, list->room + (half > more ? half : more));
    to->thread = PyEval_SaveThread();
    return result;
}

static PyObject *texts_of(const rdc_text_column *column)
{
    growing_text to = {{NULL, 0, 0, grow}, PyBytes_FromStringAndSize(NULL, 0), NULL};
    PyObject *ends = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(8 * (column->texts + 1))), *result = NULL;
    int failed = 0;
    /* Few pages grow, as only markup and rare characters change their length. */
    if (to.bytes && ends && !resize(&to, (size_t)(column->offset[column->texts] - column->offset[0]) + 64)) {
        int64_t *end = (int64_t *)(void *)PyBytes_AS_STRING(ends);
        *end++ = 0;
        to.thread = PyEval_SaveThread();
        for (size_t i = 0; i < column->texts && !failed; i++) {
            const size_t size = (size_t)(column->offset[i + 1] - column->offset[i]);
            failed = rdc_html_text(&to.list, column->bytes + column->offset[i], size);
            *end++ = (int64_t)to.list.count;
        }
        PyEval_RestoreThread(to.thread);
        if (failed)
            PyErr_NoMemory();
        else if (!resize(&to, to.list.count))
            result = PyTuple_Pack(2, to.bytes, ends);
    }
    Py_XDECREF(to.bytes);
    Py_XDECREF(ends);
    return result;
}

static PyObject *html_texts(PyObject *module, PyObject *args)
{
    rdc_text_column column = {0};
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*:html_texts", &column.text, &column.offsets))
        return NULL;
    if (!rdc_take_texts(&column))
        result = texts_of(&column);
    rdc_release_texts(&column);
    return result;
}

static PyMethodDef methods[] = {
    {"html_texts", html_texts, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "rdc.kernel.pages._pages", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__pages(void)
{
    return PyModule_Create(&definition);
}
