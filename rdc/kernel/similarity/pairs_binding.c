/*
 * pairs_binding.c - TraitPairs as a Python type; tests/reference/similarity.py documents each name.
 *
 * All calls keep the interpreter's lock; each step is short.
 */
#include "similarity/binding.h"

#include "similarity/pairs.h"
#include "similarity/strongest_pairs.h"

static PyTypeObject *index_type; /* the type of the constructor's argument */

typedef struct {
    PyObject_HEAD
    rdc_pairs pairs;
    int more;
} TraitPairs;

static PyObject *pairs_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"index", "min_matches", "window", "spanning", NULL};
    PyObject *index;
    Py_ssize_t least, window;
    int spanning = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!nn|$p:TraitPairs", names, index_type, &index, &least, &window,
                                     &spanning))
        return NULL;
    if (least < 2 || least > RDC_TRAIT_COUNT || window < 1)
        return PyErr_Format(PyExc_ValueError, "pairs with %zd matches in a window of %zd: need 2 to %d, and 1 or more",
                            least, window, RDC_TRAIT_COUNT);
    TraitPairs *self = (TraitPairs *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->more = 1;
    if (rdc_pairs_start(&self->pairs, &((TraitIndex *)index)->index, (unsigned)least, (size_t)window,
                        spanning)) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void pairs_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    rdc_pairs_end(&((TraitPairs *)object)->pairs);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *pairs_step(PyObject *object, PyObject *ignored)
{
    TraitPairs *self = (TraitPairs *)object;
    const rdc_pairs *pairs = &self->pairs;
    (void)ignored;
    if (!self->more)
        Py_RETURN_NONE;
    self->more = rdc_pairs_step(&self->pairs);
    if (self->more < 0) {
        self->more = 0;
        return PyErr_NoMemory();
    }
    PyObject *list = PyList_New((Py_ssize_t)pairs->found);
    for (size_t i = 0; list && i < pairs->found; i++) {
        PyObject *pair = Py_BuildValue("(KKI)", (unsigned long long)pairs->pair[i].a,
                                       (unsigned long long)pairs->pair[i].b, pairs->pair[i].matches);
        if (pair)
            PyList_SET_ITEM(list, (Py_ssize_t)i, pair);
        else
            Py_CLEAR(list);
    }
    return list;
}

/* All remaining pairs in one call. Between steps it only checks for Ctrl-C. */
static PyObject *strongest_of(TraitPairs *self, Py_ssize_t most, const rdc_sketches *sketches)
{
    rdc_strongest strongest;
    PyObject *result = NULL;
    if (rdc_strongest_start(&strongest, (size_t)most, sketches))
        return PyErr_NoMemory();
    while (self->more) {
        self->more = rdc_pairs_step(&self->pairs);
        if (self->more < 0) {
            self->more = 0;
            PyErr_NoMemory();
            goto done;
        }
        if (rdc_strongest_add(&strongest, self->pairs.pair, self->pairs.found)) {
            PyErr_Format(PyExc_ValueError, "pairs of keys from %llu on",
                         (unsigned long long)(sketches->count ? sketches->count : RDC_PAIR_KEYS));
            goto done;
        }
        if (PyErr_CheckSignals())
            goto done;
    }
    rdc_strongest_finish(&strongest);
    result = Py_BuildValue("(y#K)", (const char *)strongest.pair, (Py_ssize_t)(strongest.count * sizeof *strongest.pair),
                           (unsigned long long)strongest.left_out);
done:
    rdc_strongest_end(&strongest);
    return result;
}

static PyObject *pairs_strongest(PyObject *object, PyObject *args)
{
    Py_buffer bytes;
    Py_ssize_t most;
    unsigned least;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "ny*I:strongest", &most, &bytes, &least))
        return NULL;
    const rdc_sketches sketches = {bytes.buf, (size_t)bytes.len / RDC_SKETCH_BYTES, least};
    if (most < 1)
        PyErr_Format(PyExc_ValueError, "the %zd strongest pairs: need 1 or more", most);
    else if (bytes.len % RDC_SKETCH_BYTES)
        PyErr_Format(PyExc_ValueError, "%zd bytes are no whole sketches of %d", bytes.len, RDC_SKETCH_BYTES);
    else
        result = strongest_of((TraitPairs *)object, most, &sketches);
    PyBuffer_Release(&bytes);
    return result;
}

static PyObject *pairs_flooded(PyObject *object, void *ignored)
{
    (void)ignored;
    return PyLong_FromUnsignedLongLong(((TraitPairs *)object)->pairs.flooded);
}

static PyObject *pairs_skipped(PyObject *object, void *ignored)
{
    (void)ignored;
    return PyLong_FromUnsignedLongLong(((TraitPairs *)object)->pairs.skipped);
}

static PyMethodDef pairs_methods[] = {
    {"step", pairs_step, METH_NOARGS, NULL},
    {"strongest", pairs_strongest, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef pairs_properties[] = {
    {"flooded", pairs_flooded, NULL, "Files that another one with equal traits stands for.", NULL},
    {"skipped", pairs_skipped, NULL, "Comparisons left out so far.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot pairs_slots[] = {
    {Py_tp_doc, "All pairs of similar files in an index, a bounded part at a time."},
    {Py_tp_new, pairs_new},
    {Py_tp_dealloc, pairs_dealloc},
    {Py_tp_methods, pairs_methods},
    {Py_tp_getset, pairs_properties},
    {0, NULL},
};

static PyType_Spec pairs_spec = {"rdc.kernel._kernel.TraitPairs", sizeof(TraitPairs), 0, Py_TPFLAGS_DEFAULT,
                                 pairs_slots};

int rdc_add_trait_pairs(PyObject *module, PyTypeObject *index)
{
    if (rdc_add_type(module, "TraitPairs", &pairs_spec))
        return -1;
    index_type = (PyTypeObject *)Py_NewRef(index);
    return 0;
}
