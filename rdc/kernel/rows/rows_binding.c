/* rows_binding.c - Python bindings for selected rows of a column and paths of rows. */
#include "module.h"

#include "rows/rows.h"

/* Returns whether `chosen` is a column of row numbers that `column`, with rows of `width` bytes, has. */
static int fit(const Py_buffer *column, Py_ssize_t width, const Py_buffer *chosen)
{
    return width > 0 && column->len % width == 0 && rdc_is_column(chosen, 8) &&
           rdc_rows_exist(chosen->buf, (size_t)chosen->len / 8, (size_t)(column->len / width));
}

static PyObject *misfit(void)
{
    return PyErr_Format(PyExc_ValueError, "chosen rows: a column of whole rows, and numbers of some that it has");
}

static PyObject *take_rows(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER column = {0}, chosen = {0};
    Py_ssize_t width;
    if (!PyArg_ParseTuple(args, "y*ny*:take_rows", &column, &width, &chosen))
        return NULL;
    const Py_ssize_t count = chosen.len / 8;
    if (!fit(&column, width, &chosen) || (count && width > PY_SSIZE_T_MAX / count))
        return misfit();
    PyObject *result = rdc_new_bytes((uint64_t)(count * width));
    if (result)
        rdc_take_rows(column.buf, (size_t)width, chosen.buf, (size_t)count, rdc_inside(result));
    return result;
}

static PyObject *put_rows(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER column = {0}, chosen = {0}, values = {0};
    Py_ssize_t width;
    if (!PyArg_ParseTuple(args, "w*ny*y*:put_rows", &column, &width, &chosen, &values))
        return NULL;
    const Py_ssize_t count = chosen.len / 8;
    if (!fit(&column, width, &chosen) || values.len % width || values.len / width != count)
        return misfit();
    rdc_put_rows(column.buf, (size_t)width, chosen.buf, (size_t)count, values.buf);
    Py_RETURN_NONE;
}

static PyObject *row_paths(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER text = {0}, texts = {0}, firsts = {0}, rows = {0};
    size_t total = 0;
    unsigned long long reached_row, reached_text;
    if (!PyArg_ParseTuple(args, "y*y*y*y*(KK):row_paths", &text, &texts, &firsts, &rows, &reached_row, &reached_text))
        return NULL;
    rdc_reached_row reached = {reached_row, reached_text};
    const size_t count = (size_t)rows.len / 8;
    const rdc_path_columns columns = {text.buf, (size_t)text.len, texts.buf, firsts.buf, (size_t)firsts.len / 8};
    RDC_MEMORY rdc_row_path *paths = malloc(count * sizeof *paths + 1);
    if (!paths)
        return PyErr_NoMemory();
    if (!rdc_is_column(&texts, 8) || !rdc_is_column(&firsts, 8) || !rdc_is_column(&rows, 8) || texts.len != firsts.len ||
        rdc_find_paths(&columns, rows.buf, count, &reached, paths))
        return PyErr_Format(PyExc_ValueError, "paths of rows: columns of a manifest, and increasing rows that it has");
    for (size_t i = 0; i < count; i++)
        total += rdc_path_size(paths + i);
    PyObject *found = rdc_new_bytes(total);
    if (!found)
        return NULL;
    uint8_t *out = rdc_inside(found);
    for (size_t i = 0; i < count; i++)
        out = rdc_put_path(paths + i, out);
    return Py_BuildValue("N(KK)", found, (unsigned long long)reached.row, (unsigned long long)reached.text);
}

PyMethodDef rdc_row_functions[] = {
    {"put_rows", put_rows, METH_VARARGS, NULL},
    {"row_paths", row_paths, METH_VARARGS, NULL},
    {"take_rows", take_rows, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
