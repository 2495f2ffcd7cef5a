/* node_binding.c - Python bindings for the input of manifest node digests. */
#include "module.h"

#include <string.h>

#include "columns/manifest_nodes.h"

#define COLUMNS_MOST 8

static PyObject *misfit(void)
{
    PyErr_SetString(PyExc_ValueError, "nodes of a manifest: columns, ends and position do not fit together");
    return NULL;
}

static int is_column(const Py_buffer *numbers)
{
    return !numbers->len || (numbers->len % 8 == 0 && (uintptr_t)numbers->buf % 8 == 0);
}

/* Builds the contents of the nodes one after another, and the bytes of each. */
static PyObject *put_nodes(const rdc_named_rows *columns, const rdc_node *nodes, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += rdc_node_size(nodes + i);
    PyObject *content = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)total);
    PyObject *sizes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(8 * count)), *result = NULL;
    if (content && sizes) {
        uint8_t *out = (uint8_t *)PyBytes_AS_STRING(content);
        for (size_t i = 0; i < count; i++) {
            const uint64_t size = rdc_node_size(nodes + i);
            memcpy(PyBytes_AS_STRING(sizes) + 8 * i, &size, 8);
            out = rdc_put_node(columns, nodes + i, out);
        }
        result = PyTuple_Pack(2, content, sizes);
    }
    Py_XDECREF(content);
    Py_XDECREF(sizes);
    return result;
}

static PyObject *node_names(PyObject *module, PyObject *args)
{
    Py_buffer text, texts, firsts, kinds, links, ends;
    unsigned long long row, text_at, link;
    rdc_node *nodes = NULL;
    PyObject *found = NULL, *result = NULL;
    int failed;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*(KKK):node_names", &text, &texts, &firsts, &kinds, &links, &ends, &row,
                          &text_at, &link))
        return NULL;
    rdc_row_position position = {row, text_at, link};
    const size_t count = (size_t)ends.len / 8;
    if (!is_column(&texts) || !is_column(&firsts) || !is_column(&ends) || texts.len != firsts.len) {
        misfit();
        goto done;
    }
    const rdc_named_rows columns = {text.buf,  (size_t)text.len,  texts.buf,   firsts.buf,          (size_t)firsts.len / 8,
                                    kinds.buf, (size_t)kinds.len, links.buf, (size_t)links.len};
    nodes = PyMem_Malloc(count * sizeof *nodes + 1);
    if (!nodes) {
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    failed = rdc_find_nodes(&columns, ends.buf, count, &position, nodes);
    Py_END_ALLOW_THREADS
    if (failed) {
        misfit();
        goto done;
    }
    found = put_nodes(&columns, nodes, count);
    if (found)
        result = Py_BuildValue("OO(KKK)", PyTuple_GET_ITEM(found, 0), PyTuple_GET_ITEM(found, 1),
                               (unsigned long long)position.row, (unsigned long long)position.text,
                               (unsigned long long)position.link);
done:
    PyMem_Free(nodes);
    Py_XDECREF(found);
    PyBuffer_Release(&text);
    PyBuffer_Release(&texts);
    PyBuffer_Release(&firsts);
    PyBuffer_Release(&kinds);
    PyBuffer_Release(&links);
    PyBuffer_Release(&ends);
    return result;
}

static int check_columns(const Py_buffer *columns, const size_t *widths, Py_ssize_t count, const Py_buffer *ends,
                         unsigned long long first)
{
    const uint64_t *numbers = ends->buf;
    const size_t nodes = (size_t)ends->len / 8;
    uint64_t last = first;

    if (!is_column(ends))
        return 0;
    for (size_t i = 0; i < nodes; last = numbers[i++])
        if (numbers[i] < last)
            return 0;
    for (Py_ssize_t k = 0; k < count; k++)
        if (last > (uint64_t)columns[k].len / widths[k])
            return 0;
    return 1;
}

static PyObject *node_columns(PyObject *module, PyObject *args)
{
    Py_buffer ends, columns[COLUMNS_MOST];
    size_t widths[COLUMNS_MOST], width = 0;
    unsigned long long first;
    PyObject *pairs, *result = NULL;
    Py_ssize_t acquired = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*KO!:node_columns", &ends, &first, &PyTuple_Type, &pairs))
        return NULL;
    for (; acquired < PyTuple_GET_SIZE(pairs); acquired++) {
        Py_ssize_t wide;
        if (acquired == COLUMNS_MOST) {
            misfit();
            goto done;
        }
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(pairs, acquired), "y*n", columns + acquired, &wide))
            goto done;
        widths[acquired] = (size_t)wide;
        width += (size_t)wide;
        if (wide < 1 || wide > 8) {
            acquired++;
            misfit();
            goto done;
        }
    }
    if (!check_columns(columns, widths, acquired, &ends, first)) {
        misfit();
        goto done;
    }
    const uint64_t *numbers = ends.buf;
    const size_t count = (size_t)ends.len / 8;
    const uint64_t rows = count ? numbers[count - 1] - first : 0;
    result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(rows * width));
    if (!result)
        goto done;
    char *out = PyBytes_AS_STRING(result);
    uint64_t row = first;
    for (size_t i = 0; i < count; row = numbers[i++])
        for (Py_ssize_t k = 0; k < acquired; k++) {
            const size_t size = (size_t)(numbers[i] - row) * widths[k];
            memcpy(out, (const char *)columns[k].buf + row * widths[k], size);
            out += size;
        }
done:
    while (acquired-- > 0)
        PyBuffer_Release(columns + acquired);
    PyBuffer_Release(&ends);
    return result;
}

static PyMethodDef functions[] = {
    {"node_columns", node_columns, METH_VARARGS, NULL},
    {"node_names", node_names, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_node_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
