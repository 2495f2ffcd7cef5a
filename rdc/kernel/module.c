/* module.c - the kernel as a Python module, and the variant that runs.
 *
 * The files named *_binding.c add everything else to the module. No other file knows Python.
 * tests/reference documents each name. */
#include "module.h"

#include "search/variant.h"
#include "x86/x86.h"

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

int rdc_add_type(PyObject *module, const char *name, size_t size, PyType_Slot *slots)
{
    char whole[64];
    PyOS_snprintf(whole, sizeof whole, "rdc.kernel._kernel.%s", name);
    RDC_OBJECT *type = PyType_FromSpec(&(PyType_Spec){whole, (int)size, 0, Py_TPFLAGS_DEFAULT, slots});
    return type ? PyModule_AddObjectRef(module, name, type) : -1;
}

int rdc_append_name(PyObject *list, const char *name)
{
    RDC_OBJECT *text = list ? PyUnicode_FromString(name) : NULL;
    return text ? PyList_Append(list, text) : -1;
}

static PyObject *names_of(int usable_only)
{
    RDC_OBJECT *list = PyList_New(0);
    for (const rdc_variant *const *variant = rdc_variants; *variant; variant++)
        if ((!usable_only || (*variant)->usable()) && rdc_append_name(list, (*variant)->name))
            return NULL;
    return PyList_AsTuple(list);
}

static PyObject *built(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return names_of(0);
}

static PyObject *usable(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return names_of(1);
}

static PyObject *choose(PyObject *Py_UNUSED(module), PyObject *name)
{
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

static PyObject *kernel_name(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyUnicode_FromString(chosen->name);
}

static PyMethodDef functions[] = {
    {"built", built, METH_NOARGS, NULL},
    {"usable", usable, METH_NOARGS, NULL},
    {"choose", choose, METH_O, NULL},
    {"kernel_name", kernel_name, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef *const tables[] = {
    functions, rdc_alike_functions, rdc_block_functions, rdc_branch_functions, rdc_equal_functions,
    rdc_frame_functions, rdc_keyed_functions, rdc_line_functions, rdc_masking_functions, rdc_naming_functions, rdc_node_functions,
    rdc_pair_functions, rdc_resemblance_functions, rdc_root_functions, rdc_row_functions, rdc_sample_functions,
    rdc_shingle_functions, rdc_varint_functions, rdc_window_functions, rdc_word_functions,
};

static int (*const topics[])(PyObject *module) = {
    rdc_add_cutter, rdc_add_key_table, rdc_add_pattern_set, rdc_add_recipe_functions, rdc_add_scan_tables, rdc_add_trait_types,
    rdc_add_winnower,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "rdc.kernel._kernel", NULL, -1, NULL, NULL, NULL,
                                        NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void)
{
    PyObject *module = PyModule_Create(&definition);
    for (size_t i = 0; module && i < sizeof tables / sizeof *tables; i++)
        if (PyModule_AddFunctions(module, tables[i]))
            Py_CLEAR(module);
    for (size_t i = 0; module && i < sizeof topics / sizeof *topics; i++)
        if (topics[i](module))
            Py_CLEAR(module);
    return module;
}
