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
#define CHUNK_RATIO_LIMIT 8
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
    PyTypeObject *type = Py_TYPE(object);
    rdc_cutter_end(&((Cutter *)object)->stream);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *cutter_feed(PyObject *object, PyObject *span)
{
    Cutter *self = (Cutter *)object;
    Py_buffer view;
    int failed;
    if (check_open(self->state) || PyObject_GetBuffer(span, &view, PyBUF_SIMPLE))
        return NULL;
    if (view.len >= UNLOCK_FROM) {
        self->state = BUSY;
        Py_BEGIN_ALLOW_THREADS
        failed = rdc_cutter_feed(&self->stream, view.buf, (size_t)view.len);
        Py_END_ALLOW_THREADS
        self->state = OPEN;
    } else {
        failed = rdc_cutter_feed(&self->stream, view.buf, (size_t)view.len);
    }
    PyBuffer_Release(&view);
    if (failed) {
        self->state = LOST;
        return PyErr_NoMemory();
    }
    return take_ends(&self->stream.ends);
}

static PyObject *cutter_finish(PyObject *object, PyObject *ignored)
{
    Cutter *self = (Cutter *)object;
    (void)ignored;
    if (check_open(self->state))
        return NULL;
    self->state = FINISHED;
    return last_end(self->stream.length);
}

static PyObject *cutter_traits(PyObject *object, PyObject *ignored)
{
    Cutter *self = (Cutter *)object;
    uint8_t traits[RDC_TRAIT_BYTES];
    (void)ignored;
    if (self->state != FINISHED) {
        PyErr_SetString(PyExc_ValueError, "traits are known when the stream is finished");
        return NULL;
    }
    return PyBytes_FromStringAndSize((char *)traits, rdc_cutter_traits(&self->stream, traits));
}

static PyObject *cutter_length(PyObject *object, void *ignored)
{
    (void)ignored;
    return PyLong_FromUnsignedLongLong(((Cutter *)object)->stream.length);
}

static PyMethodDef cutter_methods[] = {
    {"feed", cutter_feed, METH_O, NULL},
    {"finish", cutter_finish, METH_NOARGS, NULL},
    {"traits", cutter_traits, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef cutter_properties[] = {
    {"length", cutter_length, NULL, "Bytes fed so far.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot cutter_slots[] = {
    {Py_tp_doc, "Cut points and traits of one stream, fed in spans of any length."},
    {Py_tp_new, cutter_new},
    {Py_tp_dealloc, cutter_dealloc},
    {Py_tp_methods, cutter_methods},
    {Py_tp_getset, cutter_properties},
    {0, NULL},
};

/* Returns the sizes as native numbers that add up to `length`, or NULL with an exception set. */
static uint64_t *read_sizes(const Py_buffer *column, Py_ssize_t length)
{
    const size_t count = (size_t)column->len / 8;
    uint64_t *sizes = PyMem_Malloc(8 * count + 1), left = (uint64_t)length;
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
    PyErr_SetString(PyExc_ValueError, "the sizes, 8 bytes each, add up to another length than the data's");
    PyMem_Free(sizes);
    return NULL;
}

static PyObject *cut_many(PyObject *module, PyObject *args)
{
    long long min, max;
    Py_buffer data, column;
    PyObject *counts = NULL, *traits = NULL, *result = NULL;
    rdc_ends lengths = {0};
    int failed, plain = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*LL|p:cut_many", &data, &column, &min, &max, &plain))
        return refuse_arguments();
    const Py_ssize_t count = column.len / 8;
    uint64_t *const sizes = check_sizes(min, max) ? NULL : read_sizes(&column, data.len);
    if (!sizes)
        goto done;
    counts = PyBytes_FromStringAndSize(NULL, 4 * count);
    traits = PyBytes_FromStringAndSize(NULL, RDC_TRAIT_BYTES * count);
    if (!counts || !traits)
        goto done;
    const rdc_variant *const variant = rdc_chosen_variant();
    Py_BEGIN_ALLOW_THREADS
    failed = rdc_cut_many(variant, (uint64_t)min, (uint64_t)max, data.buf, sizes, (size_t)count, plain,
                          (uint32_t *)(void *)PyBytes_AS_STRING(counts), &lengths, (uint8_t *)PyBytes_AS_STRING(traits));
    Py_END_ALLOW_THREADS
    if (failed)
        PyErr_NoMemory();
    else
        result = Py_BuildValue("(Oy#O)", counts, lengths.count ? (char *)lengths.end : "",
                               (Py_ssize_t)(8 * lengths.count), traits);
done:
    free(lengths.end);
    PyMem_Free(sizes);
    Py_XDECREF(counts);
    Py_XDECREF(traits);
    PyBuffer_Release(&data);
    PyBuffer_Release(&column);
    return result;
}

static PyType_Spec cutter_spec = {"rdc.kernel._kernel.Cutter", sizeof(Cutter), 0, Py_TPFLAGS_DEFAULT, cutter_slots};

static PyMethodDef functions[] = {
    {"cut_many", cut_many, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_cutter(PyObject *module)
{
    return rdc_add_type(module, "Cutter", &cutter_spec) || PyModule_AddFunctions(module, functions) ? -1 : 0;
}
