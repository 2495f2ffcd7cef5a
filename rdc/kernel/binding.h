/* binding.h - what the files of the kernel that know Python have of each other. */
#ifndef RDC_BINDING_H
#define RDC_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "form.h"

/* Bytes from which on giving up the lock costs less than holding it: about 1 us of work. */
#define UNLOCK_FROM 4096

/* The form that a stream has whose caller names none. */
const rdc_form *rdc_chosen_form(void);

/* A usable form by name, or NULL with an exception set. */
const rdc_form *rdc_find_form(const char *name);

/* Each adds to the module what its file is about; -1 with an exception set. */
int rdc_add_blank_functions(PyObject *module);
int rdc_add_block_functions(PyObject *module);
int rdc_add_code_functions(PyObject *module);
int rdc_add_cutter(PyObject *module);
int rdc_add_equal_functions(PyObject *module);
int rdc_add_gap_functions(PyObject *module);
int rdc_add_keyed_functions(PyObject *module);
int rdc_add_node_functions(PyObject *module);
int rdc_add_root_functions(PyObject *module);
int rdc_add_row_functions(PyObject *module);
int rdc_add_trait_types(PyObject *module);
int rdc_add_varint_functions(PyObject *module);
int rdc_add_winnower(PyObject *module);
int rdc_add_word_functions(PyObject *module);

/* Adds a type by the last part of its name. */
int rdc_add_type(PyObject *module, const char *name, PyType_Spec *spec);

#endif
