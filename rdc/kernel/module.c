/* module.c - the kernel as a Python module, and the variant that runs.
 *
 * The files named *_binding.c add everything else to the module. No other file knows Python.
 * tests/reference documents each name. */
#include "module.h"

#include "search/variant.h"
#include "x86/masking.h"

static const rdc_variant *chosen = &rdc_plain;

const rdc_variant *rdc_chosen_variant(void)
{
    return chosen;
}

const rdc_variant *rdc_find_variant(const char *name)
{
    for (const rdc_variant *const *variant = rdc_variants; *variant; variant++)
        if (!strcmp((*variant)->name, name) && (*variant)->usable())
            return *variant;
    PyErr_Format(PyExc_ValueError, "no kernel variant %s here", name);
    return NULL;
}

unsigned rdc_variant_rank(const char *name)
{
    static const char *const order[] = {"avx512", "avx2", "neon"};
    unsigned rank = 0;
    while (rank < sizeof order / sizeof *order && strcmp(order[rank], name))
        rank++;
    return rank;
}

int rdc_add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    const int failed = !type || PyModule_AddObjectRef(module, name, type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static PyObject *names_of(int usable_only)
{
    PyObject *list = PyList_New(0), *tuple = NULL;
    for (const rdc_variant *const *variant = rdc_variants; list && *variant; variant++) {
        if (usable_only && !(*variant)->usable())
            continue;
        PyObject *name = PyUnicode_FromString((*variant)->name);
        if (!name || PyList_Append(list, name))
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    if (list)
        tuple = PyList_AsTuple(list);
    Py_XDECREF(list);
    return tuple;
}

static PyObject *built(PyObject *module, PyObject *ignored)
{
    (void)module, (void)ignored;
    return names_of(0);
}

static PyObject *usable(PyObject *module, PyObject *ignored)
{
    (void)module, (void)ignored;
    return names_of(1);
}

static PyObject *choose(PyObject *module, PyObject *name)
{
    (void)module;
    const char *text = PyUnicode_AsUTF8(name);
    const rdc_variant *variant = text ? rdc_find_variant(text) : NULL;
    if (!variant)
        return NULL;
    if (!rdc_variant_agrees(variant) || !rdc_choose_blocks(text) || !rdc_choose_code(text))
        return PyErr_Format(PyExc_RuntimeError, "kernel %s disagrees with the plain variant on this machine", text);
    rdc_choose_samples(text);
    rdc_choose_shingles(text);
    chosen = variant;
    Py_RETURN_NONE;
}

static PyObject *kernel_name(PyObject *module, PyObject *ignored)
{
    (void)module, (void)ignored;
    return PyUnicode_FromString(chosen->name);
}

static PyMethodDef functions[] = {
    {"built", built, METH_NOARGS, NULL},
    {"usable", usable, METH_NOARGS, NULL},
    {"choose", choose, METH_O, NULL},
    {"kernel_name", kernel_name, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int (*const topics[])(PyObject *module) = {
    rdc_add_block_functions,   rdc_add_branch_functions, rdc_add_cutter,           rdc_add_equal_functions,
    rdc_add_gap_functions,     rdc_add_keyed_functions,  rdc_add_line_functions,   rdc_add_masking_functions,
    rdc_add_naming_functions,  rdc_add_node_functions,   rdc_add_pattern_set,      rdc_add_recipe_functions,
    rdc_add_root_functions,    rdc_add_row_functions,    rdc_add_sample_functions, rdc_add_scan_tables,
    rdc_add_set_functions,     rdc_add_shingle_functions, rdc_add_trait_types,     rdc_add_varint_functions,
    rdc_add_winnower,          rdc_add_word_functions,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "rdc.kernel._kernel", NULL, -1, functions, NULL, NULL,
                                        NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void)
{
    PyObject *module = PyModule_Create(&definition);
    for (size_t i = 0; module && i < sizeof topics / sizeof *topics; i++)
        if (topics[i](module))
            Py_CLEAR(module);
    return module;
}
