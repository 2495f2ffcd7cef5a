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

static int counted(Py_ssize_t count)
{
    if (count >= 1 && count <= RDC_SAMPLE_COUNT_LIMIT)
        return 0;
    PyErr_Format(PyExc_ValueError, "%zd samples a set: 1 to %d are expected", count, RDC_SAMPLE_COUNT_LIMIT);
    return -1;
}

/* Samples of the functions minimum_samples and, with `by_bins`, partition_samples. */
static PyObject *samples_of(PyObject *args, const char *format, int by_bins)
{
    RDC_BUFFER features = {0}, offsets = {0};
    Py_ssize_t count;
    unsigned long long seed;
    int fill = 0;
    if (!PyArg_ParseTuple(args, format, &features, &offsets, &count, &seed, &fill) || counted(count) ||
        rdc_check_column(&features, 8, "features"))
        return NULL;
    const Py_ssize_t sets = rdc_rows_of_offsets(&offsets, features.len / 8, "sets");
    if (sets < 0)
        return NULL;
    RDC_CLEANUP(rdc_family_end) rdc_family family = {0};
    if (sets > PY_SSIZE_T_MAX / 4 / count || rdc_family_start(&family, chosen, seed, (size_t)count))
        return PyErr_NoMemory();
    PyObject *result = rdc_new_bytes((uint64_t)sets * (uint64_t)count * 4);
    if (!result)
        return NULL;
    const int64_t *offset = offsets.buf;
    uint32_t *samples = rdc_inside(result);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < sets; i++, samples += count) {
        const uint64_t *set = (const uint64_t *)features.buf + offset[i];
        const size_t size = (size_t)(offset[i + 1] - offset[i]);
        if (by_bins)
            rdc_partition_samples(&family, set, size, fill, samples);
        else
            rdc_minimum_samples(&family, set, size, samples);
    }
    Py_END_ALLOW_THREADS
    return result;
}

static PyObject *minimum_samples(PyObject *Py_UNUSED(module), PyObject *args)
{
    return samples_of(args, "y*y*nK:minimum_samples", 0);
}

static PyObject *partition_samples(PyObject *Py_UNUSED(module), PyObject *args)
{
    return samples_of(args, "y*y*nKp:partition_samples", 1);
}

/* Compares as tests/reference/samples.py defines. Returns NULL with an exception set. */
static PyObject *matches(const Py_buffer *one, Py_ssize_t row, const Py_buffer *many, Py_ssize_t sets,
                         Py_ssize_t count, int bits)
{
    const size_t words = (size_t)(count + 63) / 64, stride = words * (size_t)bits * RDC_SET_BLOCK;
    if (one->len % (Py_ssize_t)(8 * stride) || many->len % (Py_ssize_t)(8 * stride) || !rdc_is_column(one, 8) ||
        !rdc_is_column(many, 8))
        return PyErr_Format(PyExc_ValueError, "packed samples: whole blocks of %zu bytes are expected", 8 * stride);
    const Py_ssize_t rows = one->len / (Py_ssize_t)(8 * stride) * RDC_SET_BLOCK;
    const Py_ssize_t others = many->len / (Py_ssize_t)(8 * stride) * RDC_SET_BLOCK;
    if (row < 0 || row >= rows || sets < 0 || sets > others)
        return PyErr_Format(PyExc_ValueError, "row %zd and %zd sets: the packed samples have fewer", row, sets);
    RDC_MEMORY uint64_t *query = malloc(8 * words * (size_t)bits);
    const size_t blocks = ((size_t)sets + RDC_SET_BLOCK - 1) / RDC_SET_BLOCK;
    PyObject *result = query ? rdc_new_bytes(4 * RDC_SET_BLOCK * blocks) : PyErr_NoMemory();
    if (!result)
        return NULL;
    const uint64_t *mine = (const uint64_t *)one->buf + (size_t)row / RDC_SET_BLOCK * stride + row % RDC_SET_BLOCK;
    for (size_t i = 0; i < words * (size_t)bits; i++)
        query[i] = mine[i * RDC_SET_BLOCK];
    uint32_t *out = rdc_inside(result);
    Py_BEGIN_ALLOW_THREADS
    chosen->differences(query, many->buf, blocks, words, (unsigned)bits, out);
    for (size_t i = 0; i < (size_t)sets; i++)
        out[i] = (uint32_t)count - out[i];
    Py_END_ALLOW_THREADS
    _PyBytes_Resize(&result, 4 * sets);
    return result;
}

static PyObject *sample_matches(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER one = {0}, many = {0};
    Py_ssize_t row, sets, count;
    int bits;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*ny*nni:sample_matches", &one, &row, &many, &sets, &count, &bits))
        return NULL;
    if (bits < 1 || bits > 16)
        PyErr_Format(PyExc_ValueError, "%d bits a sample: 1 to 16 are expected", bits);
    else if (!counted(count))
        result = matches(&one, row, &many, sets, count, bits);
    return result;
}

void rdc_choose_samples(const char *kernel)
{
    const rdc_sampling *const *variant = variants;
    while (rdc_variant_rank((*variant)->name) < rdc_variant_rank(kernel) || !(*variant)->usable())
        variant++;
    chosen = *variant;
}

PyMethodDef rdc_sample_functions[] = {
    {"minimum_samples", minimum_samples, METH_VARARGS, NULL},
    {"partition_samples", partition_samples, METH_VARARGS, NULL},
    {"sample_matches", sample_matches, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
