/* module.h - what the C files that know Python share. */
#ifndef RDC_MODULE_H
#define RDC_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cut/variant.h"

/* From this many bytes on, releasing the lock costs less than holding it: about 1 us of work. */
#define UNLOCK_FROM 4096

/* The variant of a stream if the caller names none. */
const rdc_variant *rdc_chosen_variant(void);

/* Returns a usable variant by name, or NULL with an exception set. */
const rdc_variant *rdc_find_variant(const char *name);

/* Each adds the functions or types of its file to the module. Returns -1 with an exception set. */
int rdc_add_block_functions(PyObject *module);
int rdc_add_branch_functions(PyObject *module);
int rdc_add_cutter(PyObject *module);
int rdc_add_equal_functions(PyObject *module);
int rdc_add_gap_functions(PyObject *module);
int rdc_add_keyed_functions(PyObject *module);
int rdc_add_line_functions(PyObject *module);
int rdc_add_masking_functions(PyObject *module);
int rdc_add_naming_functions(PyObject *module);
int rdc_add_node_functions(PyObject *module);
int rdc_add_pattern_set(PyObject *module);
int rdc_add_recipe_functions(PyObject *module);
int rdc_add_root_functions(PyObject *module);
int rdc_add_row_functions(PyObject *module);
int rdc_add_sample_functions(PyObject *module);
int rdc_add_scan_tables(PyObject *module);
int rdc_add_set_functions(PyObject *module);
int rdc_add_shingle_functions(PyObject *module);
int rdc_add_trait_types(PyObject *module);
int rdc_add_varint_functions(PyObject *module);
int rdc_add_winnower(PyObject *module);
int rdc_add_word_functions(PyObject *module);

/* Each takes the fastest variant of its topic that this CPU can run, and that is no faster than the kernel's. */
void rdc_choose_samples(const char *kernel);
void rdc_choose_shingles(const char *kernel);

/* The place of a variant among all, fastest first. */
unsigned rdc_variant_rank(const char *name);

/* Adds a type under the last part of its name. */
int rdc_add_type(PyObject *module, const char *name, PyType_Spec *spec);

#endif
