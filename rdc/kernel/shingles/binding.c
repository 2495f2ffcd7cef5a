/* binding.c - features of texts for Python; tests/reference/shingles.py documents each
 * name.
 *
 * All work is done without the interpreter's lock. */
#include "module.h"

#include <sys/mman.h>

#include "shingles/characters.h"
#include "shingles/shingles.h"
#include "shingles/text_column.h"

#define LARGE_PAGE ((size_t)1 << 21)

static const rdc_shingling *const variants[] = {
#if defined(__x86_64__)
    &rdc_shingling_avx512, &rdc_shingling_avx2,
#elif defined(__aarch64__)
    &rdc_shingling_neon,
#endif
    &rdc_shingling_plain, NULL,
};

static const rdc_shingling *chosen = &rdc_shingling_plain;

/* Features that grow within a bytes object: a gigabyte of them is never copied. */
typedef struct {
    rdc_feature_list list;
    PyObject *bytes; /* NULL after a failure */
    PyThreadState *thread;
} feature_bytes;

/* Pages of 4 KiB cost half of the time of a large result. */
static void use_large_pages(void *memory, size_t size)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t page = 4096, start = ((uintptr_t)memory + page - 1) / page * page;
    if (size >= 16 * LARGE_PAGE)
        (void)madvise((void *)start, (uintptr_t)memory + size - start, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)size;
#endif
}

static int resize(feature_bytes *to, size_t room)
{
    if (room == to->list.room)
        return 0;
    if (room > (size_t)PY_SSIZE_T_MAX / 8 || _PyBytes_Resize(&to->bytes, (Py_ssize_t)(8 * room)))
        return -1;
    to->list.features = (uint64_t *)(void *)PyBytes_AS_STRING(to->bytes);
    to->list.room = room;
    use_large_pages(to->list.features, 8 * room);
    return 0;
}

static int grow(rdc_feature_list *list, size_t more)
{
    feature_bytes *to = (feature_bytes *)(void *)list;
    const size_t half = list->room / 2;
    PyEval_RestoreThread(to->thread);
    const int result = resize(to, list->room + (half > more ? half : more));
    to->thread = PyEval_SaveThread();
    return result;
}

/* Room for the features of nearly every column: of words of three bytes with one between them, and of characters of
 * one byte. Memory behind the last feature is never touched. */
static size_t about_features(const rdc_text_column *column, int by_characters)
{
    const size_t size = (size_t)(column->offset[column->texts] - column->offset[0]);
    return (by_characters ? size : size / 4) + column->texts;
}

static PyObject *features_of(rdc_text_column *column, size_t k, int by_characters, int wrap)
{
    feature_bytes to = {{NULL, 0, 0, grow}, PyBytes_FromStringAndSize(NULL, 0), NULL};
    rdc_shingler *shingler = malloc(sizeof *shingler);
    PyObject *ends = NULL, *result = NULL;
    int failed = 0;
    if (!shingler || !to.bytes) {
        PyErr_NoMemory();
        goto done;
    }
    ends = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(8 * (column->texts + 1)));
    if (!ends)
        goto done;
    int64_t *end = (int64_t *)(void *)PyBytes_AS_STRING(ends);
    *end++ = 0;
    to.thread = PyEval_SaveThread();
    rdc_shingler_start(shingler, chosen, k, by_characters, wrap, &to.list);
    failed = grow(&to.list, about_features(column, by_characters));
    for (size_t i = 0; i < column->texts && !failed; i++) {
        failed = rdc_shingle(shingler, column->bytes + column->offset[i],
                             (size_t)(column->offset[i + 1] - column->offset[i]));
        *end++ = (int64_t)to.list.count;
    }
    PyEval_RestoreThread(to.thread);
    if (failed)
        PyErr_NoMemory();
    else if (!resize(&to, to.list.count))
        result = PyTuple_Pack(2, to.bytes, ends);
done:
    free(shingler);
    Py_XDECREF(to.bytes);
    Py_XDECREF(ends);
    return result;
}

/* The first call reads the tables of characters: few runs need them. Returns -1 with an exception set. */
static int characters_read(void)
{
    static int read;
    if (read)
        return 0;
    PyObject *module = PyImport_ImportModule("rdc.kernel.unicode_data");
    PyObject *numbers = module ? PyObject_CallMethod(module, "numbers", NULL) : NULL;
    if (numbers && !read) { /* another thread may have read them during the import */
        const uint64_t *first = (const uint64_t *)(const void *)PyBytes_AsString(numbers);
        if (first && !rdc_read_characters(first, (size_t)PyBytes_GET_SIZE(numbers) / sizeof *first))
            read = 1;
        else if (first)
            PyErr_SetString(PyExc_RuntimeError, "rdc/kernel/unicode_data.py: the tables of characters are damaged");
    }
    Py_XDECREF(numbers);
    Py_XDECREF(module);
    return read ? 0 : -1;
}

static PyObject *shingle_features(PyObject *module, PyObject *args)
{
    rdc_text_column column = {0};
    Py_ssize_t k;
    int by_characters, wrap;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*npp:shingle_features", &column.text, &column.offsets, &k, &by_characters, &wrap))
        return NULL;
    if (k < 1 || k > RDC_SHINGLE_LIMIT)
        PyErr_Format(PyExc_ValueError, "%zd units a shingle: 1 to %d are expected", k, RDC_SHINGLE_LIMIT);
    else if (!rdc_take_texts(&column) && !characters_read())
        result = features_of(&column, (size_t)k, by_characters, wrap);
    rdc_release_texts(&column);
    return result;
}

static PyObject *upper_halves(PyObject *module, PyObject *argument)
{
    Py_buffer features;
    PyObject *result = NULL;
    (void)module;
    if (PyObject_GetBuffer(argument, &features, PyBUF_SIMPLE))
        return NULL;
    if (features.len % 8)
        PyErr_Format(PyExc_ValueError, "features: %zd bytes are no whole 64-bit numbers", features.len);
    else
        result = PyBytes_FromStringAndSize(NULL, features.len / 2);
    if (result) {
        const uint8_t *from = features.buf;
        uint8_t *to = (uint8_t *)PyBytes_AS_STRING(result);
        const size_t count = (size_t)features.len / 8;
        Py_BEGIN_ALLOW_THREADS
        for (size_t i = 0; i < count; i++) {
            uint64_t feature;
            memcpy(&feature, from + 8 * i, sizeof feature);
            const uint32_t half = (uint32_t)(feature >> 32);
            memcpy(to + 4 * i, &half, sizeof half);
        }
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&features);
    return result;
}

void rdc_choose_shingles(const char *kernel)
{
    const rdc_shingling *const *variant = variants;
    while (rdc_variant_rank((*variant)->name) < rdc_variant_rank(kernel) || !(*variant)->usable())
        variant++;
    chosen = *variant;
}

static PyMethodDef methods[] = {
    {"shingle_features", shingle_features, METH_VARARGS, NULL},
    {"upper_halves", upper_halves, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_shingle_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, methods);
}
