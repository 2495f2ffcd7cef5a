/* winnower_binding.c - winnowing of any 64-bit ranks as a Python type; rdc/kernel/cut/reference.py documents it. */
#include "module.h"

#include "stream_binding.h"
#include "cut/winnow.h"

/* A bound of rdc/limits.py; a test compares both. */
#define WINNOW_MAX_LIMIT 4096

typedef struct {
    PyObject_HEAD
    rdc_winnower stream;
    stream_state state;
} Winnower;

static PyObject *winnower_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"min_size", "max_size", NULL};
    long long min, max;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "LL:Winnower", names, &min, &max))
        return refuse_arguments();
    if (min < 1 || min >= max || max > WINNOW_MAX_LIMIT)
        return PyErr_Format(PyExc_ValueError, "node sizes %lld to %lld: need 1 <= min < max <= %d", min, max,
                            WINNOW_MAX_LIMIT);
    Winnower *self = (Winnower *)type->tp_alloc(type, 0);
    if (self) {
        rdc_winnower_start(&self->stream, (uint64_t)min, (uint64_t)max);
        self->state = OPEN;
    }
    return (PyObject *)self;
}

static void winnower_dealloc(PyObject *object)
{
    rdc_winnower_end(&((Winnower *)object)->stream);
    rdc_free_object(object);
}

/* Keeps the lock: a rank stands for a chunk of kilobytes, so these spans are short. */
static PyObject *winnower_feed(PyObject *object, PyObject *ranks)
{
    Winnower *self = (Winnower *)object;
    RDC_BUFFER view = {0};
    if (check_open(self->state) || PyObject_GetBuffer(ranks, &view, PyBUF_SIMPLE))
        return NULL;
    if (view.len % 8)
        return PyErr_Format(PyExc_ValueError, "%zd bytes are no whole number of 8-byte ranks", view.len);
    if (rdc_winnower_feed(&self->stream, view.buf, (size_t)view.len / 8)) {
        self->state = LOST;
        return PyErr_NoMemory();
    }
    return take_ends(&self->stream.ends);
}

static PyObject *winnower_finish(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Winnower *self = (Winnower *)object;
    if (check_open(self->state))
        return NULL;
    self->state = FINISHED;
    return last_end(self->stream.count);
}

static PyMethodDef winnower_methods[] = {
    {"feed", winnower_feed, METH_O, NULL},
    {"finish", winnower_finish, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot winnower_slots[] = {
    {Py_tp_doc, "The same winnowing over any 64-bit ranks."},
    {Py_tp_new, winnower_new},
    {Py_tp_dealloc, winnower_dealloc},
    {Py_tp_methods, winnower_methods},
    {0, NULL},
};

int rdc_add_winnower(PyObject *module)
{
    return rdc_add_type(module, "Winnower", sizeof(Winnower), winnower_slots);
}
