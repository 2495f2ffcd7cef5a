/* binding.c - the tables of a scan as a Python module;
 * tests/reference/counts.py documents each name.
 *
 * Columns are arrays of native 64-bit numbers.
 * Tables are used with the interpreter's lock held, since adding one span takes microseconds. Many rows are added without
 * it, and nothing else can be done with their table meanwhile. */
#include "module.h"

#include "count/count.h"

static PyObject *column(const uint64_t *values, size_t count)
{
    return PyBytes_FromStringAndSize((const char *)values, (Py_ssize_t)(8 * count));
}

/* Returns -1 with an exception set unless both columns have 64-bit numbers, one a row. */
static int check_rows(const Py_buffer *first, const Py_buffer *second)
{
    if (rdc_check_column(first, 8, "a column") || rdc_check_column(second, 8, "a column"))
        return -1;
    if (first->len == second->len)
        return 0;
    PyErr_Format(PyExc_ValueError, "columns of %zd and %zd rows", first->len / 8, second->len / 8);
    return -1;
}

/* ---- ChunkTable ---- */

#define UNLOCKED_ROWS 4096 /* a fraction of a millisecond, for which it pays to pass the lock on */

typedef struct {
    PyObject_HEAD
    rdc_table table;
    int is_busy; /* rows are being added without the interpreter's lock, under which this is read and written */
} ChunkTable;

/* The table, or NULL with an exception while another thread adds rows. */
static rdc_table *free_table(PyObject *object)
{
    ChunkTable *self = (ChunkTable *)object;
    if (!self->is_busy)
        return &self->table;
    PyErr_SetString(PyExc_RuntimeError, "another thread adds rows to this table");
    return NULL;
}

static PyObject *table_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"limit", NULL};
    Py_ssize_t limit;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "n:ChunkTable", names, &limit))
        return NULL;
    if (limit < 0)
        return PyErr_Format(PyExc_ValueError, "the limit is a number of bytes");
    ChunkTable *self = (ChunkTable *)type->tp_alloc(type, 0);
    if (self)
        rdc_table_start(&self->table, (size_t)limit); /* all of `self` is zero */
    return (PyObject *)self;
}

static void table_dealloc(PyObject *object)
{
    rdc_table_end(&((ChunkTable *)object)->table);
    rdc_free_object(object);
}

static PyObject *table_add(PyObject *object, PyObject *args)
{
    rdc_table *table = free_table(object);
    RDC_BUFFER keys = {0}, sizes = {0}, counts = {0};
    int failed;
    if (!table || !PyArg_ParseTuple(args, "y*y*|y*:add", &keys, &sizes, &counts) || check_rows(&keys, &sizes) ||
        (counts.obj && check_rows(&keys, &counts)))
        return NULL;
    const uint64_t *key = keys.buf, *size = sizes.buf, *count = counts.buf;
    const size_t rows = (size_t)keys.len / 8;
    if (rows < UNLOCKED_ROWS) {
        failed = rdc_table_add(table, key, size, count, rows);
    } else {
        ((ChunkTable *)object)->is_busy = 1;
        Py_BEGIN_ALLOW_THREADS
        failed = rdc_table_add(table, key, size, count, rows);
        Py_END_ALLOW_THREADS
        ((ChunkTable *)object)->is_busy = 0;
    }
    if (failed)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *table_sample(PyObject *object, PyObject *argument)
{
    rdc_table *table = free_table(object);
    const long shift = table ? PyLong_AsLong(argument) : -1;
    if (shift == -1 && PyErr_Occurred())
        return NULL;
    if (shift < 0 || shift > 63)
        return PyErr_Format(PyExc_ValueError, "a sample of one in 2^%ld: 2^0 to 2^63 is expected", shift);
    if (rdc_table_sample(table, (unsigned)shift))
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *table_find(PyObject *object, PyObject *argument)
{
    const rdc_table *table = free_table(object);
    const uint64_t key = table ? PyLong_AsUnsignedLongLong(argument) : UINT64_MAX;
    uint64_t size = 0;
    if (key == UINT64_MAX && PyErr_Occurred())
        return NULL;
    const uint64_t count = rdc_table_find(table, key, &size);
    return Py_BuildValue("(KK)", (unsigned long long)count, (unsigned long long)size);
}

static PyObject *table_entries(PyObject *object, PyObject *args)
{
    const rdc_table *table = free_table(object);
    Py_ssize_t position, most;
    if (!table || !PyArg_ParseTuple(args, "nn:entries", &position, &most))
        return NULL;
    if (position < 0 || most < 0 || most > (Py_ssize_t)1 << 32)
        return PyErr_Format(PyExc_ValueError, "entries are read from a position >= 0, at most 2^32 at a time");
    size_t at = (size_t)position, rows = 0;
    const size_t room = (size_t)most < table->used ? (size_t)most : table->used;
    RDC_MEMORY uint64_t *out = malloc(24 * room + 1);
    rdc_wide chunk;
    if (!out)
        return PyErr_NoMemory();
    while (rows < room && rdc_table_next(table, &at, &chunk)) {
        out[rows] = chunk.key;
        out[room + rows] = chunk.size;
        out[2 * room + rows++] = chunk.count;
    }
    return Py_BuildValue("(NNNn)", column(out, rows), column(out + room, rows), column(out + 2 * room, rows),
                         (Py_ssize_t)at);
}

static PyObject *bins(const uint64_t *chunks, const uint64_t *bytes)
{
    PyObject *list = PyList_New(0);
    for (unsigned b = 0; list && b < RDC_TABLE_BINS; b++) {
        if (!chunks[b])
            continue;
        RDC_OBJECT *bin = Py_BuildValue("(IKK)", b, (unsigned long long)chunks[b], (unsigned long long)bytes[b]);
        if (!bin || PyList_Append(list, bin))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *table_summary(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    const rdc_table *table = free_table(object);
    rdc_table_summary s;
    if (!table)
        return NULL;
    rdc_table_summarize(table, &s);
    return Py_BuildValue("(KKdKKKKNN)", (unsigned long long)s.unique_chunks, (unsigned long long)s.unique_bytes,
                         s.unique_squares, (unsigned long long)s.groups, (unsigned long long)s.group_bytes,
                         (unsigned long long)s.largest_size, (unsigned long long)s.largest_count,
                         bins(s.size_chunks, s.size_bytes), bins(s.copy_chunks, s.copy_bytes));
}

static PyObject *table_chunks(PyObject *object, void *Py_UNUSED(ignored))
{
    const rdc_table *table = free_table(object);
    return table ? PyLong_FromUnsignedLongLong(table->chunks) : NULL;
}

static PyObject *table_bytes(PyObject *object, void *Py_UNUSED(ignored))
{
    const rdc_table *table = free_table(object);
    return table ? PyLong_FromUnsignedLongLong(table->bytes) : NULL;
}

static PyObject *table_shift(PyObject *object, void *Py_UNUSED(ignored))
{
    const rdc_table *table = free_table(object);
    return table ? PyLong_FromLong((long)table->shift) : NULL;
}

static PyObject *table_memory(PyObject *object, void *Py_UNUSED(ignored))
{
    const rdc_table *table = free_table(object);
    return table ? PyLong_FromSize_t(rdc_table_memory(table)) : NULL;
}

static Py_ssize_t table_length(PyObject *object)
{
    const rdc_table *table = free_table(object);
    return table ? (Py_ssize_t)table->used : -1;
}

static PyMethodDef table_methods[] = {
    {"add", table_add, METH_VARARGS, NULL},
    {"entries", table_entries, METH_VARARGS, NULL},
    {"find", table_find, METH_O, NULL},
    {"sample", table_sample, METH_O, NULL},
    {"summary", table_summary, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef table_properties[] = {
    {"chunks", table_chunks, NULL, "Chunks added, kept or not.", NULL},
    {"bytes", table_bytes, NULL, "Bytes of all of them.", NULL},
    {"shift", table_shift, NULL, "One key in 2^shift is kept.", NULL},
    {"memory", table_memory, NULL, "Bytes it takes.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot table_slots[] = {
    {Py_tp_doc, "How often each chunk was seen."},
    {Py_tp_new, table_new},
    {Py_tp_dealloc, table_dealloc},
    {Py_tp_methods, table_methods},
    {Py_tp_getset, table_properties},
    {Py_sq_length, table_length},
    {0, NULL},
};

/* ---- Folder ---- */

typedef struct {
    PyObject_HEAD
    rdc_folder folder;
} Folder;

static PyObject *folder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"min_items", "max_items", NULL};
    Py_ssize_t min, max;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nn:Folder", names, &min, &max))
        return NULL;
    if (min < 1 || min >= max || max > RDC_FOLD_MAX)
        return PyErr_Format(PyExc_ValueError, "groups of %zd to %zd: need 1 <= min < max <= %d", min, max,
                            RDC_FOLD_MAX);
    Folder *self = (Folder *)type->tp_alloc(type, 0);
    if (self) {
        self->folder.min = (size_t)min;
        self->folder.max = (size_t)max;
    }
    return (PyObject *)self;
}

/* Streams that end after the items ends[0], ends[1], ... Without ends: part of one stream that continues. */
static PyObject *fold(rdc_folder *folder, PyObject *args, int whole)
{
    RDC_BUFFER keys = {0}, sizes = {0}, stops = {0};
    size_t groups = 0, begin = 0;
    if (!PyArg_ParseTuple(args, whole ? "y*y*y*:streams" : "y*y*:feed", &keys, &sizes, &stops) ||
        check_rows(&keys, &sizes) || rdc_check_column(&stops, 8, "ends"))
        return NULL;
    const uint64_t *key = keys.buf, *size = sizes.buf, *stop = stops.buf;
    const size_t rows = (size_t)keys.len / 8, streams = (size_t)stops.len / 8;
    for (size_t i = 0; i < streams; i++)
        if (stop[i] > rows || stop[i] < (i ? stop[i - 1] : 0) || (i + 1 == streams && stop[i] != rows))
            return PyErr_Format(PyExc_ValueError, "streams end in order, the last with the last row");
    if (whole && !streams && rows)
        return PyErr_Format(PyExc_ValueError, "rows that belong to no stream");
    const size_t room = rows + folder->count + streams;
    RDC_MEMORY uint64_t *out = malloc((2 * room + streams) * 8 + 1);
    if (!out)
        return PyErr_NoMemory();
    uint64_t *out_key = out, *out_size = out + room, *out_stop = out + 2 * room;
    if (!whole)
        groups = rdc_folder_feed(folder, key, size, rows, out_key, out_size);
    for (size_t i = 0; i < streams; i++) {
        groups += rdc_folder_feed(folder, key + begin, size + begin, stop[i] - begin, out_key + groups, out_size + groups);
        groups += rdc_folder_finish(folder, out_key + groups, out_size + groups);
        begin = stop[i];
        out_stop[i] = groups;
    }
    return whole ? Py_BuildValue("(NNN)", column(out_key, groups), column(out_size, groups), column(out_stop, streams))
                 : Py_BuildValue("(NN)", column(out_key, groups), column(out_size, groups));
}

static PyObject *folder_feed(PyObject *object, PyObject *args)
{
    return fold(&((Folder *)object)->folder, args, 0);
}

static PyObject *folder_streams(PyObject *object, PyObject *args)
{
    if (((Folder *)object)->folder.count)
        return PyErr_Format(PyExc_ValueError, "a stream is not finished");
    return fold(&((Folder *)object)->folder, args, 1);
}

static PyObject *folder_finish(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    uint64_t key, size;
    const size_t groups = rdc_folder_finish(&((Folder *)object)->folder, &key, &size);
    return Py_BuildValue("(NN)", column(&key, groups), column(&size, groups));
}

static PyMethodDef folder_methods[] = {
    {"feed", folder_feed, METH_VARARGS, NULL},
    {"finish", folder_finish, METH_NOARGS, NULL},
    {"streams", folder_streams, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot folder_slots[] = {
    {Py_tp_doc, "Groups of neighbouring chunks, cut by their keys."},
    {Py_tp_new, folder_new},
    {Py_tp_methods, folder_methods},
    {0, NULL},
};

/* ---- the checks of a part's rows, and the choice of rows by key ---- */

static PyObject *left_after_rows(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER keys = {0}, sizes = {0}, counts = {0};
    PyObject *lowest;
    unsigned shift;
    unsigned long long chunks, bytes;
    rdc_rows_verdict verdict = RDC_ROWS_FINE;
    if (!PyArg_ParseTuple(args, "y*y*y*O!IKK:left_after_rows", &keys, &sizes, &counts, &PyLong_Type, &lowest, &shift,
                          &chunks, &bytes) ||
        check_rows(&keys, &sizes) || check_rows(&keys, &counts))
        return NULL;
    rdc_rows_left left = {chunks, bytes};
    const uint64_t least = PyLong_AsUnsignedLongLong(lowest);
    if (shift > 63)
        return PyErr_Format(PyExc_ValueError, "a sample of one in 2^%u: 2^0 to 2^63 is expected", shift);
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError))
            return NULL;
        PyErr_Clear(); /* behind the last key there is */
        verdict = RDC_ROWS_DISORDERED;
    } else if (keys.len) {
        verdict = rdc_judge_rows(keys.buf, sizes.buf, counts.buf, (size_t)keys.len / 8, least, shift, &left);
    }
    if (verdict == RDC_ROWS_DISORDERED)
        return PyErr_Format(PyExc_ValueError, "keys out of order");
    if (verdict == RDC_ROWS_TOO_MANY)
        return PyErr_Format(PyExc_ValueError, "more chunks than the table has");
    return Py_BuildValue("(KK)", (unsigned long long)left.chunks, (unsigned long long)left.bytes);
}

static PyObject *select_chunks(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER keys = {0};
    unsigned long long salt;
    unsigned shift;
    if (!PyArg_ParseTuple(args, "y*KI:select_chunks", &keys, &salt, &shift) || rdc_check_column(&keys, 8, "keys"))
        return NULL;
    if (shift > 63)
        return PyErr_Format(PyExc_ValueError, "a choice of one in 2^%u: 2^0 to 2^63 is expected", shift);
    RDC_MEMORY uint64_t *index = malloc((size_t)keys.len + 1);
    if (!index)
        return PyErr_NoMemory();
    return column(index, rdc_select_chunks(keys.buf, (size_t)keys.len / 8, salt, shift, index));
}

static PyMethodDef functions[] = {
    {"left_after_rows", left_after_rows, METH_VARARGS, NULL},
    {"select_chunks", select_chunks, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_scan_tables(PyObject *module)
{
    return rdc_add_type(module, "ChunkTable", sizeof(ChunkTable), table_slots) ||
                   rdc_add_type(module, "Folder", sizeof(Folder), folder_slots) || PyModule_AddFunctions(module, functions)
               ? -1
               : 0;
}
