/* equal_binding.c - Python binding for the search for equal rows of a column. */
#include "module.h"

#include "rows/rows.h"

/* Packs numbers as little-endian bytes. */
static PyObject *packed_numbers(const uint32_t *numbers, size_t count)
{
    PyObject *result = rdc_new_bytes(4 * count);
    uint8_t *out = result ? rdc_inside(result) : NULL;
    for (size_t i = 0; result && i < count; i++)
        for (unsigned k = 0; k < 4; k++)
            *out++ = (uint8_t)(numbers[i] >> 8 * k);
    return result;
}

static PyObject *equal_rows(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER column = {0};
    Py_ssize_t width;
    size_t found, groups;
    int failed;
    if (!PyArg_ParseTuple(args, "y*n:equal_rows", &column, &width))
        return NULL;
    if (width < 1 || column.len % width || (uint64_t)(column.len / width) > UINT32_MAX)
        return PyErr_Format(PyExc_ValueError, "equal rows: a column of at most 2^32 - 1 rows of %zd bytes (found %zd bytes)",
                            width, column.len);
    const size_t count = (size_t)(column.len / width);
    RDC_MEMORY uint32_t *rows = malloc(2 * count * sizeof *rows + 1);
    if (!rows)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    failed = rdc_equal_rows(column.buf, count, (size_t)width, rows, rows + count, &found, &groups);
    Py_END_ALLOW_THREADS
    if (failed)
        return PyErr_NoMemory();
    RDC_OBJECT *packed = packed_numbers(rows, found), *sizes = packed_numbers(rows + count, groups);
    return packed && sizes ? PyTuple_Pack(2, packed, sizes) : NULL;
}

PyMethodDef rdc_equal_functions[] = {
    {"equal_rows", equal_rows, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
