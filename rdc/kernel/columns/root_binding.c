/* root_binding.c - Python bindings for the inputs of the digests of nodes and roots. */
#include "module.h"

#include "columns/node_messages.h"
#include "columns/root_messages.h"

#define DIGEST 32

/* Gets a column of whole native numbers of `width` bytes. */
static int is_column(const Py_buffer *column, Py_ssize_t width)
{
    return column->len % width == 0 && (!column->len || (uintptr_t)column->buf % (size_t)width == 0);
}

/* Returns whether the columns of items have as many rows as the streams have items. */
static int items_fit(const Py_buffer *counts, const Py_buffer *lengths, const Py_buffer *digests)
{
    uint64_t items = 0;
    if (!is_column(counts, 4) || !is_column(lengths, 8))
        return 0;
    for (Py_ssize_t i = 0; i < counts->len / 4; i++)
        items += ((const uint32_t *)counts->buf)[i];
    return items == (uint64_t)lengths->len / 8 && digests->len == lengths->len / 8 * DIGEST;
}

static PyObject *root_messages(PyObject *module, PyObject *args)
{
    Py_buffer head, sizes, counts, lengths, digests;
    Py_ssize_t most, level;
    PyObject *messages = NULL, *bytes = NULL, *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*nn:root_messages", &head, &sizes, &counts, &lengths, &digests, &most, &level))
        return NULL;
    if (most < 0 || level < 0 || level > UINT8_MAX || !is_column(&sizes, 8) || counts.len / 4 != sizes.len / 8 ||
        !items_fit(&counts, &lengths, &digests)) {
        PyErr_SetString(PyExc_ValueError, "root messages: columns of streams and of their items that fit together");
        goto done;
    }
    const rdc_short_streams streams = {sizes.buf, counts.buf, lengths.buf, digests.buf, (size_t)sizes.len / 8};
    messages = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)rdc_root_messages_most(&streams, (size_t)head.len));
    bytes = PyBytes_FromStringAndSize(NULL, sizes.len);
    if (!messages || !bytes)
        goto done;
    const size_t written =
        rdc_root_messages(&streams, head.buf, (size_t)head.len, (uint8_t)level, (size_t)most,
                          (uint8_t *)PyBytes_AS_STRING(messages), (uint64_t *)(void *)PyBytes_AS_STRING(bytes));
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

static PyObject *node_messages(PyObject *module, PyObject *args)
{
    Py_buffer counts, lengths, digests;
    Py_ssize_t level, min, max;
    PyObject *messages = NULL, *bytes = NULL, *covered = NULL, *nodes = NULL, *result = NULL;
    int failed;
    (void)module;
    if (!PyArg_ParseTuple(args, "ny*y*y*nn:node_messages", &level, &counts, &lengths, &digests, &min, &max))
        return NULL;
    if (level < 0 || level > UINT8_MAX || min < 1 || min >= max || !items_fit(&counts, &lengths, &digests)) {
        PyErr_SetString(PyExc_ValueError, "node messages: columns of streams and of their items that fit together");
        goto done;
    }
    const rdc_short_streams streams = {NULL, counts.buf, lengths.buf, digests.buf, (size_t)counts.len / 4};
    const Py_ssize_t most = (Py_ssize_t)(8 * rdc_nodes_most(&streams, (uint64_t)min));
    messages = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)rdc_node_messages_most(&streams));
    bytes = PyBytes_FromStringAndSize(NULL, most);
    covered = PyBytes_FromStringAndSize(NULL, most);
    nodes = PyBytes_FromStringAndSize(NULL, counts.len);
    if (!messages || !bytes || !covered || !nodes)
        goto done;
    rdc_node_messages_out out = {(uint8_t *)PyBytes_AS_STRING(messages), (uint64_t *)(void *)PyBytes_AS_STRING(bytes),
                                 (uint64_t *)(void *)PyBytes_AS_STRING(covered),
                                 (uint32_t *)(void *)PyBytes_AS_STRING(nodes), 0, 0};
    Py_BEGIN_ALLOW_THREADS
    failed = rdc_node_messages(&streams, (uint8_t)level, (uint64_t)min, (uint64_t)max, &out);
    Py_END_ALLOW_THREADS
    if (failed)
        PyErr_NoMemory();
    else if (!_PyBytes_Resize(&messages, (Py_ssize_t)out.written) && !_PyBytes_Resize(&bytes, (Py_ssize_t)(8 * out.nodes)) &&
             !_PyBytes_Resize(&covered, (Py_ssize_t)(8 * out.nodes)))
        result = PyTuple_Pack(4, messages, bytes, covered, nodes);
done:
    Py_XDECREF(messages);
    Py_XDECREF(bytes);
    Py_XDECREF(covered);
    Py_XDECREF(nodes);
    PyBuffer_Release(&counts);
    PyBuffer_Release(&lengths);
    PyBuffer_Release(&digests);
    return result;
}

static PyMethodDef functions[] = {
    {"node_messages", node_messages, METH_VARARGS, NULL},
    {"root_messages", root_messages, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_root_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
