/* node_binding.c - Python bindings for the input of manifest node digests. */
#include "module.h"

#include <string.h>

#include "columns/columns.h"

#define COLUMNS_MOST 8

static PyObject *misfit(void)
{
    return PyErr_Format(PyExc_ValueError, "nodes of a manifest: columns, ends and position do not fit together");
}

/* Builds the contents of the nodes one after another, and the bytes of each. */
static PyObject *put_nodes(const rdc_named_rows *columns, const rdc_node *nodes, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += rdc_node_size(nodes + i);
    RDC_OBJECT *content = rdc_new_bytes(total), *sizes = rdc_new_bytes(8 * count);
    if (!content || !sizes)
        return NULL;
    uint8_t *out = rdc_inside(content);
    uint64_t *size = rdc_inside(sizes);
    for (size_t i = 0; i < count; i++) {
        size[i] = rdc_node_size(nodes + i);
        out = rdc_put_node(columns, nodes + i, out);
    }
    return PyTuple_Pack(2, content, sizes);
}

static PyObject *node_names(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER text = {0}, texts = {0}, firsts = {0}, kinds = {0}, links = {0}, ends = {0};
    unsigned long long row, text_at, link;
    int failed;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*(KKK):node_names", &text, &texts, &firsts, &kinds, &links, &ends, &row,
                          &text_at, &link))
        return NULL;
    rdc_row_position position = {row, text_at, link};
    const size_t count = (size_t)ends.len / 8;
    if (!rdc_is_column(&texts, 8) || !rdc_is_column(&firsts, 8) || !rdc_is_column(&ends, 8) || texts.len != firsts.len)
        return misfit();
    const rdc_named_rows columns = {text.buf,  (size_t)text.len,  texts.buf,   firsts.buf,          (size_t)firsts.len / 8,
                                    kinds.buf, (size_t)kinds.len, links.buf, (size_t)links.len};
    RDC_MEMORY rdc_node *nodes = malloc(count * sizeof *nodes + 1);
    if (!nodes)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    failed = rdc_find_nodes(&columns, ends.buf, count, &position, nodes);
    Py_END_ALLOW_THREADS
    if (failed)
        return misfit();
    RDC_OBJECT *found = put_nodes(&columns, nodes, count);
    return found ? Py_BuildValue("OO(KKK)", PyTuple_GET_ITEM(found, 0), PyTuple_GET_ITEM(found, 1),
                                 (unsigned long long)position.row, (unsigned long long)position.text,
                                 (unsigned long long)position.link)
                 : NULL;
}

static int check_columns(const Py_buffer *columns, const size_t *widths, Py_ssize_t count, const Py_buffer *ends,
                         unsigned long long first)
{
    const uint64_t *numbers = ends->buf;
    const size_t nodes = (size_t)ends->len / 8;
    uint64_t last = first;

    if (!rdc_is_column(ends, 8))
        return 0;
    for (size_t i = 0; i < nodes; last = numbers[i++])
        if (numbers[i] < last)
            return 0;
    for (Py_ssize_t k = 0; k < count; k++)
        if (last > (uint64_t)columns[k].len / widths[k])
            return 0;
    return 1;
}

static void release_columns(Py_buffer (*columns)[COLUMNS_MOST])
{
    for (size_t k = 0; k < COLUMNS_MOST; k++)
        PyBuffer_Release(*columns + k);
}

static PyObject *node_columns(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER ends = {0};
    RDC_CLEANUP(release_columns) Py_buffer columns[COLUMNS_MOST] = {{0}};
    size_t widths[COLUMNS_MOST], width = 0;
    unsigned long long first;
    PyObject *pairs;
    Py_ssize_t acquired = 0;
    if (!PyArg_ParseTuple(args, "y*KO!:node_columns", &ends, &first, &PyTuple_Type, &pairs))
        return NULL;
    for (; acquired < PyTuple_GET_SIZE(pairs); acquired++) {
        Py_ssize_t wide;
        if (acquired == COLUMNS_MOST || !PyTuple_Check(PyTuple_GET_ITEM(pairs, acquired)))
            return misfit();
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(pairs, acquired), "y*n", columns + acquired, &wide))
            return NULL;
        if (wide < 1 || wide > 8)
            return misfit();
        widths[acquired] = (size_t)wide;
        width += (size_t)wide;
    }
    if (!check_columns(columns, widths, acquired, &ends, first))
        return misfit();
    const uint64_t *numbers = ends.buf;
    const size_t count = (size_t)ends.len / 8;
    const uint64_t rows = count ? numbers[count - 1] - first : 0;
    PyObject *result = rdc_new_bytes(rows * width);
    if (!result)
        return NULL;
    char *out = rdc_inside(result);
    uint64_t row = first;
    for (size_t i = 0; i < count; row = numbers[i++])
        for (Py_ssize_t k = 0; k < acquired; k++) {
            const size_t size = (size_t)(numbers[i] - row) * widths[k];
            memcpy(out, (const char *)columns[k].buf + row * widths[k], size);
            out += size;
        }
    return result;
}

PyMethodDef rdc_node_functions[] = {
    {"node_columns", node_columns, METH_VARARGS, NULL},
    {"node_names", node_names, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
