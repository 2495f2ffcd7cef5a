/* root_binding.c - Python binding for the input of root digests. */
#include "module.h"

#include "columns/root_messages.h"

#define DIGEST 32

/* Gets a column of whole native numbers of `width` bytes. */
static int is_column(const Py_buffer *column, Py_ssize_t width)
{
    return column->len % width == 0 && (!column->len || (uintptr_t)column->buf % (size_t)width == 0);
}

/* Returns whether the columns have matching numbers of streams and chunks. */
static int fit(const Py_buffer *sizes, const Py_buffer *counts, const Py_buffer *lengths, const Py_buffer *digests)
{
    uint64_t chunks = 0;
    if (!is_column(sizes, 8) || !is_column(counts, 4) || !is_column(lengths, 8) || counts->len / 4 != sizes->len / 8)
        return 0;
    for (Py_ssize_t i = 0; i < counts->len / 4; i++)
        chunks += ((const uint32_t *)counts->buf)[i];
    return chunks == (uint64_t)lengths->len / 8 && digests->len == lengths->len / 8 * DIGEST;
}

static PyObject *root_messages(PyObject *module, PyObject *args)
{
    Py_buffer head, sizes, counts, lengths, digests;
    Py_ssize_t most;
    PyObject *messages = NULL, *bytes = NULL, *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*n:root_messages", &head, &sizes, &counts, &lengths, &digests, &most))
        return NULL;
    if (most < 0 || !fit(&sizes, &counts, &lengths, &digests)) {
        PyErr_SetString(PyExc_ValueError, "root messages: columns of streams and of their chunks that fit together");
        goto done;
    }
    const rdc_short_streams streams = {sizes.buf, counts.buf, lengths.buf, digests.buf, (size_t)sizes.len / 8};
    messages = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)rdc_root_messages_most(&streams, (size_t)head.len));
    bytes = PyBytes_FromStringAndSize(NULL, sizes.len);
    if (!messages || !bytes)
        goto done;
    const size_t written =
        rdc_root_messages(&streams, head.buf, (size_t)head.len, (size_t)most, (uint8_t *)PyBytes_AS_STRING(messages),
                          (uint64_t *)(void *)PyBytes_AS_STRING(bytes));
    /* Sets `messages` to NULL where it fails. */
    if ((Py_ssize_t)written == PyBytes_GET_SIZE(messages) || !_PyBytes_Resize(&messages, (Py_ssize_t)written))
        result = PyTuple_Pack(2, messages, bytes);
done:
    Py_XDECREF(messages);
    Py_XDECREF(bytes);
    PyBuffer_Release(&head);
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&counts);
    PyBuffer_Release(&lengths);
    PyBuffer_Release(&digests);
    return result;
}

static PyMethodDef functions[] = {
    {"root_messages", root_messages, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_root_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
