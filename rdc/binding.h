/* binding.h - what a C function that Python calls owns, and gives back on every way out of it.
 *
 * A variable declared with one of the words below is released where its scope ends (the attribute cleanup of GCC and
 * Clang), so a function returns wherever it knows its result. Each such variable has a value from its declaration on. */
#ifndef RDC_BINDING_H
#define RDC_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <stdint.h>
#include <stdlib.h>

static inline void rdc_release_object(PyObject **object)
{
    Py_XDECREF(*object);
}

static inline void rdc_release_memory(void *pointer)
{
    void *memory;
    memcpy(&memory, pointer, sizeof memory); /* of any type of pointer */
    free(memory);
}

/* Releases a variable of any other type by a function that takes its address. */
#define RDC_CLEANUP(release) __attribute__((cleanup(release)))

/* A Py_buffer; {0} is none. */
#define RDC_BUFFER RDC_CLEANUP(PyBuffer_Release) Py_buffer

/* A PyObject *; NULL is none. A result is another variable, or a new reference to this one. */
#define RDC_OBJECT RDC_CLEANUP(rdc_release_object) PyObject

/* A pointer from malloc, calloc or realloc; NULL is none. */
#define RDC_MEMORY RDC_CLEANUP(rdc_release_memory)

/* The last step of a type's tp_dealloc. */
static inline void rdc_free_object(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

/* New bytes, whose content the caller writes. */
static inline PyObject *rdc_new_bytes(uint64_t size)
{
    return size > PY_SSIZE_T_MAX ? PyErr_NoMemory() : PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
}

/* The content of bytes, which is aligned for any type. */
static inline void *rdc_inside(PyObject *bytes)
{
    return PyBytes_AS_STRING(bytes);
}

/* Whether a column is whole numbers of `width` bytes, aligned. */
static inline int rdc_is_column(const Py_buffer *column, size_t width)
{
    return (size_t)column->len % width == 0 && (!column->len || (uintptr_t)column->buf % width == 0);
}

/* Returns -1 with an exception set unless a column is that. `name` is the argument's. */
static inline int rdc_check_column(const Py_buffer *column, size_t width, const char *name)
{
    if (rdc_is_column(column, width))
        return 0;
    PyErr_Format(PyExc_ValueError, "%s: %zd bytes are no whole numbers of %zu bytes, aligned", name, column->len, width);
    return -1;
}

/* Returns the number of rows that `offsets` bounds, one fewer than it has numbers of 64 bits. They do not decrease and lie
 * within `size` items. Else returns -1 with an exception set. `what` names the rows. */
static inline Py_ssize_t rdc_rows_of_offsets(const Py_buffer *offsets, Py_ssize_t size, const char *what)
{
    const int64_t *offset = offsets->buf;
    const Py_ssize_t bounds = offsets->len / 8;
    if (rdc_check_column(offsets, 8, "offsets"))
        return -1;
    if (!bounds || offset[0] < 0 || offset[bounds - 1] > size) {
        PyErr_Format(PyExc_ValueError, "offsets: one more than %s, from 0 to at most %zd, are expected", what, size);
        return -1;
    }
    for (Py_ssize_t i = 1; i < bounds; i++)
        if (offset[i] < offset[i - 1]) {
            PyErr_Format(PyExc_ValueError, "offsets: %lld follows %lld; they must not decrease", (long long)offset[i],
                         (long long)offset[i - 1]);
            return -1;
        }
    return bounds - 1;
}

#endif
