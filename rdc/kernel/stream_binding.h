/* stream_binding.h - the state and the results that streams share as Python objects. */
#ifndef RDC_STREAM_BINDING_H
#define RDC_STREAM_BINDING_H

#include "module.h"

#include "cut/ends.h"

/* What a stream may be asked in its present state. */
typedef enum { OPEN, BUSY, FINISHED, LOST } stream_state;

static inline int check_open(stream_state state)
{
    static const char *const why[] = {
        [BUSY] = "another thread is feeding this stream",
        [FINISHED] = "the stream is finished",
        [LOST] = "the stream was lost for want of memory",
    };
    if (state == OPEN)
        return 0;
    PyErr_SetString(PyExc_ValueError, why[state]);
    return -1;
}

/* Moves the ends into a list. */
static inline PyObject *take_ends(rdc_ends *ends)
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

static inline PyObject *last_end(uint64_t length)
{
    return length ? Py_BuildValue("[K]", (unsigned long long)length) : PyList_New(0);
}

/* A size too large for a machine word is reported like any other wrong size. */
static inline PyObject *refuse_arguments(void)
{
    if (PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_SetString(PyExc_ValueError, "chunk sizes and node sizes fit 64 bits");
    return NULL;
}

#endif
