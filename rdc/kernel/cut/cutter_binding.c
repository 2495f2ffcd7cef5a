/* cutter_binding.c - Python bindings for the cuts of one stream and of many short streams;
 * rdc/kernel/cut/reference.py documents both.
 *
 * A Cutter works without the interpreter's lock on large spans. Two threads feeding one stream are a
 * caller's error: the second call finds the stream busy and raises ValueError. */
#include "module.h"

#include "cut/cuts.h"
#include "stream_binding.h"

/* Bounds of rdc/limits.py; a test compares them. */
#define CHUNK_MIN_LIMIT 64
#define CHUNK_RATIO_LIMIT 32
#define CHUNK_MAX_LIMIT (16 << 20)

typedef struct {
    PyObject_HEAD
    rdc_cutter stream;
    stream_state state;
} Cutter;

static int check_sizes(long long min, long long max)
{
    if (min >= CHUNK_MIN_LIMIT && min < max && max <= CHUNK_MAX_LIMIT && max <= CHUNK_RATIO_LIMIT * min)
        return 0;
    PyErr_Format(PyExc_ValueError, "chunk sizes %lld to %lld: need %d <= min < max <= %d min, and max <= %d", min, max,
                 CHUNK_MIN_LIMIT, CHUNK_RATIO_LIMIT, CHUNK_MAX_LIMIT);
    return -1;
}

static PyObject *cutter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"min_size", "max_size", "variant", NULL};
    long long min, max;
    const char *name = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "LL|$z:Cutter", names, &min, &max, &name))
        return refuse_arguments();
    if (check_sizes(min, max))
        return NULL;
    const rdc_variant *variant = name ? rdc_find_variant(name) : rdc_chosen_variant();
    if (!variant)
        return NULL;
    Cutter *self = (Cutter *)type->tp_alloc(type, 0);
    if (self) {
        rdc_cutter_start(&self->stream, variant, (uint64_t)min, (uint64_t)max);
        self->state = OPEN;
    }
    return (PyObject *)self;
}

static void cutter_dealloc(PyObject *object)
{
    rdc_cutter_end(&((Cutter *)object)->stream);
    rdc_free_object(object);
}

static PyObject *cutter_feed(PyObject *object, PyObject *span)
{
    Cutter *self = (Cutter *)object;
    RDC_BUFFER view = {0};
    int failed;
    if (check_open(self->state) || PyObject_GetBuffer(span, &view, PyBUF_SIMPLE))
        return NULL;
    self->state = BUSY;
    PyThreadState *thread = rdc_unlock((size_t)view.len);
    failed = rdc_cutter_feed(&self->stream, view.buf, (size_t)view.len);
    rdc_lock(thread);
    self->state = failed ? LOST : OPEN;
    if (failed)
        return PyErr_NoMemory();
    return take_ends(&self->stream.ends);
}

static PyObject *cutter_finish(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Cutter *self = (Cutter *)object;
    if (check_open(self->state))
        return NULL;
    self->state = FINISHED;
    return last_end(self->stream.length);
}

static PyObject *cutter_traits(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Cutter *self = (Cutter *)object;
    uint8_t traits[RDC_TRAIT_BYTES];
    if (self->state != FINISHED)
        return PyErr_Format(PyExc_ValueError, "traits are known when the stream is finished");
    return PyBytes_FromStringAndSize((char *)traits, rdc_cutter_traits(&self->stream, traits));
}

static PyMethodDef cutter_methods[] = {
    {"feed", cutter_feed, METH_O, NULL},
    {"finish", cutter_finish, METH_NOARGS, NULL},
    {"traits", cutter_traits, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef cutter_members[] = {
    {"length", T_ULONGLONG, offsetof(Cutter, stream.length), READONLY, "Bytes fed so far."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot cutter_slots[] = {
    {Py_tp_doc, "Cut points and traits of one stream, fed in spans of any length."},
    {Py_tp_new, cutter_new},
    {Py_tp_dealloc, cutter_dealloc},
    {Py_tp_methods, cutter_methods},
    {Py_tp_members, cutter_members},
    {0, NULL},
};

/* Returns the sizes as native numbers that add up to `length`, or NULL with an exception set. */
static uint64_t *read_sizes(const Py_buffer *column, Py_ssize_t length)
{
    const size_t count = (size_t)column->len / 8;
    uint64_t *sizes = malloc(8 * count + 1), left = (uint64_t)length;
    if (!sizes) {
        PyErr_NoMemory();
        return NULL;
    }
    memcpy(sizes, column->buf, 8 * count);
    size_t i = 0;
    for (; i < count && sizes[i] <= left; i++)
        left -= sizes[i];
    if (i == count && !left && column->len % 8 == 0)
        return sizes;
    free(sizes);
    PyErr_Format(PyExc_ValueError, "the sizes, 8 bytes each, add up to another length than the data's");
    return NULL;
}

static PyObject *cut_many(PyObject *Py_UNUSED(module), PyObject *args)
{
    long long min, max;
    RDC_BUFFER data = {0}, column = {0};
    int failed, plain = 0;
    if (!PyArg_ParseTuple(args, "y*y*LL|p:cut_many", &data, &column, &min, &max, &plain))
        return refuse_arguments();
    const Py_ssize_t count = column.len / 8;
    RDC_MEMORY uint64_t *sizes = check_sizes(min, max) ? NULL : read_sizes(&column, data.len);
    if (!sizes)
        return NULL;
    RDC_OBJECT *counts = PyBytes_FromStringAndSize(NULL, 4 * count);
    RDC_OBJECT *traits = PyBytes_FromStringAndSize(NULL, RDC_TRAIT_BYTES * count);
    if (!counts || !traits)
        return NULL;
    rdc_ends lengths = {0};
    const rdc_variant *const variant = rdc_chosen_variant();
    Py_BEGIN_ALLOW_THREADS
    failed = rdc_cut_many(variant, (uint64_t)min, (uint64_t)max, data.buf, sizes, (size_t)count, plain,
                          rdc_inside(counts), &lengths, rdc_inside(traits));
    Py_END_ALLOW_THREADS
    PyObject *result = failed ? PyErr_NoMemory()
                              : Py_BuildValue("(Oy#O)", counts, lengths.count ? (char *)lengths.end : "",
                                              (Py_ssize_t)(8 * lengths.count), traits);
    free(lengths.end);
    return result;
}

static PyMethodDef functions[] = {
    {"cut_many", cut_many, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_cutter(PyObject *module)
{
    return rdc_add_type(module, "Cutter", sizeof(Cutter), cutter_slots) || PyModule_AddFunctions(module, functions) ? -1 : 0;
}
