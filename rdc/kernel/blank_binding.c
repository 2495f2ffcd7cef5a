/* blank_binding.c - machine code without its targets, as Python functions. */
#include "binding.h"

#include "code_blanks.h"

static void uneven(Py_ssize_t expected, Py_ssize_t found)
{
    PyErr_Format(PyExc_ValueError, "code blanks: %zd bytes that do not fit a mask of %zd", found, expected);
}

static PyObject *target_mask(PyObject *module, PyObject *args)
{
    Py_buffer content;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*:target_mask", &content))
        return NULL;
    PyObject *mask = PyBytes_FromStringAndSize(NULL, content.len);
    if (mask) {
        uint8_t *to = (uint8_t *)PyBytes_AS_STRING(mask);
        Py_BEGIN_ALLOW_THREADS
        rdc_target_mask(content.buf, (size_t)content.len, to);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&content);
    return mask;
}

static PyObject *blank_targets(PyObject *module, PyObject *args)
{
    Py_buffer content;
    long blank;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "w*l:blank_targets", &content, &blank))
        return NULL;
    if (blank < 0 || blank > UINT8_MAX) {
        PyErr_Format(PyExc_ValueError, "code blanks: %ld is no byte", blank);
    } else {
        size_t count;
        Py_BEGIN_ALLOW_THREADS
        count = rdc_blank_targets(content.buf, (size_t)content.len, (uint8_t)blank);
        Py_END_ALLOW_THREADS
        result = PyLong_FromSize_t(count);
    }
    PyBuffer_Release(&content);
    return result;
}

static PyObject *take_targets(PyObject *module, PyObject *args)
{
    Py_buffer content, mask;
    unsigned long long offset;
    PyObject *taken = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*K:take_targets", &content, &mask, &offset))
        return NULL;
    if (content.len != mask.len)
        uneven(mask.len, content.len);
    else
        taken = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)rdc_masked(mask.buf, (size_t)mask.len));
    if (taken)
        rdc_take_targets(content.buf, mask.buf, (size_t)mask.len, offset, (uint8_t *)PyBytes_AS_STRING(taken));
    PyBuffer_Release(&content);
    PyBuffer_Release(&mask);
    return taken;
}

static PyObject *place_targets(PyObject *module, PyObject *args)
{
    Py_buffer mask, targets;
    unsigned long long offset;
    PyObject *image = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*K:place_targets", &mask, &targets, &offset))
        return NULL;
    if (rdc_masked(mask.buf, (size_t)mask.len) != (size_t)targets.len)
        uneven(mask.len, targets.len);
    else
        image = PyBytes_FromStringAndSize(NULL, mask.len);
    if (image) {
        uint8_t *to = (uint8_t *)PyBytes_AS_STRING(image);
        memset(to, 0, (size_t)mask.len);
        rdc_place_targets(mask.buf, (size_t)mask.len, offset, targets.buf, to);
    }
    PyBuffer_Release(&mask);
    PyBuffer_Release(&targets);
    return image;
}

static PyObject *overlay(PyObject *module, PyObject *args)
{
    Py_buffer content, image, mask;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "w*y*y*:overlay", &content, &image, &mask))
        return NULL;
    if (content.len != image.len || content.len != mask.len) {
        uneven(content.len, image.len < mask.len ? image.len : mask.len);
    } else {
        rdc_overlay(content.buf, image.buf, mask.buf, (size_t)content.len);
        result = Py_NewRef(Py_None);
    }
    PyBuffer_Release(&content);
    PyBuffer_Release(&image);
    PyBuffer_Release(&mask);
    return result;
}

static PyMethodDef functions[] = {
    {"blank_targets", blank_targets, METH_VARARGS, NULL},
    {"overlay", overlay, METH_VARARGS, NULL},
    {"place_targets", place_targets, METH_VARARGS, NULL},
    {"take_targets", take_targets, METH_VARARGS, NULL},
    {"target_mask", target_mask, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_blank_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
