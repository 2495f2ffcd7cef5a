/* binding.c - PatternSet as a Python type; tests/reference/patterns.py documents it.
 *
 * All calls keep the interpreter's lock,
 * which guards what a set remembers: the longest call takes some milliseconds. */
#include "module.h"

#include "patterns/patterns.h"

typedef struct {
    PyObject_HEAD
    rdc_patterns *set;
} PatternSet;

static int add_patterns(rdc_patterns *set, PyObject *patterns, const Py_buffer *kinds)
{
    RDC_OBJECT *all = PySequence_Fast(patterns, "patterns: a sequence is expected");
    if (!all)
        return -1;
    if (PySequence_Fast_GET_SIZE(all) != kinds->len) {
        PyErr_SetString(PyExc_ValueError, "patterns: one kind is expected for each");
        return -1;
    }
    for (Py_ssize_t i = 0; i < kinds->len; i++) {
        char *text;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PySequence_Fast_GET_ITEM(all, i), &text, &size))
            return -1;
        if (rdc_patterns_add(set, (const uint8_t *)text, (size_t)size, ((const uint8_t *)kinds->buf)[i])) {
            PyErr_NoMemory();
            return -1;
        }
    }
    return 0;
}

static void free_patterns(rdc_patterns **set)
{
    rdc_patterns_free(*set);
}

static PyObject *set_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"", "", "", NULL};
    PyObject *patterns;
    RDC_BUFFER kinds = {0}, prefix = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Oy*|y*:PatternSet", names, &patterns, &kinds, &prefix))
        return NULL;
    RDC_CLEANUP(free_patterns) rdc_patterns *set = rdc_patterns_new();
    if (set && add_patterns(set, patterns, &kinds))
        return NULL;
    if (!set || rdc_patterns_seal(set, prefix.buf, (size_t)prefix.len))
        return PyErr_NoMemory();
    PatternSet *self = (PatternSet *)type->tp_alloc(type, 0);
    if (self) {
        self->set = set;
        set = NULL;
    }
    return (PyObject *)self;
}

static void set_dealloc(PyObject *object)
{
    rdc_patterns_free(((PatternSet *)object)->set);
    rdc_free_object(object);
}

static PyObject *set_first(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    char *path;
    Py_ssize_t size;
    size_t number;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "first() takes 2 arguments (%zd given)", count);
    const int is_directory = PyObject_IsTrue(args[1]);
    if (is_directory < 0 || PyBytes_AsStringAndSize(args[0], &path, &size))
        return NULL;
    if (rdc_patterns_first(((PatternSet *)object)->set, (const uint8_t *)path, (size_t)size, is_directory, &number))
        return PyErr_NoMemory();
    return PyLong_FromSsize_t(number == SIZE_MAX ? -1 : (Py_ssize_t)number);
}

static PyObject *set_sizeof(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromSize_t(sizeof(PatternSet) + rdc_patterns_bytes(((PatternSet *)object)->set));
}

static PyMethodDef set_methods[] = {
    {"first", (PyCFunction)(void (*)(void))set_first, METH_FASTCALL, NULL},
    {"__sizeof__", set_sizeof, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot set_slots[] = {
    {Py_tp_new, (void *)set_new},
    {Py_tp_dealloc, (void *)set_dealloc},
    {Py_tp_methods, set_methods},
    {0, NULL},
};

int rdc_add_pattern_set(PyObject *module)
{
    static const struct {
        const char *name;
        long value;
    } kinds[] = {
        {"LITERAL", RDC_PATTERN_LITERAL},       {"ANYWHERE", RDC_PATTERN_ANYWHERE},
        {"DIRECTORY", RDC_PATTERN_DIRECTORY},   {"INSIDE", RDC_PATTERN_INSIDE},
        {"NEGATED", RDC_PATTERN_NEGATED},       {"COMPONENTS", RDC_PATTERN_COMPONENTS},
        {"ABSOLUTE", RDC_PATTERN_ABSOLUTE},     {"TAIL", RDC_PATTERN_TAIL},
    };
    if (rdc_add_type(module, "PatternSet", sizeof(PatternSet), set_slots))
        return -1;
    RDC_OBJECT *type = PyObject_GetAttrString(module, "PatternSet");
    for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++) {
        RDC_OBJECT *value = PyLong_FromLong(kinds[i].value);
        if (!value || PyObject_SetAttrString(type, kinds[i].name, value))
            return -1;
    }
    return type ? 0 : -1;
}
