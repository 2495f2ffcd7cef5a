/* seen_binding.h - what was seen of rows done at once, for rdc/files/depth/__init__.py. */
#ifndef RDC_SEEN_BINDING_H
#define RDC_SEEN_BINDING_H

#include "functions.h"

#include "depth/rows_at_once.h"

/* Appends the numbers of a RowsSeen to a tuple of results. Takes over `results`, also where it fails. */
static PyObject *with_seen(PyObject *results, const rdc_rows_seen *seen)
{
    PyObject *numbers = results ? Py_BuildValue("((KKKKii))", (unsigned long long)seen->rows, (unsigned long long)seen->own_rows, (unsigned long long)seen->waited,
                                                (unsigned long long)seen->elapsed, seen->no_descriptor, seen->no_thread)
                                : NULL;
    PyObject *both = numbers ? PySequence_Concat(results, numbers) : NULL;
    Py_XDECREF(numbers);
    Py_XDECREF(results);
    return both;
}

#endif
