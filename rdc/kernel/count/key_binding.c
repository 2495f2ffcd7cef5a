/* key_binding.c - the table of keys as a Python type; tests/reference/keys.py documents it. */
#include "module.h"

#include "count/key_table.h"

typedef struct {
    PyObject_HEAD
    rdc_key_table table;
} KeyTable;

static PyObject *keys_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"rows", "seed", NULL};
    Py_ssize_t rows;
    RDC_BUFFER seed = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ny*:KeyTable", names, &rows, &seed))
        return NULL;
    if (rows < 0 || rows >= (Py_ssize_t)RDC_NO_NUMBER || seed.len != RDC_KEY_BYTES)
        return PyErr_Format(PyExc_ValueError, "a table has room for 0 to 2^32 - 2 keys, and a seed of %d bytes",
                            RDC_KEY_BYTES);
    uint64_t words[2];
    memcpy(words, seed.buf, sizeof words);
    RDC_OBJECT *self = type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    if (rdc_key_table_start(&((KeyTable *)self)->table, (size_t)rows, words))
        return PyErr_NoMemory();
    return Py_NewRef(self);
}

static void keys_dealloc(PyObject *object)
{
    rdc_key_table_end(&((KeyTable *)object)->table);
    rdc_free_object(object);
}

static PyObject *keys_add(PyObject *object, PyObject *args)
{
    rdc_key_table *table = &((KeyTable *)object)->table;
    RDC_BUFFER keys = {0};
    Py_ssize_t first;
    if (!PyArg_ParseTuple(args, "y*n:add", &keys, &first))
        return NULL;
    const Py_ssize_t rows = keys.len / RDC_KEY_BYTES;
    if (keys.len % RDC_KEY_BYTES)
        return PyErr_Format(PyExc_ValueError, "keys have %d bytes each", RDC_KEY_BYTES);
    if (first < 0 || rows > (Py_ssize_t)RDC_NO_NUMBER - first)
        return PyErr_Format(PyExc_ValueError, "numbers of keys are below 2^32 - 1");
    switch (rdc_key_table_add(table, keys.buf, (size_t)rows, (uint32_t)first)) {
    case RDC_KEYS_NO_MEMORY:
        return PyErr_NoMemory();
    case RDC_KEYS_MEET:
        return PyErr_Format(PyExc_ValueError, "too many equal keys");
    default:
        Py_RETURN_NONE;
    }
}

#define USUAL_ROWS 8

static PyObject *keys_find(PyObject *object, PyObject *argument)
{
    const rdc_key_table *table = &((KeyTable *)object)->table;
    RDC_BUFFER key = {0};
    uint32_t usual[USUAL_ROWS], *number = usual;
    if (PyObject_GetBuffer(argument, &key, PyBUF_SIMPLE))
        return NULL;
    if (key.len != RDC_KEY_BYTES)
        return PyErr_Format(PyExc_ValueError, "a key has %d bytes", RDC_KEY_BYTES);
    const size_t rows = rdc_key_table_find(table, key.buf, usual, USUAL_ROWS);
    RDC_MEMORY uint32_t *many = rows > USUAL_ROWS ? malloc(rows * sizeof *many) : NULL;
    if (rows > USUAL_ROWS) {
        if (!many)
            return PyErr_NoMemory();
        rdc_key_table_find(table, key.buf, many, rows);
        number = many;
    }
    RDC_OBJECT *found = PyTuple_New((Py_ssize_t)rows);
    for (size_t i = 0; found && i < rows; i++) {
        PyObject *one = PyLong_FromUnsignedLong(number[i]);
        if (!one)
            return NULL;
        PyTuple_SET_ITEM(found, (Py_ssize_t)i, one);
    }
    return Py_XNewRef(found);
}

static PyObject *keys_missing(PyObject *object, PyObject *argument)
{
    const rdc_key_table *table = &((KeyTable *)object)->table;
    RDC_BUFFER keys = {0};
    if (PyObject_GetBuffer(argument, &keys, PyBUF_SIMPLE))
        return NULL;
    if (keys.len % RDC_KEY_BYTES)
        return PyErr_Format(PyExc_ValueError, "keys have %d bytes each", RDC_KEY_BYTES);
    return PyLong_FromSize_t(rdc_key_table_missing(table, keys.buf, (size_t)keys.len / RDC_KEY_BYTES));
}

static PyObject *keys_memory(PyObject *object, void *Py_UNUSED(ignored))
{
    return PyLong_FromSize_t(((KeyTable *)object)->table.length * sizeof(rdc_key_slot));
}

static Py_ssize_t keys_length(PyObject *object)
{
    return (Py_ssize_t)((KeyTable *)object)->table.used;
}

static PyMethodDef keys_methods[] = {
    {"add", keys_add, METH_VARARGS, NULL},
    {"find", keys_find, METH_O, NULL},
    {"missing", keys_missing, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef keys_properties[] = {
    {"memory", keys_memory, NULL, "Bytes it takes.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot keys_slots[] = {
    {Py_tp_doc, "The numbers of keys."},
    {Py_tp_new, keys_new},
    {Py_tp_dealloc, keys_dealloc},
    {Py_tp_methods, keys_methods},
    {Py_tp_getset, keys_properties},
    {Py_sq_length, keys_length},
    {0, NULL},
};

int rdc_add_key_table(PyObject *module)
{
    return rdc_add_type(module, "KeyTable", sizeof(KeyTable), keys_slots);
}
