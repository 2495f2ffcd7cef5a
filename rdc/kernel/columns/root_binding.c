/* root_binding.c - Python bindings for the inputs of the digests of nodes and roots. */
#include "module.h"

#include "columns/columns.h"

#define DIGEST 32

/* Returns whether the columns of items have as many rows as the streams have items. */
static int items_fit(const Py_buffer *counts, const Py_buffer *lengths, const Py_buffer *digests)
{
    uint64_t items = 0;
    if (!rdc_is_column(counts, 4) || !rdc_is_column(lengths, 8))
        return 0;
    for (Py_ssize_t i = 0; i < counts->len / 4; i++)
        items += ((const uint32_t *)counts->buf)[i];
    return items == (uint64_t)lengths->len / 8 && digests->len == lengths->len / 8 * DIGEST;
}

static PyObject *root_messages(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER head = {0}, sizes = {0}, counts = {0}, lengths = {0}, digests = {0};
    Py_ssize_t most, level;
    RDC_OBJECT *messages = NULL, *bytes = NULL;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*nn:root_messages", &head, &sizes, &counts, &lengths, &digests, &most, &level))
        return NULL;
    if (most < 0 || level < 0 || level > UINT8_MAX || !rdc_is_column(&sizes, 8) || counts.len / 4 != sizes.len / 8 ||
        !items_fit(&counts, &lengths, &digests))
        return PyErr_Format(PyExc_ValueError, "root messages: columns of streams and of their items that fit together");
    const rdc_short_streams streams = {sizes.buf, counts.buf, lengths.buf, digests.buf, (size_t)sizes.len / 8};
    messages = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)rdc_root_messages_most(&streams, (size_t)head.len));
    bytes = PyBytes_FromStringAndSize(NULL, sizes.len);
    if (!messages || !bytes)
        return NULL;
    const size_t written =
        rdc_root_messages(&streams, head.buf, (size_t)head.len, (uint8_t)level, (size_t)most,
                          rdc_inside(messages), rdc_inside(bytes));
    /* Sets `messages` to NULL where it fails. */
    return ((Py_ssize_t)written == PyBytes_GET_SIZE(messages) || !_PyBytes_Resize(&messages, (Py_ssize_t)written))
               ? PyTuple_Pack(2, messages, bytes)
               : NULL;
}

static PyObject *node_messages(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER counts = {0}, lengths = {0}, digests = {0};
    Py_ssize_t level, min, max;
    RDC_OBJECT *messages = NULL, *bytes = NULL, *covered = NULL, *nodes = NULL;
    PyObject *result = NULL;
    int failed;
    if (!PyArg_ParseTuple(args, "ny*y*y*nn:node_messages", &level, &counts, &lengths, &digests, &min, &max))
        return NULL;
    if (level < 0 || level > UINT8_MAX || min < 1 || min >= max || !items_fit(&counts, &lengths, &digests))
        return PyErr_Format(PyExc_ValueError, "node messages: columns of streams and of their items that fit together");
    const rdc_short_streams streams = {NULL, counts.buf, lengths.buf, digests.buf, (size_t)counts.len / 4};
    const Py_ssize_t most = (Py_ssize_t)(8 * rdc_nodes_most(&streams, (uint64_t)min));
    messages = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)rdc_node_messages_most(&streams));
    bytes = PyBytes_FromStringAndSize(NULL, most);
    covered = PyBytes_FromStringAndSize(NULL, most);
    nodes = PyBytes_FromStringAndSize(NULL, counts.len);
    if (!messages || !bytes || !covered || !nodes)
        return NULL;
    rdc_node_messages_out out = {rdc_inside(messages), rdc_inside(bytes),
                                 rdc_inside(covered),
                                 rdc_inside(nodes), 0, 0};
    Py_BEGIN_ALLOW_THREADS
    failed = rdc_node_messages(&streams, (uint8_t)level, (uint64_t)min, (uint64_t)max, &out);
    Py_END_ALLOW_THREADS
    if (failed)
        PyErr_NoMemory();
    else if (!_PyBytes_Resize(&messages, (Py_ssize_t)out.written) && !_PyBytes_Resize(&bytes, (Py_ssize_t)(8 * out.nodes)) &&
             !_PyBytes_Resize(&covered, (Py_ssize_t)(8 * out.nodes)))
        result = PyTuple_Pack(4, messages, bytes, covered, nodes);
    return result;
}

PyMethodDef rdc_root_functions[] = {
    {"node_messages", node_messages, METH_VARARGS, NULL},
    {"root_messages", root_messages, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
