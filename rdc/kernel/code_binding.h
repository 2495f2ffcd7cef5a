/* code_binding.h - the functions that code_binding.c adds to the module. */
#ifndef RDC_CODE_BINDING_H
#define RDC_CODE_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* -1 with an exception set. */
int rdc_add_code_functions(PyObject *module);

#endif
