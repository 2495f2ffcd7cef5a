/* module.h - what the C files that know Python share. */
#ifndef RDC_MODULE_H
#define RDC_MODULE_H

#include "../binding.h"

#include "cut/variant.h"

/* From this many bytes on, releasing the lock costs less than holding it: about 1 us of work. */
#define UNLOCK_FROM 4096

/* Releases the lock for that many bytes of work, if they are enough, and takes it again. */
static inline PyThreadState *rdc_unlock(size_t bytes)
{
    return bytes >= UNLOCK_FROM ? PyEval_SaveThread() : NULL;
}

static inline void rdc_lock(PyThreadState *thread)
{
    if (thread)
        PyEval_RestoreThread(thread);
}

/* The variant of a stream if the caller names none. */
const rdc_variant *rdc_chosen_variant(void);

/* Returns a usable variant by name, or NULL with an exception set. */
const rdc_variant *rdc_find_variant(const char *name);

/* The functions of the files that have no types. */
extern PyMethodDef rdc_alike_functions[], rdc_block_functions[], rdc_branch_functions[], rdc_equal_functions[], rdc_frame_functions[],
    rdc_keyed_functions[], rdc_line_functions[], rdc_masking_functions[], rdc_naming_functions[], rdc_node_functions[], rdc_pair_functions[],
    rdc_resemblance_functions[], rdc_root_functions[], rdc_row_functions[], rdc_sample_functions[],
    rdc_shingle_functions[], rdc_varint_functions[], rdc_window_functions[], rdc_word_functions[];

/* Each adds the types and functions of its file to the module. Returns -1 with an exception set. */
int rdc_add_cutter(PyObject *module);
int rdc_add_key_table(PyObject *module);
int rdc_add_pattern_set(PyObject *module);
int rdc_add_recipe_functions(PyObject *module);
int rdc_add_scan_tables(PyObject *module);
int rdc_add_trait_types(PyObject *module);
int rdc_add_winnower(PyObject *module);

/* Each takes the fastest variant of its topic that this CPU can run, and that is no faster than the kernel's. */
void rdc_choose_samples(const char *kernel);
void rdc_choose_shingles(const char *kernel);

/* The place of a variant among all, fastest first. */
unsigned rdc_variant_rank(const char *name);

/* Appends a name to a list, which may be NULL. Returns -1 with an exception set. */
int rdc_append_name(PyObject *list, const char *name);

/* Adds a type of this name, whose objects take `size` bytes. Returns -1 with an exception set. */
int rdc_add_type(PyObject *module, const char *name, size_t size, PyType_Slot *slots);

#endif
