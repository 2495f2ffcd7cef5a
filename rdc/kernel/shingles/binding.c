/* binding.c - features of texts for Python; tests/reference/shingles.py documents each
 * name.
 *
 * All work is done without the interpreter's lock. */
#include "module.h"

#include <sys/mman.h>

#include "shingles/characters.h"
#include "shingles/shingles.h"

#define LARGE_PAGE ((size_t)1 << 21)

static const rdc_shingling *const variants[] = {
#if defined(__x86_64__)
    &rdc_shingling_avx2,
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

static PyObject *features_of(const uint8_t *text, const int64_t *offset, size_t texts, size_t k, int by_characters, int wrap)
{
    feature_bytes to = {{NULL, 0, 0, grow}, PyBytes_FromStringAndSize(NULL, 0), NULL};
    RDC_MEMORY rdc_shingler *shingler = malloc(sizeof *shingler);
    RDC_OBJECT *ends = rdc_new_bytes(8 * (texts + 1));
    PyObject *result = NULL;
    int failed;
    if (!shingler || !to.bytes || !ends) {
        Py_XDECREF(to.bytes);
        return PyErr_NoMemory();
    }
    int64_t *end = rdc_inside(ends);
    const size_t size = (size_t)(offset[texts] - offset[0]);
    *end++ = 0;
    to.thread = PyEval_SaveThread();
    rdc_shingler_start(shingler, chosen, k, by_characters, wrap, &to.list);
    /* Room for nearly every column: for words of three bytes with one between them, and for characters of one byte. Memory
     * behind the last feature is never touched. */
    failed = grow(&to.list, (by_characters ? size : size / 4) + texts);
    for (size_t i = 0; i < texts && !failed; i++) {
        failed = rdc_shingle(shingler, text + offset[i], (size_t)(offset[i + 1] - offset[i]));
        *end++ = (int64_t)to.list.count;
    }
    PyEval_RestoreThread(to.thread);
    if (failed)
        PyErr_NoMemory();
    else if (!resize(&to, to.list.count))
        result = PyTuple_Pack(2, to.bytes, ends);
    Py_XDECREF(to.bytes);
    return result;
}

/* The first call reads the tables of characters: few runs need them. Returns -1 with an exception set. */
static int characters_read(void)
{
    static int read;
    if (read)
        return 0;
    RDC_OBJECT *module = PyImport_ImportModule("rdc.kernel.unicode_data");
    RDC_OBJECT *numbers = module ? PyObject_CallMethod(module, "numbers", NULL) : NULL;
    if (!numbers || !PyBytes_Check(numbers))
        return -1;
    /* Another thread may have read them during the import. */
    if (!read && rdc_read_characters(rdc_inside(numbers), (size_t)PyBytes_GET_SIZE(numbers) / 8)) {
        PyErr_SetString(PyExc_RuntimeError, "rdc/kernel/unicode.bin is damaged, or there is no memory for its tables");
        return -1;
    }
    read = 1;
    return 0;
}

static PyObject *shingle_features(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER text = {0}, offsets = {0};
    Py_ssize_t k;
    int by_characters, wrap;
    if (!PyArg_ParseTuple(args, "y*y*npp:shingle_features", &text, &offsets, &k, &by_characters, &wrap))
        return NULL;
    if (k < 1 || k > RDC_SHINGLE_LIMIT)
        return PyErr_Format(PyExc_ValueError, "%zd units a shingle: 1 to %d are expected", k, RDC_SHINGLE_LIMIT);
    const Py_ssize_t texts = rdc_rows_of_offsets(&offsets, text.len, "texts");
    if (texts < 0 || characters_read())
        return NULL;
    return features_of(text.buf, offsets.buf, (size_t)texts, (size_t)k, by_characters, wrap);
}

static PyObject *upper_halves(PyObject *Py_UNUSED(module), PyObject *argument)
{
    RDC_BUFFER features = {0};
    if (PyObject_GetBuffer(argument, &features, PyBUF_SIMPLE) || rdc_check_column(&features, 8, "features"))
        return NULL;
    PyObject *result = rdc_new_bytes((uint64_t)features.len / 2);
    if (!result)
        return NULL;
    const uint64_t *feature = features.buf;
    uint32_t *half = rdc_inside(result);
    Py_BEGIN_ALLOW_THREADS
    for (size_t i = 0; i < (size_t)features.len / 8; i++)
        half[i] = (uint32_t)(feature[i] >> 32);
    Py_END_ALLOW_THREADS
    return result;
}

void rdc_choose_shingles(const char *kernel)
{
    const rdc_shingling *const *variant = variants;
    while (rdc_variant_rank((*variant)->name) < rdc_variant_rank(kernel) || !(*variant)->usable())
        variant++;
    chosen = *variant;
}

PyMethodDef rdc_shingle_functions[] = {
    {"shingle_features", shingle_features, METH_VARARGS, NULL},
    {"upper_halves", upper_halves, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
