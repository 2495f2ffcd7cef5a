/* binding.h - TraitIndex as both bindings of this folder know it. */
#ifndef RDC_SIMILARITY_BINDING_H
#define RDC_SIMILARITY_BINDING_H

#include "module.h"

#include "similarity/index.h"

typedef struct {
    PyObject_HEAD
    rdc_index index;
} TraitIndex;

/* Adds the type TraitPairs, which takes a TraitIndex of this type. Returns -1 with an exception set. */
int rdc_add_trait_pairs(PyObject *module, PyTypeObject *index_type);

#endif
