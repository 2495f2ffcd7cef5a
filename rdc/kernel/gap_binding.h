/* gap_binding.h - the function that gap_binding.c adds to the module. */
#ifndef RDC_GAP_BINDING_H
#define RDC_GAP_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* -1 with an exception set. */
int rdc_add_gap_functions(PyObject *module);

#endif
