/* keyed_binding.c - Python bindings for short references and name ranks, both by keyed SipHash. */
#include "module.h"

#include "hash/keyed.h"

static PyObject *short_references(PyObject *Py_UNUSED(module), PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"key", "records", "stride", "width", NULL};
    RDC_BUFFER key = {0}, records = {0};
    Py_ssize_t stride, width;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*y*nn:short_references", names, &key, &records, &stride, &width))
        return NULL;
    if (key.len != 16 || stride < 32 || width < 1 || width > 8 || records.len % stride)
        return PyErr_Format(PyExc_ValueError,
                            "short references: a key of 16 bytes (found %zd), a width of 1 to 8 (%zd), records of >= 32 "
                            "bytes (%zd) without a rest (%zd bytes)",
                            key.len, width, stride, records.len);
    Py_ssize_t count = records.len / stride;
    PyObject *result = PyBytes_FromStringAndSize(NULL, count * width);
    if (!result)
        return NULL;
    uint8_t *out = rdc_inside(result);
    Py_BEGIN_ALLOW_THREADS
    rdc_short_references(key.buf, records.buf, (size_t)count, (size_t)stride, (unsigned)width, out);
    Py_END_ALLOW_THREADS
    return result;
}

static PyObject *name_ranks(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER key = {0}, names = {0};
    if (!PyArg_ParseTuple(args, "y*y*:name_ranks", &key, &names))
        return NULL;
    const size_t count = rdc_count_names(names.buf, (size_t)names.len);
    if (key.len != 16 || count == SIZE_MAX)
        return PyErr_Format(PyExc_ValueError,
                            "name ranks: a key of 16 bytes (found %zd), names each followed by NUL (%zd bytes)", key.len,
                            names.len);
    PyObject *result = rdc_new_bytes(8 * count);
    if (!result)
        return NULL;
    uint8_t *out = rdc_inside(result);
    PyThreadState *thread = rdc_unlock((size_t)names.len);
    rdc_name_ranks(key.buf, names.buf, count, out);
    rdc_lock(thread);
    return result;
}

static PyObject *text_ranks(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER text = {0}, digests = {0};
    if (!PyArg_ParseTuple(args, "y*y*:text_ranks", &text, &digests))
        return NULL;
    const size_t directories = (size_t)digests.len / 32, size = (size_t)text.len;
    const size_t count =
        digests.len % 32 ? SIZE_MAX : rdc_text_ranks(text.buf, size, digests.buf, directories, NULL);
    if (count == SIZE_MAX)
        return PyErr_Format(PyExc_ValueError,
                            "text ranks: a digest of 32 bytes for each directory of the text (%zd bytes) is expected, "
                            "found %zd bytes",
                            text.len, digests.len);
    PyObject *result = rdc_new_bytes(8 * (uint64_t)count);
    if (!result)
        return NULL;
    uint8_t *out = rdc_inside(result);
    PyThreadState *thread = rdc_unlock(size);
    rdc_text_ranks(text.buf, size, digests.buf, directories, out);
    rdc_lock(thread);
    return result;
}

PyMethodDef rdc_keyed_functions[] = {
    {"name_ranks", name_ranks, METH_VARARGS, NULL},
    {"text_ranks", text_ranks, METH_VARARGS, NULL},
    {"short_references", (PyCFunction)(void (*)(void))short_references, METH_VARARGS | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL},
};
