/* rows_binding.c - Python bindings for selected rows of a column and paths of rows. */
#include "module.h"

#include "rows/select_rows.h"
#include "rows/row_paths.h"

/* Returns whether `chosen` is a column of row numbers that `column`, with rows of `width` bytes, has. */
static int fit(const Py_buffer *column, Py_ssize_t width, const Py_buffer *chosen)
{
    return width > 0 && column->len % width == 0 && chosen->len % 8 == 0 &&
           (!chosen->len || (uintptr_t)chosen->buf % 8 == 0) &&
           rdc_rows_exist(chosen->buf, (size_t)chosen->len / 8, (size_t)(column->len / width));
}

static void misfit(void)
{
    PyErr_SetString(PyExc_ValueError, "chosen rows: a column of whole rows, and numbers of some that it has");
}

static PyObject *take_rows(PyObject *module, PyObject *args)
{
    Py_buffer column, chosen;
    Py_ssize_t width;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*ny*:take_rows", &column, &width, &chosen))
        return NULL;
    const Py_ssize_t count = chosen.len / 8;
    if (!fit(&column, width, &chosen) || (count && width > PY_SSIZE_T_MAX / count))
        misfit();
    else if ((result = PyBytes_FromStringAndSize(NULL, count * width)))
        rdc_take_rows(column.buf, (size_t)width, chosen.buf, (size_t)count, (uint8_t *)PyBytes_AS_STRING(result));
    PyBuffer_Release(&column);
    PyBuffer_Release(&chosen);
    return result;
}

static PyObject *put_rows(PyObject *module, PyObject *args)
{
    Py_buffer column, chosen, values;
    Py_ssize_t width;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "w*ny*y*:put_rows", &column, &width, &chosen, &values))
        return NULL;
    const Py_ssize_t count = chosen.len / 8;
    if (!fit(&column, width, &chosen) || values.len % width || values.len / width != count) {
        misfit();
    } else {
        rdc_put_rows(column.buf, (size_t)width, chosen.buf, (size_t)count, values.buf);
        result = Py_NewRef(Py_None);
    }
    PyBuffer_Release(&column);
    PyBuffer_Release(&chosen);
    PyBuffer_Release(&values);
    return result;
}

static int is_column(const Py_buffer *numbers)
{
    return numbers->len % 8 == 0 && (!numbers->len || (uintptr_t)numbers->buf % 8 == 0);
}

static PyObject *row_paths(PyObject *module, PyObject *args)
{
    Py_buffer text, texts, firsts, rows;
    rdc_row_path *paths = NULL;
    PyObject *found, *result = NULL;
    size_t total = 0;
    (void)module;
    unsigned long long reached_row, reached_text;
    if (!PyArg_ParseTuple(args, "y*y*y*y*(KK):row_paths", &text, &texts, &firsts, &rows, &reached_row, &reached_text))
        return NULL;
    rdc_reached_row reached = {reached_row, reached_text};
    const size_t count = (size_t)rows.len / 8;
    const rdc_path_columns columns = {text.buf, (size_t)text.len, texts.buf, firsts.buf, (size_t)firsts.len / 8};
    paths = PyMem_Malloc(count * sizeof *paths + 1);
    if (!paths) {
        PyErr_NoMemory();
        goto done;
    }
    if (!is_column(&texts) || !is_column(&firsts) || !is_column(&rows) || texts.len != firsts.len ||
        rdc_find_paths(&columns, rows.buf, count, &reached, paths)) {
        PyErr_SetString(PyExc_ValueError, "paths of rows: columns of a manifest, and increasing rows that it has");
        goto done;
    }
    for (size_t i = 0; i < count; i++)
        total += rdc_path_size(paths + i);
    found = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)total);
    if (found) {
        uint8_t *out = (uint8_t *)PyBytes_AS_STRING(found);
        for (size_t i = 0; i < count; i++)
            out = rdc_put_path(paths + i, out);
        result = Py_BuildValue("N(KK)", found, (unsigned long long)reached.row, (unsigned long long)reached.text);
    }
done:
    PyMem_Free(paths);
    PyBuffer_Release(&text);
    PyBuffer_Release(&texts);
    PyBuffer_Release(&firsts);
    PyBuffer_Release(&rows);
    return result;
}

static PyMethodDef functions[] = {
    {"put_rows", put_rows, METH_VARARGS, NULL},
    {"row_paths", row_paths, METH_VARARGS, NULL},
    {"take_rows", take_rows, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_row_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
