/* equal_binding.c - Python binding for the search for equal rows of a column. */
#include "module.h"

#include "rows/equal_rows.h"

/* Packs numbers as little-endian bytes. */
static PyObject *packed_numbers(const uint32_t *numbers, size_t count)
{
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(4 * count));
    if (result) {
        uint8_t *out = (uint8_t *)PyBytes_AS_STRING(result);
        for (size_t i = 0; i < count; i++)
            for (unsigned k = 0; k < 4; k++)
                out[4 * i + k] = (uint8_t)(numbers[i] >> 8 * k);
    }
    return result;
}

static PyObject *equal_rows(PyObject *module, PyObject *args)
{
    Py_buffer column;
    Py_ssize_t width;
    uint32_t *rows = NULL;
    size_t found, groups;
    int failed;
    PyObject *packed = NULL, *sizes = NULL, *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*n:equal_rows", &column, &width))
        return NULL;
    if (width < 1 || column.len % width || (uint64_t)(column.len / width) > UINT32_MAX) {
        PyErr_Format(PyExc_ValueError, "equal rows: a column of at most 2^32 - 1 rows of %zd bytes (found %zd bytes)",
                     width, column.len);
        goto done;
    }
    const size_t count = (size_t)(column.len / width);
    rows = PyMem_Malloc(2 * count * sizeof *rows + 1);
    if (!rows) {
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    failed = rdc_equal_rows(column.buf, count, (size_t)width, rows, rows + count, &found, &groups);
    Py_END_ALLOW_THREADS
    if (failed) {
        PyErr_NoMemory();
        goto done;
    }
    packed = packed_numbers(rows, found);
    sizes = packed_numbers(rows + count, groups);
    if (packed && sizes)
        result = PyTuple_Pack(2, packed, sizes);
done:
    PyMem_Free(rows);
    Py_XDECREF(packed);
    Py_XDECREF(sizes);
    PyBuffer_Release(&column);
    return result;
}

static PyMethodDef functions[] = {
    {"equal_rows", equal_rows, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_equal_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
