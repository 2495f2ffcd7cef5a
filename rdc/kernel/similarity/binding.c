/*
 * binding.c - TraitIndex and TraitPairs as Python types; tests/reference/similarity.py documents each name.
 *
 * All calls keep the interpreter's lock, so threads always see a complete index. The longest call, a query of a million
 * files, takes a few milliseconds. Callers pass no more than some dozen queries at a time. A step of pairs is short.
 */
#include "module.h"

#include "platform.h"
#include "similarity/similarity.h"

/* ---- TraitIndex ---- */

typedef struct {
    PyObject_HEAD
    rdc_index index;
} TraitIndex;

/* Rows as bytes. */

static void read_row(const uint8_t *from, rdc_row *row)
{
    row->key = rdc_load64(from);
    row->size = (uint16_t)(from[8] | from[9] << 8);
    memcpy(row->traits, from + 10, RDC_TRAIT_BYTES);
}

static void write_row(uint8_t *to, const rdc_row *row)
{
    rdc_store64(to, row->key);
    to[8] = (uint8_t)row->size;
    to[9] = (uint8_t)(row->size >> 8);
    memcpy(to + 10, row->traits, RDC_TRAIT_BYTES);
}

/* Gets a buffer of whole records. ValueError for another length. */
static int get_records(PyObject *object, Py_buffer *view, Py_ssize_t each, const char *what)
{
    if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE))
        return -1;
    if (view->len % each == 0)
        return 0;
    PyErr_Format(PyExc_ValueError, "%zd bytes are no whole number of %zd-byte %s", view->len, each, what);
    return -1;
}

static int read_key(PyObject *object, uint64_t *key)
{
    *key = PyLong_AsUnsignedLongLong(object);
    if (*key != UINT64_MAX || !PyErr_Occurred())
        return 0;
    if (PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_SetString(PyExc_ValueError, "keys are numbers of 64 bits");
    return -1;
}

static PyObject *index_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":TraitIndex", names))
        return NULL;
    /* The interpreter's hash of bytes has a secret per process: a seed that no file can know. */
    RDC_OBJECT *seed = PyBytes_FromString("rdc trait index");
    const Py_hash_t hash = seed ? PyObject_Hash(seed) : -1;
    if (hash == -1)
        return NULL;
    TraitIndex *self = (TraitIndex *)type->tp_alloc(type, 0);
    if (self)
        self->index.seed = (uint64_t)hash;
    return (PyObject *)self;
}

static void index_dealloc(PyObject *object)
{
    rdc_index_end(&((TraitIndex *)object)->index);
    rdc_free_object(object);
}

static PyObject *index_put(PyObject *object, PyObject *rows)
{
    TraitIndex *self = (TraitIndex *)object;
    RDC_BUFFER view = {0};
    int failed = 0;
    if (get_records(rows, &view, RDC_ROW_BYTES, "rows"))
        return NULL;
    for (Py_ssize_t at = 0; !failed && at < view.len; at += RDC_ROW_BYTES) {
        rdc_row row;
        read_row((const uint8_t *)view.buf + at, &row);
        failed = rdc_index_put(&self->index, &row);
    }
    if (failed == -1)
        return PyErr_NoMemory();
    if (failed)
        return PyErr_Format(PyExc_ValueError, "an index holds at most %d files", RDC_INDEX_FILES);
    Py_RETURN_NONE;
}

static PyObject *index_remove(PyObject *object, PyObject *key)
{
    uint64_t number;
    if (read_key(key, &number))
        return NULL;
    return PyBool_FromLong(rdc_index_remove(&((TraitIndex *)object)->index, number));
}

static int index_contains(PyObject *object, PyObject *key)
{
    uint64_t number;
    rdc_row row;
    if (read_key(key, &number))
        return -1;
    return rdc_index_get(&((TraitIndex *)object)->index, number, &row);
}

static int by_key(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static PyObject *index_keys(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    const rdc_index *index = &((TraitIndex *)object)->index;
    RDC_MEMORY uint64_t *keys = malloc(8 * index->count + 1);
    PyObject *result = keys ? rdc_new_bytes(8 * index->count) : PyErr_NoMemory();
    if (!result)
        return NULL;
    for (size_t i = 0; i < index->count; i++) {
        rdc_row row;
        rdc_index_row(index, i, &row);
        keys[i] = row.key;
    }
    qsort(keys, index->count, sizeof *keys, by_key);
    uint8_t *out = rdc_inside(result);
    for (size_t i = 0; i < index->count; i++)
        rdc_store64(out + 8 * i, keys[i]);
    return result;
}

static PyObject *index_rows(PyObject *object, PyObject *keys)
{
    const rdc_index *index = &((TraitIndex *)object)->index;
    RDC_BUFFER view = {0};
    if (get_records(keys, &view, 8, "keys"))
        return NULL;
    PyObject *result = PyBytes_FromStringAndSize(NULL, view.len / 8 * RDC_ROW_BYTES);
    for (Py_ssize_t i = 0; result && i < view.len / 8; i++) {
        uint64_t key = rdc_load64((const uint8_t *)view.buf + 8 * i);
        rdc_row row;
        if (rdc_index_get(index, key, &row)) {
            write_row((uint8_t *)PyBytes_AS_STRING(result) + i * RDC_ROW_BYTES, &row);
        } else {
            RDC_OBJECT *number = PyLong_FromUnsignedLongLong(key);
            if (number)
                PyErr_SetObject(PyExc_KeyError, number);
            Py_CLEAR(result);
        }
    }
    return result;
}

static PyObject *list_of(const rdc_query *query)
{
    PyObject *list = PyList_New((Py_ssize_t)query->count);
    for (size_t i = 0; list && i < query->count; i++) {
        const rdc_similar *match = &query->match[i];
        PyObject *pair = Py_BuildValue("(Ki)", (unsigned long long)match->key,
                                       (int)(RDC_TRAIT_COUNT - (match->rank >> 16)));
        if (pair)
            PyList_SET_ITEM(list, (Py_ssize_t)i, pair);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *index_query(PyObject *object, PyObject *args)
{
    PyObject *rows;
    Py_ssize_t limit, least;
    RDC_BUFFER view = {0};
    if (!PyArg_ParseTuple(args, "Onn:query", &rows, &limit, &least))
        return NULL;
    if (limit < 1 || limit > RDC_MATCHES_MAX || least < 1 || least > RDC_TRAIT_COUNT)
        return PyErr_Format(PyExc_ValueError, "a query for %zd files with %zd matches: need 1 to %d files, 1 to %d matches",
                            limit, least, RDC_MATCHES_MAX, RDC_TRAIT_COUNT);
    if (get_records(rows, &view, RDC_ROW_BYTES, "rows"))
        return NULL;
    const size_t queries = (size_t)(view.len / RDC_ROW_BYTES);
    RDC_MEMORY rdc_query *query = malloc((queries + !queries) * sizeof *query);
    RDC_MEMORY rdc_similar *match = malloc((queries + !queries) * (size_t)limit * sizeof *match);
    if (!query || !match)
        return PyErr_NoMemory();
    for (size_t q = 0; q < queries; q++) {
        rdc_row row;
        read_row((const uint8_t *)view.buf + q * RDC_ROW_BYTES, &row);
        rdc_query_start(&query[q], &row, match + q * (size_t)limit, (size_t)limit, (unsigned)least);
    }
    rdc_index_query(&((TraitIndex *)object)->index, query, queries);
    PyObject *result = PyList_New((Py_ssize_t)queries);
    for (size_t q = 0; result && q < queries; q++) {
        PyObject *list = list_of(&query[q]);
        if (list)
            PyList_SET_ITEM(result, (Py_ssize_t)q, list);
        else
            Py_CLEAR(result);
    }
    return result;
}

static Py_ssize_t index_length(PyObject *object)
{
    return (Py_ssize_t)((TraitIndex *)object)->index.count;
}

static PyObject *index_memory(PyObject *object, void *Py_UNUSED(ignored))
{
    return PyLong_FromSize_t(sizeof(TraitIndex) + rdc_index_memory(&((TraitIndex *)object)->index));
}

static PyMethodDef index_methods[] = {
    {"put", index_put, METH_O, NULL},
    {"remove", index_remove, METH_O, NULL},
    {"keys", index_keys, METH_NOARGS, NULL},
    {"rows", index_rows, METH_O, NULL},
    {"query", index_query, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef index_properties[] = {
    {"memory", index_memory, NULL, "Bytes it holds.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot index_slots[] = {
    {Py_tp_doc, "Files by key with their traits and sizes, and the ones most like a given file."},
    {Py_tp_new, index_new},
    {Py_tp_dealloc, index_dealloc},
    {Py_tp_methods, index_methods},
    {Py_tp_getset, index_properties},
    {Py_sq_length, index_length},
    {Py_sq_contains, index_contains},
    {0, NULL},
};

/* ---- TraitPairs ---- */

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
    rdc_pairs_end(&((TraitPairs *)object)->pairs);
    rdc_free_object(object);
}

static PyObject *pairs_step(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    TraitPairs *self = (TraitPairs *)object;
    const rdc_pairs *pairs = &self->pairs;
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
static PyObject *pairs_strongest(PyObject *object, PyObject *args)
{
    TraitPairs *self = (TraitPairs *)object;
    RDC_BUFFER bytes = {0};
    Py_ssize_t most;
    unsigned least;
    if (!PyArg_ParseTuple(args, "ny*I:strongest", &most, &bytes, &least))
        return NULL;
    const rdc_sketches sketches = {bytes.buf, (size_t)bytes.len / RDC_SKETCH_BYTES, least};
    if (most < 1)
        return PyErr_Format(PyExc_ValueError, "the %zd strongest pairs: need 1 or more", most);
    if (bytes.len % RDC_SKETCH_BYTES)
        return PyErr_Format(PyExc_ValueError, "%zd bytes are no whole sketches of %d", bytes.len, RDC_SKETCH_BYTES);
    RDC_CLEANUP(rdc_strongest_end) rdc_strongest strongest = {0};
    if (rdc_strongest_start(&strongest, (size_t)most, &sketches))
        return PyErr_NoMemory();
    while (self->more) {
        self->more = rdc_pairs_step(&self->pairs);
        if (self->more < 0) {
            self->more = 0;
            return PyErr_NoMemory();
        }
        if (rdc_strongest_add(&strongest, self->pairs.pair, self->pairs.found))
            return PyErr_Format(PyExc_ValueError, "pairs of keys from %llu on",
                                (unsigned long long)(sketches.count ? sketches.count : RDC_PAIR_KEYS));
        if (PyErr_CheckSignals())
            return NULL;
    }
    rdc_strongest_finish(&strongest);
    return Py_BuildValue("(y#K)", (const char *)strongest.pair, (Py_ssize_t)(strongest.count * sizeof *strongest.pair),
                         (unsigned long long)strongest.left_out);
}

static PyMethodDef pairs_methods[] = {
    {"step", pairs_step, METH_NOARGS, NULL},
    {"strongest", pairs_strongest, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef pairs_members[] = {
    {"flooded", T_ULONGLONG, offsetof(TraitPairs, pairs.flooded), READONLY, "Files that another one with equal traits stands for."},
    {"skipped", T_ULONGLONG, offsetof(TraitPairs, pairs.skipped), READONLY, "Comparisons left out so far."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot pairs_slots[] = {
    {Py_tp_doc, "All pairs of similar files in an index, a bounded part at a time."},
    {Py_tp_new, pairs_new},
    {Py_tp_dealloc, pairs_dealloc},
    {Py_tp_methods, pairs_methods},
    {Py_tp_members, pairs_members},
    {0, NULL},
};

int rdc_add_trait_types(PyObject *module)
{
    if (rdc_add_type(module, "TraitIndex", sizeof(TraitIndex), index_slots) ||
        rdc_add_type(module, "TraitPairs", sizeof(TraitPairs), pairs_slots))
        return -1;
    index_type = (PyTypeObject *)PyObject_GetAttrString(module, "TraitIndex");
    return index_type ? 0 : -1;
}
