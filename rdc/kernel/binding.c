/*
 * binding.c - the kernel as a Python module: streams and functions; trait_binding.c has the index of traits, and no
 * other file knows Python. rdc/kernel/pure.py documents each name.
 *
 * A Cutter works without the interpreter's lock on spans large enough to matter. Two threads in one stream would be
 * an error of the caller: the second finds the stream busy and is told so.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "block_form.h"
#include "block_match.h"
#include "block_runs.h"
#include "code_binding.h"
#include "code_targets.h"
#include "cut_many.h"
#include "cuts.h"
#include "equal_rows.h"
#include "gap_binding.h"
#include "name_ranks.h"
#include "siphash.h"
#include "trait_binding.h"
#include "winnow.h"

/* Bytes from which on giving up the lock costs less than holding it: about 1 us of work. */
#define UNLOCK_FROM 4096

/* Bounds of rdc/limits.py; a test compares them. */
#define CHUNK_MIN_LIMIT 64
#define CHUNK_RATIO_LIMIT 8
#define CHUNK_MAX_LIMIT (16 << 20)
#define WINNOW_MAX_LIMIT 4096

static const rdc_form *chosen = &rdc_plain;

/* Moves the ends into a list. */
static PyObject *take_ends(rdc_ends *ends)
{
    PyObject *list = PyList_New((Py_ssize_t)ends->count);
    if (!list)
        return NULL;
    for (size_t i = 0; i < ends->count; i++) {
        PyObject *end = PyLong_FromUnsignedLongLong(ends->end[i]);
        if (!end) {
            Py_DECREF(list);
            return NULL;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, end);
    }
    ends->count = 0;
    return list;
}

static PyObject *last_end(uint64_t length)
{
    return length ? Py_BuildValue("[K]", (unsigned long long)length) : PyList_New(0);
}

/* What a stream may be asked now. */
typedef enum { OPEN, BUSY, FINISHED, LOST } stream_state;

static int check_open(stream_state state)
{
    switch (state) {
    case OPEN:
        return 0;
    case BUSY:
        PyErr_SetString(PyExc_ValueError, "another thread is feeding this stream");
        return -1;
    case FINISHED:
        PyErr_SetString(PyExc_ValueError, "the stream is finished");
        return -1;
    default:
        PyErr_SetString(PyExc_ValueError, "the stream was lost for want of memory");
        return -1;
    }
}

/* Sizes too large for a machine word are as wrong as those that fit. */
static PyObject *refuse_arguments(void)
{
    if (PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_SetString(PyExc_ValueError, "chunk sizes and node sizes fit 64 bits");
    return NULL;
}

/* ---- Cutter ---- */

typedef struct {
    PyObject_HEAD
    rdc_cutter stream;
    stream_state state;
} Cutter;

static const rdc_form *find_form(const char *name)
{
    for (const rdc_form *const *form = rdc_forms; *form; form++)
        if (!strcmp((*form)->name, name) && (*form)->usable())
            return *form;
    PyErr_Format(PyExc_ValueError, "no kernel form %s here", name);
    return NULL;
}

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
    static char *names[] = {"min_size", "max_size", "form", NULL};
    long long min, max;
    const char *name = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "LL|$z:Cutter", names, &min, &max, &name))
        return refuse_arguments();
    if (check_sizes(min, max))
        return NULL;
    const rdc_form *form = name ? find_form(name) : chosen;
    if (!form)
        return NULL;
    Cutter *self = (Cutter *)type->tp_alloc(type, 0);
    if (self) {
        rdc_cutter_start(&self->stream, form, (uint64_t)min, (uint64_t)max);
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

/* The sizes as native numbers that add up to `length`, or NULL with an error set. */
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
    int failed;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*LL:cut_many", &data, &column, &min, &max))
        return refuse_arguments();
    const Py_ssize_t count = column.len / 8;
    uint64_t *const sizes = check_sizes(min, max) ? NULL : read_sizes(&column, data.len);
    if (!sizes)
        goto done;
    counts = PyBytes_FromStringAndSize(NULL, 4 * count);
    traits = PyBytes_FromStringAndSize(NULL, RDC_TRAIT_BYTES * count);
    if (!counts || !traits)
        goto done;
    Py_BEGIN_ALLOW_THREADS
    failed = rdc_cut_many(chosen, (uint64_t)min, (uint64_t)max, data.buf, sizes, (size_t)count,
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

/* ---- Winnower ---- */

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
    PyTypeObject *type = Py_TYPE(object);
    rdc_winnower_end(&((Winnower *)object)->stream);
    type->tp_free(object);
    Py_DECREF(type);
}

/* Keeps the lock: a rank stands for a chunk of kilobytes, so these spans are short. */
static PyObject *winnower_feed(PyObject *object, PyObject *ranks)
{
    Winnower *self = (Winnower *)object;
    PyObject *result = NULL;
    Py_buffer view;
    if (check_open(self->state) || PyObject_GetBuffer(ranks, &view, PyBUF_SIMPLE))
        return NULL;
    if (view.len % 8) {
        PyErr_Format(PyExc_ValueError, "%zd bytes are no whole number of 8-byte ranks", view.len);
    } else if (rdc_winnower_feed(&self->stream, view.buf, (size_t)view.len / 8)) {
        self->state = LOST;
        PyErr_NoMemory();
    } else {
        result = take_ends(&self->stream.ends);
    }
    PyBuffer_Release(&view);
    return result;
}

static PyObject *winnower_finish(PyObject *object, PyObject *ignored)
{
    Winnower *self = (Winnower *)object;
    (void)ignored;
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

static PyType_Spec winnower_spec = {"rdc.kernel._kernel.Winnower", sizeof(Winnower), 0, Py_TPFLAGS_DEFAULT,
                                    winnower_slots};

/* ---- functions ---- */

static PyObject *short_references(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"key", "records", "stride", "width", NULL};
    Py_buffer key, records;
    Py_ssize_t stride, width;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*y*nn:short_references", names, &key, &records, &stride, &width))
        return NULL;
    if (key.len != 16 || stride < 32 || width < 1 || width > 8 || records.len % stride) {
        PyErr_Format(PyExc_ValueError,
                     "short references: a key of 16 bytes (found %zd), a width of 1 to 8 (%zd), records of >= 32 "
                     "bytes (%zd) without a rest (%zd bytes)",
                     key.len, width, stride, records.len);
        goto done;
    }
    Py_ssize_t count = records.len / stride;
    result = PyBytes_FromStringAndSize(NULL, count * width);
    if (!result)
        goto done;
    uint8_t *out = (uint8_t *)PyBytes_AS_STRING(result);
    Py_BEGIN_ALLOW_THREADS
    rdc_short_references(key.buf, records.buf, (size_t)count, (size_t)stride, (unsigned)width, out);
    Py_END_ALLOW_THREADS
done:
    PyBuffer_Release(&key);
    PyBuffer_Release(&records);
    return result;
}

static PyObject *name_ranks(PyObject *module, PyObject *args)
{
    Py_buffer key, names;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*:name_ranks", &key, &names))
        return NULL;
    const size_t count = rdc_count_names(names.buf, (size_t)names.len);
    if (key.len != 16 || count == SIZE_MAX) {
        PyErr_Format(PyExc_ValueError,
                     "name ranks: a key of 16 bytes (found %zd), names each followed by NUL (%zd bytes)", key.len,
                     names.len);
        goto done;
    }
    result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(8 * count));
    if (!result)
        goto done;
    uint8_t *out = (uint8_t *)PyBytes_AS_STRING(result);
    if (names.len >= UNLOCK_FROM) {
        Py_BEGIN_ALLOW_THREADS
        rdc_name_ranks(key.buf, names.buf, count, out);
        Py_END_ALLOW_THREADS
    } else {
        rdc_name_ranks(key.buf, names.buf, count, out);
    }
done:
    PyBuffer_Release(&key);
    PyBuffer_Release(&names);
    return result;
}

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

/* Rewrites `content` in the pieces that `places` names: an offset and a length each. */
static PyObject *move_targets(PyObject *args, const char *format, rdc_direction direction)
{
    Py_buffer content, places;
    PyObject *result = NULL;
    uint64_t total = 0;
    size_t moved = 0;
    if (!PyArg_ParseTuple(args, format, &content, &places))
        return NULL;
    const size_t pieces = (size_t)places.len / 16, size = (size_t)content.len;
    int fits = places.len % 16 == 0;
    for (size_t i = 0; fits && i < pieces; i++) {
        uint64_t length;
        memcpy(&length, (const uint8_t *)places.buf + 16 * i + 8, sizeof length);
        fits = length <= size - total;
        total += length;
    }
    if (!fits || total != size) {
        PyErr_Format(PyExc_ValueError,
                     "code targets: an offset and a length for each piece, of %zd bytes in all (%zd bytes)", content.len,
                     places.len);
        goto done;
    }
    uint8_t *code = content.buf;
    Py_BEGIN_ALLOW_THREADS
    for (size_t i = 0; i < pieces; i++) {
        uint64_t place[2];
        memcpy(place, (const uint8_t *)places.buf + 16 * i, sizeof place);
        moved += rdc_move_targets(code, (size_t)place[1], place[0], direction);
        code += place[1];
    }
    Py_END_ALLOW_THREADS
    result = PyLong_FromSize_t(moved);
done:
    PyBuffer_Release(&content);
    PyBuffer_Release(&places);
    return result;
}

static PyObject *absolute_targets(PyObject *module, PyObject *args)
{
    (void)module;
    return move_targets(args, "w*y*:absolute_targets", RDC_ABSOLUTE);
}

static PyObject *relative_targets(PyObject *module, PyObject *args)
{
    (void)module;
    return move_targets(args, "w*y*:relative_targets", RDC_RELATIVE);
}

/* The key, the data's own length, size and width, as both functions about blocks take them. */
static int check_blocks(const Py_buffer *key, Py_ssize_t size, Py_ssize_t width, Py_ssize_t fingerprints)
{
    if (key->len == 16 && size >= 1 && width >= 1 && width <= 8 && fingerprints % width == 0)
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "blocks: a key of 16 bytes (found %zd), a size of >= 1 (%zd), a width of 1 to 8 (%zd), fingerprints "
                 "without a rest (%zd bytes)",
                 key->len, size, width, fingerprints);
    return -1;
}

/* How many blocks parts of these lengths have, or -1 where they do not add up to `total`. */
static Py_ssize_t blocks_of(const Py_buffer *lengths, Py_ssize_t total, Py_ssize_t size)
{
    Py_ssize_t blocks = 0;
    for (Py_ssize_t at = 0; at + 8 <= lengths->len; at += 8) {
        uint64_t length;
        memcpy(&length, (const char *)lengths->buf + at, 8);
        if (length > (uint64_t)total)
            return -1;
        total -= (Py_ssize_t)length;
        blocks += (Py_ssize_t)length / size + ((Py_ssize_t)length % size != 0);
    }
    return total || lengths->len % 8 ? -1 : blocks;
}

static PyObject *block_fingerprints(PyObject *module, PyObject *args)
{
    Py_buffer key, data, lengths = {0};
    Py_ssize_t size, width;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*nn|y*:block_fingerprints", &key, &data, &size, &width, &lengths))
        return NULL;
    if (check_blocks(&key, size, width, 0))
        goto done;
    const uint64_t whole = (uint64_t)data.len;
    if (!lengths.obj) {
        lengths.buf = (void *)&whole;
        lengths.len = 8;
    }
    const Py_ssize_t blocks = blocks_of(&lengths, data.len, size);
    if (blocks < 0) {
        PyErr_Format(PyExc_ValueError, "blocks: lengths, 8 bytes each, that add up to %zd bytes", data.len);
        goto done;
    }
    result = PyBytes_FromStringAndSize(NULL, blocks * width);
    if (!result)
        goto done;
    uint8_t *out = (uint8_t *)PyBytes_AS_STRING(result);
    const uint8_t *at = data.buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t row = 0; row < lengths.len / 8; row++) {
        uint64_t length;
        memcpy(&length, (const char *)lengths.buf + 8 * row, 8);
        rdc_block_fingerprints(key.buf, at, (size_t)length, (size_t)size, (unsigned)width, out);
        at += length;
        out += (length / (uint64_t)size + (length % (uint64_t)size != 0)) * (uint64_t)width;
    }
    Py_END_ALLOW_THREADS
done:
    PyBuffer_Release(&key);
    PyBuffer_Release(&data);
    if (lengths.obj)
        PyBuffer_Release(&lengths);
    return result;
}

static PyObject *match_blocks(PyObject *module, PyObject *args)
{
    Py_buffer key, base, fingerprints;
    Py_ssize_t size, width;
    PyObject *result = NULL;
    int failed;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*nny*:match_blocks", &key, &base, &size, &width, &fingerprints))
        return NULL;
    if (check_blocks(&key, size, width, fingerprints.len))
        goto done;
    const size_t count = (size_t)(fingerprints.len / width);
    result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(8 * count));
    uint64_t *offsets = malloc(count ? 8 * count : 1);
    if (!result || !offsets) {
        free(offsets);
        Py_CLEAR(result);
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    failed = rdc_match_blocks(key.buf, base.buf, (size_t)base.len, (size_t)size, (unsigned)width, fingerprints.buf,
                              count, offsets);
    Py_END_ALLOW_THREADS
    uint8_t *out = (uint8_t *)PyBytes_AS_STRING(result);
    for (size_t i = 0; i < count; i++)
        for (unsigned j = 0; j < 8; j++)
            *out++ = (uint8_t)(offsets[i] >> 8 * j);
    free(offsets);
    if (failed) {
        Py_CLEAR(result);
        PyErr_NoMemory();
    }
done:
    PyBuffer_Release(&key);
    PyBuffer_Release(&base);
    PyBuffer_Release(&fingerprints);
    return result;
}

/* Bytes of a run and of a place at most, so that no sum of theirs overflows, and of a reach. */
#define RUN_LONGEST (UINT64_C(1) << 32)
#define PLACE_HIGHEST (UINT64_C(1) << 63)
#define REACH_LONGEST (1 << 20)

/* The runs of a buffer of little-endian 64-bit numbers, and how many blocks of `size` bytes they have; NULL with an
 * exception. */
static rdc_run *read_runs(const Py_buffer *packed, Py_ssize_t size, size_t *blocks)
{
    const size_t count = (size_t)packed->len / 32;
    rdc_run *runs = malloc(count ? count * sizeof *runs : 1);
    if (!runs) {
        PyErr_NoMemory();
        return NULL;
    }
    *blocks = 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *row = (const uint8_t *)packed->buf + 32 * i;
        uint64_t field[4];
        for (unsigned j = 0; j < 4; j++) {
            field[j] = 0;
            for (unsigned k = 0; k < 8; k++)
                field[j] |= (uint64_t)row[8 * j + k] << 8 * k;
        }
        runs[i] = (rdc_run){field[0], field[1], field[2], field[3]};
        if (field[0] > PLACE_HIGHEST || field[1] > RUN_LONGEST ||
            (field[2] > PLACE_HIGHEST && field[2] != RDC_UNPLACED) ||
            (field[3] > PLACE_HIGHEST && field[3] != RDC_UNPLACED)) {
            PyErr_SetString(PyExc_ValueError, "runs: of at most 2^32 bytes, at places up to 2^63");
            free(runs);
            return NULL;
        }
        *blocks += field[1] / (uint64_t)size + (field[1] % (uint64_t)size != 0);
    }
    return runs;
}

static PyObject *match_runs(PyObject *module, PyObject *args)
{
    Py_buffer key, base, packed, fingerprints;
    Py_ssize_t size, width, reach;
    unsigned long long origin;
    PyObject *result = NULL;
    rdc_run *runs = NULL;
    rdc_piece *found = NULL;
    size_t blocks;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*Knnny*y*:match_runs", &key, &base, &origin, &size, &width, &reach, &packed,
                          &fingerprints))
        return NULL;
    if (check_blocks(&key, size, width, fingerprints.len))
        goto done;
    if (reach < 0 || reach > REACH_LONGEST || packed.len % 32 || origin > PLACE_HIGHEST) {
        PyErr_SetString(PyExc_ValueError, "runs: rows of 32 bytes, a reach of 0 to 2^20, an origin up to 2^63");
        goto done;
    }
    runs = read_runs(&packed, size, &blocks);
    if (!runs)
        goto done;
    if (blocks != (size_t)(fingerprints.len / width)) {
        PyErr_Format(PyExc_ValueError, "runs of %zu blocks, %zd fingerprints", blocks, fingerprints.len / width);
        goto done;
    }
    found = malloc(blocks ? blocks * sizeof *found : 1);
    if (!found) {
        PyErr_NoMemory();
        goto done;
    }
    int64_t count;
    Py_BEGIN_ALLOW_THREADS
    count = rdc_match_runs(key.buf, base.buf, (size_t)base.len, origin, (size_t)size, (unsigned)width, (size_t)reach,
                           runs, (size_t)packed.len / 32, fingerprints.buf, found);
    Py_END_ALLOW_THREADS
    if (count < 0) {
        PyErr_NoMemory();
        goto done;
    }
    result = PyBytes_FromStringAndSize(NULL, 24 * (Py_ssize_t)count);
    if (!result)
        goto done;
    uint8_t *out = (uint8_t *)PyBytes_AS_STRING(result);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t field[3] = {found[i].offset, found[i].place, found[i].length};
        for (unsigned j = 0; j < 24; j++)
            *out++ = (uint8_t)(field[j / 8] >> 8 * (j % 8));
    }
done:
    free(found);
    free(runs);
    PyBuffer_Release(&key);
    PyBuffer_Release(&base);
    PyBuffer_Release(&packed);
    PyBuffer_Release(&fingerprints);
    return result;
}

static PyObject *names_of(int usable_only)
{
    PyObject *list = PyList_New(0), *tuple = NULL;
    for (const rdc_form *const *form = rdc_forms; list && *form; form++) {
        if (usable_only && !(*form)->usable())
            continue;
        PyObject *name = PyUnicode_FromString((*form)->name);
        if (!name || PyList_Append(list, name))
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    if (list)
        tuple = PyList_AsTuple(list);
    Py_XDECREF(list);
    return tuple;
}

static PyObject *built(PyObject *module, PyObject *ignored)
{
    (void)module, (void)ignored;
    return names_of(0);
}

static PyObject *usable(PyObject *module, PyObject *ignored)
{
    (void)module, (void)ignored;
    return names_of(1);
}

static PyObject *choose(PyObject *module, PyObject *name)
{
    (void)module;
    const char *text = PyUnicode_AsUTF8(name);
    const rdc_form *form = text ? find_form(text) : NULL;
    if (!form)
        return NULL;
    if (!rdc_form_agrees(form) || !rdc_choose_blocks(text))
        return PyErr_Format(PyExc_RuntimeError, "kernel %s disagrees with the plain form on this machine", text);
    chosen = form;
    Py_RETURN_NONE;
}

static PyObject *kernel_name(PyObject *module, PyObject *ignored)
{
    (void)module, (void)ignored;
    return PyUnicode_FromString(chosen->name);
}

static PyMethodDef functions[] = {
    {"absolute_targets", absolute_targets, METH_VARARGS, NULL},
    {"block_fingerprints", block_fingerprints, METH_VARARGS, NULL},
    {"built", built, METH_NOARGS, NULL},
    {"usable", usable, METH_NOARGS, NULL},
    {"choose", choose, METH_O, NULL},
    {"cut_many", cut_many, METH_VARARGS, NULL},
    {"equal_rows", equal_rows, METH_VARARGS, NULL},
    {"kernel_name", kernel_name, METH_NOARGS, NULL},
    {"match_blocks", match_blocks, METH_VARARGS, NULL},
    {"match_runs", match_runs, METH_VARARGS, NULL},
    {"name_ranks", name_ranks, METH_VARARGS, NULL},
    {"relative_targets", relative_targets, METH_VARARGS, NULL},
    {"short_references", (PyCFunction)(void (*)(void))short_references, METH_VARARGS | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "rdc.kernel._kernel", NULL, -1, functions, NULL, NULL,
                                        NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void)
{
    PyObject *module = PyModule_Create(&definition);
    PyObject *cutter = PyType_FromSpec(&cutter_spec), *winnower = PyType_FromSpec(&winnower_spec);
    if (!module || !cutter || !winnower || PyModule_AddObjectRef(module, "Cutter", cutter) ||
        PyModule_AddObjectRef(module, "Winnower", winnower) || rdc_add_trait_types(module) ||
        rdc_add_gap_functions(module) || rdc_add_code_functions(module))
        Py_CLEAR(module);
    Py_XDECREF(cutter);
    Py_XDECREF(winnower);
    return module;
}
