/* functions.h - what the C files that know Python share. */
#ifndef RDC_FILES_FUNCTIONS_H
#define RDC_FILES_FUNCTIONS_H

#include "../binding.h"

/* Each adds the functions of its file to the module, none where the system lacks what they need. Returns -1 with an
 * exception set. */
int rdc_add_batch_functions(PyObject *module);
int rdc_add_contents_functions(PyObject *module);
int rdc_add_leased_functions(PyObject *module);
int rdc_add_libc_functions(PyObject *module);
int rdc_add_opened_functions(PyObject *module);
int rdc_add_ranges_functions(PyObject *module);
int rdc_add_walk_functions(PyObject *module);
int rdc_add_xattrs_functions(PyObject *module);

#endif
