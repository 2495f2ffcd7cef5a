/* module.c - the C part of rdc.files for Python. The files named *_binding.c add all functions to it. */
#include "functions.h"

static int (*const topics[])(PyObject *module) = {
    rdc_add_batch_functions,
    rdc_add_contents_functions,
    rdc_add_leased_functions,
    rdc_add_libc_functions,
    rdc_add_opened_functions,
    rdc_add_ranges_functions,
    rdc_add_walk_functions,
    rdc_add_xattrs_functions,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "rdc.files._files", NULL, -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__files(void)
{
    PyObject *module = PyModule_Create(&definition);
    for (size_t i = 0; module && i < sizeof topics / sizeof *topics; i++)
        if (topics[i](module))
            Py_CLEAR(module);
    return module;
}
