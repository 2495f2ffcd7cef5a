/* binding.c - min-wise samples for Python; tests/reference/samples.py documents
 * each name.
 *
 * All work is done without the interpreter's lock. */
#include "module.h"

#include "samples/samples.h"

static const rdc_sampling *const variants[] = {
#if defined(__x86_64__)
    &rdc_sampling_avx2,
#elif defined(__aarch64__)
    &rdc_sampling_neon,
#endif
    &rdc_sampling_plain, NULL,
};

static const rdc_sampling *chosen = &rdc_sampling_plain;

/* A column of sets. */
typedef struct {
    Py_buffer features, offsets;
    const uint64_t *feature;
    const int64_t *offset;
    size_t sets;
} set_column;

static void release(set_column *column)
{
    if (column->features.obj)
        PyBuffer_Release(&column->features);
    if (column->offsets.obj)
        PyBuffer_Release(&column->offsets);
}

static int whole_numbers(const Py_buffer *view, const char *name)
{
    if (view->len % 8) {
        PyErr_Format(PyExc_ValueError, "%s: %zd bytes are no whole 64-bit numbers", name, view->len);
        return -1;
    }
    if (view->len && (uintptr_t)view->buf % 8) {
        PyErr_Format(PyExc_ValueError, "%s: the numbers are not aligned", name);
        return -1;
    }
    return 0;
}

/* Checks what tests/reference/samples.py's _sets() checks. Returns -1 with an exception set. */
static int take(set_column *column)
{
    if (whole_numbers(&column->features, "features") || whole_numbers(&column->offsets, "offsets"))
        return -1;
    const size_t bounds = (size_t)column->offsets.len / 8, size = (size_t)column->features.len / 8;
    column->feature = column->features.buf;
    column->offset = column->offsets.buf;
    if (!bounds || column->offset[0] < 0 || column->offset[bounds - 1] > (int64_t)size) {
        PyErr_Format(PyExc_ValueError, "offsets: one more than sets, from 0 to at most %zu, are expected", size);
        return -1;
    }
    for (size_t i = 1; i < bounds; i++)
        if (column->offset[i] < column->offset[i - 1]) {
            PyErr_Format(PyExc_ValueError, "offsets: %lld follows %lld; they must not decrease",
                         (long long)column->offset[i], (long long)column->offset[i - 1]);
            return -1;
        }
    column->sets = bounds - 1;
    return 0;
}

static int counted(Py_ssize_t count)
{
    if (count >= 1 && count <= RDC_SAMPLE_COUNT_LIMIT)
        return 0;
    PyErr_Format(PyExc_ValueError, "%zd samples a set: 1 to %d are expected", count, RDC_SAMPLE_COUNT_LIMIT);
    return -1;
}

static PyObject *samples_of(set_column *column, Py_ssize_t count, uint64_t seed, int by_bins, int fill)
{
    rdc_family family = {0};
    PyObject *result = NULL;
    if (counted(count) || take(column))
        goto done;
    if (column->sets > (size_t)PY_SSIZE_T_MAX / 4 / (size_t)count) {
        PyErr_NoMemory();
        goto done;
    }
    if (rdc_family_start(&family, chosen, seed, (size_t)count)) {
        PyErr_NoMemory();
        goto done;
    }
    result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)column->sets * count * 4);
    if (result) {
        uint32_t *samples = (uint32_t *)(void *)PyBytes_AS_STRING(result);
        Py_BEGIN_ALLOW_THREADS
        for (size_t i = 0; i < column->sets; i++, samples += count) {
            const uint64_t *features = column->feature + column->offset[i];
            const size_t size = (size_t)(column->offset[i + 1] - column->offset[i]);
            if (by_bins)
                rdc_partition_samples(&family, features, size, fill, samples);
            else
                rdc_minimum_samples(&family, features, size, samples);
        }
        Py_END_ALLOW_THREADS
    }
done:
    rdc_family_end(&family);
    release(column);
    return result;
}

static PyObject *minimum_samples(PyObject *module, PyObject *args)
{
    set_column column = {0};
    Py_ssize_t count;
    unsigned long long seed;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*nK:minimum_samples", &column.features, &column.offsets, &count, &seed))
        return NULL;
    return samples_of(&column, count, seed, 0, 0);
}

static PyObject *partition_samples(PyObject *module, PyObject *args)
{
    set_column column = {0};
    Py_ssize_t count;
    unsigned long long seed;
    int fill;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*nKp:partition_samples", &column.features, &column.offsets, &count, &seed, &fill))
        return NULL;
    return samples_of(&column, count, seed, 1, fill);
}

/* Compares as tests/reference/samples.py defines. Returns NULL with an exception set. */
static PyObject *matches(const Py_buffer *one, Py_ssize_t row, const Py_buffer *many, Py_ssize_t sets,
                         Py_ssize_t count, int bits)
{
    const size_t words = (size_t)(count + 63) / 64, stride = words * (size_t)bits * RDC_SET_BLOCK;
    if (one->len % (Py_ssize_t)(8 * stride) || many->len % (Py_ssize_t)(8 * stride) ||
        (one->len && (uintptr_t)one->buf % 8) || (many->len && (uintptr_t)many->buf % 8))
        return PyErr_Format(PyExc_ValueError, "packed samples: whole blocks of %zu bytes are expected", 8 * stride);
    const Py_ssize_t rows = one->len / (Py_ssize_t)(8 * stride) * RDC_SET_BLOCK;
    const Py_ssize_t others = many->len / (Py_ssize_t)(8 * stride) * RDC_SET_BLOCK;
    if (row < 0 || row >= rows || sets < 0 || sets > others)
        return PyErr_Format(PyExc_ValueError, "row %zd and %zd sets: the packed samples have fewer", row, sets);
    uint64_t *query = malloc(8 * words * (size_t)bits);
    const size_t blocks = ((size_t)sets + RDC_SET_BLOCK - 1) / RDC_SET_BLOCK;
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(4 * RDC_SET_BLOCK * blocks));
    if (!query || !result) {
        free(query);
        Py_XDECREF(result);
        return PyErr_NoMemory();
    }
    const uint64_t *mine = (const uint64_t *)one->buf + (size_t)row / RDC_SET_BLOCK * stride + row % RDC_SET_BLOCK;
    for (size_t i = 0; i < words * (size_t)bits; i++)
        query[i] = mine[i * RDC_SET_BLOCK];
    uint32_t *out = (uint32_t *)(void *)PyBytes_AS_STRING(result);
    Py_BEGIN_ALLOW_THREADS
    chosen->differences(query, many->buf, blocks, words, (unsigned)bits, out);
    for (size_t i = 0; i < (size_t)sets; i++)
        out[i] = (uint32_t)count - out[i];
    Py_END_ALLOW_THREADS
    free(query);
    _PyBytes_Resize(&result, 4 * sets);
    return result;
}

static PyObject *sample_matches(PyObject *module, PyObject *args)
{
    Py_buffer one, many;
    Py_ssize_t row, sets, count;
    int bits;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*ny*nni:sample_matches", &one, &row, &many, &sets, &count, &bits))
        return NULL;
    if (bits < 1 || bits > 16)
        PyErr_Format(PyExc_ValueError, "%d bits a sample: 1 to 16 are expected", bits);
    else if (!counted(count))
        result = matches(&one, row, &many, sets, count, bits);
    PyBuffer_Release(&one);
    PyBuffer_Release(&many);
    return result;
}

void rdc_choose_samples(const char *kernel)
{
    const rdc_sampling *const *variant = variants;
    while (rdc_variant_rank((*variant)->name) < rdc_variant_rank(kernel) || !(*variant)->usable())
        variant++;
    chosen = *variant;
}

static PyMethodDef methods[] = {
    {"minimum_samples", minimum_samples, METH_VARARGS, NULL},
    {"partition_samples", partition_samples, METH_VARARGS, NULL},
    {"sample_matches", sample_matches, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_sample_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, methods);
}
