/* module.c - the C part of rdc.files for Python. The files named *_binding.c add all functions to it. */
#include "functions.h"

static PyMethodDef *const tables[] = {
    rdc_libc_functions, rdc_batch_functions, rdc_contents_functions, rdc_leased_functions,
    rdc_opened_functions, rdc_xattrs_functions, rdc_ranges_functions, rdc_walk_functions,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "rdc.files._files", NULL, -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__files(void)
{
    PyObject *module = PyModule_Create(&definition);
    for (size_t i = 0; module && i < sizeof tables / sizeof *tables; i++)
        if (PyModule_AddFunctions(module, tables[i]))
            Py_CLEAR(module);
    return module;
}
