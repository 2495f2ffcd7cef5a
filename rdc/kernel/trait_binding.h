/* trait_binding.h - the types that trait_binding.c adds to the module. */
#ifndef RDC_TRAIT_BINDING_H
#define RDC_TRAIT_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* -1 with an exception set. */
int rdc_add_trait_types(PyObject *module);

#endif
