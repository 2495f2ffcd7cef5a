/* binding.c - Python bindings for block fingerprints and their search; tests/reference/blocks.py
 * documents them. */
#include "module.h"

#include "search/rolling_hash.h"
#include "search/match.h"
#include "search/match_near.h"

/* Checks the key, the length, size and width that both functions about blocks take. */
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

/* Returns how many blocks parts of these lengths have, or -1 if the lengths do not add up to `total`. */
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

/* Upper limits for the bytes of a run, an offset in the base, and a reach, so that no sum overflows. */
#define RUN_LONGEST (UINT64_C(1) << 32)
#define OFFSET_HIGHEST (UINT64_C(1) << 63)
#define REACH_LONGEST (1 << 20)

/* Returns the runs in a buffer of little-endian 64-bit numbers and counts their blocks of `size` bytes.
 * NULL with an exception set. */
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
        if (field[0] > OFFSET_HIGHEST || field[1] > RUN_LONGEST ||
            (field[2] > OFFSET_HIGHEST && field[2] != RDC_UNPLACED) ||
            (field[3] > OFFSET_HIGHEST && field[3] != RDC_UNPLACED)) {
            PyErr_SetString(PyExc_ValueError, "runs: of at most 2^32 bytes, at offsets up to 2^63");
            free(runs);
            return NULL;
        }
        *blocks += field[1] / (uint64_t)size + (field[1] % (uint64_t)size != 0);
    }
    return runs;
}

/* A part of a base for the next `runs` runs: `length` bytes from `origin` on, at `start` of the given
 * bytes. */
typedef struct {
    uint64_t runs, origin, start, length;
} window;

static window window_at(const Py_buffer *packed, size_t row)
{
    window w;
    memcpy(&w, (const uint8_t *)packed->buf + sizeof w * row, sizeof w);
    return w;
}

/* Returns whether the windows serve all runs and lie inside the `given` bytes of the base. */
static int windows_fit(const Py_buffer *packed, size_t runs, size_t given)
{
    if ((size_t)packed->len % sizeof(window))
        return 0;
    for (size_t row = 0; row < (size_t)packed->len / sizeof(window); row++) {
        const window w = window_at(packed, row);
        if (w.runs > runs || w.origin > OFFSET_HIGHEST || w.start > given || w.length > given - w.start)
            return 0;
        runs -= (size_t)w.runs;
    }
    return !runs;
}

static PyObject *match_runs(PyObject *module, PyObject *args)
{
    Py_buffer key, base, windows, packed, fingerprints;
    Py_ssize_t size, width, reach;
    PyObject *result = NULL;
    rdc_run *runs = NULL;
    rdc_match *found = NULL;
    size_t blocks;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*y*nnny*y*:match_runs", &key, &base, &windows, &size, &width, &reach, &packed,
                          &fingerprints))
        return NULL;
    if (check_blocks(&key, size, width, fingerprints.len))
        goto done;
    if (reach < 0 || reach > REACH_LONGEST || packed.len % 32) {
        PyErr_SetString(PyExc_ValueError, "runs: rows of 32 bytes, a reach of 0 to 2^20");
        goto done;
    }
    if (!windows_fit(&windows, (size_t)packed.len / 32, (size_t)base.len)) {
        PyErr_Format(PyExc_ValueError, "runs: windows inside %zd bytes for %zd of them", base.len, packed.len / 32);
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
    int64_t count = 0;
    Py_BEGIN_ALLOW_THREADS
    const uint8_t *wanted = fingerprints.buf;
    const rdc_run *run = runs;
    for (size_t row = 0; row < (size_t)windows.len / sizeof(window) && count >= 0; row++) {
        const window w = window_at(&windows, row);
        const int64_t more = rdc_match_runs(key.buf, (const uint8_t *)base.buf + w.start, (size_t)w.length, w.origin,
                                            (size_t)size, (unsigned)width, (size_t)reach, run, (size_t)w.runs, wanted,
                                            found + count);
        count = more < 0 ? -1 : count + more;
        for (const rdc_run *end = run + w.runs; run < end; run++)
            wanted += (run->length / (uint64_t)size + (run->length % (uint64_t)size != 0)) * (uint64_t)width;
    }
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
        const uint64_t field[3] = {found[i].offset, found[i].base_offset, found[i].length};
        for (unsigned j = 0; j < 24; j++)
            *out++ = (uint8_t)(field[j / 8] >> 8 * (j % 8));
    }
done:
    free(found);
    free(runs);
    PyBuffer_Release(&key);
    PyBuffer_Release(&base);
    PyBuffer_Release(&windows);
    PyBuffer_Release(&packed);
    PyBuffer_Release(&fingerprints);
    return result;
}

static PyMethodDef functions[] = {
    {"block_fingerprints", block_fingerprints, METH_VARARGS, NULL},
    {"match_blocks", match_blocks, METH_VARARGS, NULL},
    {"match_runs", match_runs, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_block_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
