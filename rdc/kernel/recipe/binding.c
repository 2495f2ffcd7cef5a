/* binding.c - rows of matches and copy instructions as a Python module.
 * tests/reference/recipe.py documents each name.
 *
 * Rows are native 64-bit numbers. Calls keep the interpreter's lock: one takes microseconds, one for a
 * whole large gap a millisecond. */
#include "module.h"

#include "recipe/matches.h"

/* Converts a number of 64 bits. Any other value raises ValueError: nothing wraps. */
static int number(PyObject *object, void *out)
{
    const unsigned long long value = PyLong_AsUnsignedLongLong(object);
    if (value == (unsigned long long)-1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_SetString(PyExc_ValueError, "a number is not in 0 to 2^64 - 1");
        return 0;
    }
    *(uint64_t *)out = value;
    return 1;
}

/* Returns the number of rows of `width` bytes, or -1 with an exception set. */
static Py_ssize_t rows_of(const Py_buffer *view, size_t width)
{
    if (view->len % (Py_ssize_t)width || (view->len && (uintptr_t)view->buf % 8)) {
        PyErr_Format(PyExc_ValueError, "%zd bytes: rows of %zu bytes, aligned, are expected", view->len, width);
        return -1;
    }
    return view->len / (Py_ssize_t)width;
}

/* Bytes with room for so many rows. */
static PyObject *room(uint64_t rows, size_t width)
{
    return rows > (uint64_t)PY_SSIZE_T_MAX / 64 ? PyErr_NoMemory() : rdc_new_bytes(rows * width);
}

/* Shrinks the room to `made` rows, the result. -1 is an error. */
static PyObject *filled(PyObject *bytes, int64_t made, size_t width)
{
    if (made >= 0) {
        _PyBytes_Resize(&bytes, (Py_ssize_t)((size_t)made * width));
        return bytes;
    }
    Py_DECREF(bytes);
    return made == -2 ? PyErr_NoMemory()
                      : PyErr_Format(PyExc_ValueError, "rows that are out of order, or end past 2^63 - 1");
}

static PyObject *fill_offsets(PyObject *Py_UNUSED(module), PyObject *args)
{
    uint64_t shift;
    RDC_BUFFER base_offsets = {0}, more = {0};
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*O&:fill_offsets", &base_offsets, &more, number, &shift))
        return NULL;
    const Py_ssize_t count = rows_of(&base_offsets, 8), others = count < 0 ? -1 : rows_of(&more, 8);
    if (others >= 0 && others != count)
        PyErr_Format(PyExc_ValueError, "%zd offsets and %zd", count, others);
    else if (others >= 0 && (result = room((uint64_t)count, 8)))
        result = filled(result, rdc_fill_offsets(base_offsets.buf, more.buf, (size_t)count, shift, rdc_inside(result)), 8);
    return result;
}

static PyObject *block_matches(PyObject *Py_UNUSED(module), PyObject *args)
{
    uint64_t offset, size;
    RDC_BUFFER base_offsets = {0};
    if (!PyArg_ParseTuple(args, "O&O&y*:block_matches", number, &offset, number, &size, &base_offsets))
        return NULL;
    const Py_ssize_t count = rows_of(&base_offsets, 8);
    PyObject *result = count < 0 ? NULL : room((uint64_t)count, sizeof(rdc_match));
    if (!result)
        return NULL;
    return filled(result, rdc_block_matches(offset, size, base_offsets.buf, (size_t)count, rdc_inside(result)),
                  sizeof(rdc_match));
}

static PyObject *join_matches(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER first = {0}, second = {0};
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*:join_matches", &first, &second))
        return NULL;
    const Py_ssize_t firsts = rows_of(&first, sizeof(rdc_match));
    const Py_ssize_t seconds = firsts < 0 ? -1 : rows_of(&second, sizeof(rdc_match));
    if (seconds >= 0 && (result = room((uint64_t)firsts + (uint64_t)seconds, sizeof(rdc_match))))
        result = filled(result,
                        rdc_join_matches(first.buf, (size_t)firsts, second.buf, (size_t)seconds, rdc_inside(result)),
                        sizeof(rdc_match));
    return result;
}

static PyObject *unmatched_runs(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER matches = {0};
    uint64_t start, end, before, behind, most;
    rdc_run_limits limits;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*O&O&O&O&O&O&O&O&O&:unmatched_runs", &matches, number, &start, number, &end, number,
                          &before, number, &behind, number, &limits.size, number, &limits.ends, number,
                          &limits.far, number, &limits.tail, number, &most))
        return NULL;
    const Py_ssize_t count = rows_of(&matches, sizeof(rdc_match));
    if (count >= 0) {
        const uint64_t all = 2 * ((uint64_t)count + 1);
        result = room(most < all ? most + 1 : all, sizeof(rdc_run));
    }
    if (result)
        result = filled(result,
                        rdc_unmatched_runs(matches.buf, (size_t)count, start, end, before, behind, &limits, most,
                                      rdc_inside(result)),
                        sizeof(rdc_run));
    return result;
}

static PyObject *run_spans(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER runs = {0};
    uint64_t size, reach, close, most;
    if (!PyArg_ParseTuple(args, "y*O&O&O&O&:run_spans", &runs, number, &size, number, &reach, number, &close, number,
                          &most))
        return NULL;
    const Py_ssize_t count = rows_of(&runs, sizeof(rdc_run));
    PyObject *result = count < 0 ? NULL : room((uint64_t)count, sizeof(rdc_span));
    if (!result)
        return NULL;
    return filled(result, rdc_run_spans(runs.buf, (size_t)count, size, reach, close, most, rdc_inside(result)),
                  sizeof(rdc_span));
}

static PyObject *instructions_of_range(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER copies = {0};
    uint64_t offset, length;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*O&O&:instructions_of_range", &copies, number, &offset, number, &length))
        return NULL;
    const Py_ssize_t count = rows_of(&copies, sizeof(rdc_copy));
    if (count >= 0) {
        const int64_t instructions = rdc_instructions_of_range(copies.buf, (size_t)count, offset, length, NULL);
        if ((result = room(instructions < 0 ? 0 : (uint64_t)instructions, sizeof(rdc_instruction))))
            result = filled(result,
                            instructions < 0 ? instructions : rdc_instructions_of_range(copies.buf, (size_t)count, offset, length, rdc_inside(result)),
                            sizeof(rdc_instruction));
    }
    return result;
}

static PyObject *instructions_of_ranges(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER copies = {0}, ranges = {0};
    RDC_OBJECT *instructions = NULL, *totals = NULL;
    if (!PyArg_ParseTuple(args, "y*y*:instructions_of_ranges", &copies, &ranges))
        return NULL;
    const Py_ssize_t count = rows_of(&copies, sizeof(rdc_copy));
    const Py_ssize_t number = count < 0 ? -1 : rows_of(&ranges, sizeof(rdc_range));
    if (number < 0 || !(totals = room((uint64_t)number, sizeof(rdc_instruction_totals))))
        return NULL;
    const int64_t made = rdc_instructions_of_ranges(copies.buf, (size_t)count, ranges.buf, (size_t)number, NULL, NULL);
    if (!(instructions = room(made < 0 ? 0 : (uint64_t)made, sizeof(rdc_instruction))))
        return NULL;
    if (made >= 0)
        rdc_instructions_of_ranges(copies.buf, (size_t)count, ranges.buf, (size_t)number, rdc_inside(instructions), rdc_inside(totals));
    instructions = filled(instructions, made, sizeof(rdc_instruction));
    return instructions ? PyTuple_Pack(2, instructions, totals) : NULL;
}

static PyObject *copies_of_instructions(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER instructions = {0};
    uint64_t offset;
    if (!PyArg_ParseTuple(args, "y*O&:copies_of_instructions", &instructions, number, &offset))
        return NULL;
    const Py_ssize_t count = rows_of(&instructions, sizeof(rdc_instruction));
    PyObject *result = count < 0 ? NULL : room((uint64_t)count, sizeof(rdc_copy));
    if (!result)
        return NULL;
    return filled(result, rdc_copies_of(instructions.buf, (size_t)count, offset, rdc_inside(result)), sizeof(rdc_copy));
}

static PyObject *fetched_ranges(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER instructions = {0};
    uint64_t offset;
    if (!PyArg_ParseTuple(args, "y*O&:fetched_ranges", &instructions, number, &offset))
        return NULL;
    const Py_ssize_t count = rows_of(&instructions, sizeof(rdc_instruction));
    PyObject *result = count < 0 ? NULL : room((uint64_t)count, sizeof(rdc_range));
    if (!result)
        return NULL;
    return filled(result, rdc_fetched_ranges(instructions.buf, (size_t)count, offset, rdc_inside(result)),
                  sizeof(rdc_range));
}

static PyObject *plan_reads(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER instructions = {0}, sizes = {0};
    rdc_surroundings around = {0};
    uint64_t close, literals = 0;
    RDC_OBJECT *reads = NULL, *sources = NULL;
    if (!PyArg_ParseTuple(args, "y*O&|O&O&y*:plan_reads", &instructions, number, &close, number, &around.back, number,
                          &around.ahead, &sizes))
        return NULL;
    const Py_ssize_t count = rows_of(&instructions, sizeof(rdc_instruction)), bases = sizes.obj ? rows_of(&sizes, sizeof(uint64_t)) : 0;
    if (count < 0 || bases < 0)
        return NULL;
    around.sizes = sizes.buf;
    around.bases = (uint64_t)bases;
    if (!(sources = room((uint64_t)count, sizeof(rdc_range))) ||
        !(reads = room((uint64_t)count, sizeof(rdc_instruction))))
        return NULL;
    reads = filled(reads,
                   rdc_plan_reads(instructions.buf, (size_t)count, close, &around, rdc_inside(reads), rdc_inside(sources), &literals),
                   sizeof(rdc_instruction));
    return reads ? Py_BuildValue("(KOO)", (unsigned long long)literals, reads, sources) : NULL;
}

static PyObject *assemble(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER sources = {0}, copied = {0}, literals = {0};
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*y*:assemble", &sources, &copied, &literals))
        return NULL;
    const Py_ssize_t count = rows_of(&sources, sizeof(rdc_range));
    if (count >= 0) {
        const int64_t made =
            rdc_assembled_bytes(sources.buf, (size_t)count, (uint64_t)copied.len, (uint64_t)literals.len);
        if (made < 0)
            PyErr_SetString(PyExc_ValueError, "sources outside of the data read, or literals that are in none");
        else if ((result = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)made)))
            rdc_assemble(sources.buf, (size_t)count, copied.buf, literals.buf, (uint8_t *)PyByteArray_AS_STRING(result));
    }
    return result;
}

static PyObject *assemble_with_bits(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER sources = {0}, copied = {0}, bits = {0};
    RDC_OBJECT *images = NULL, *row = NULL;
    PyObject *result = NULL;
    int64_t made = -1;
    if (!PyArg_ParseTuple(args, "y*y*y*:assemble_with_bits", &sources, &copied, &bits))
        return NULL;
    const Py_ssize_t count = rows_of(&sources, sizeof(rdc_range));
    if (count >= 0 && bits.len == copied.len / 8 + (copied.len % 8 != 0))
        made = rdc_image_bytes(sources.buf, (size_t)count, (uint64_t)copied.len);
    if (count >= 0 && made < 0)
        PyErr_SetString(PyExc_ValueError, "sources outside of the data read, or not as many bits");
    if (made >= 0 && (row = room((uint64_t)made / 8 + (made % 8 != 0), 1)))
        images = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)made);
    if (images) {
        rdc_assemble_with_bits(sources.buf, (size_t)count, copied.buf, bits.buf, (size_t)copied.len,
                       (uint8_t *)PyByteArray_AS_STRING(images), rdc_inside(row));
        result = PyTuple_Pack(2, images, row);
    }
    return result;
}

static PyObject *range_reads(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER ranges = {0};
    uint64_t close, most;
    if (!PyArg_ParseTuple(args, "y*O&O&:range_reads", &ranges, number, &close, number, &most))
        return NULL;
    const Py_ssize_t count = rows_of(&ranges, sizeof(rdc_range));
    PyObject *result = count < 0 ? NULL : room((uint64_t)count, sizeof(rdc_read));
    if (!result)
        return NULL;
    return filled(result, rdc_range_reads(ranges.buf, (size_t)count, close, most, rdc_inside(result)), sizeof(rdc_read));
}

static PyObject *around_ranges(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER ranges = {0};
    uint64_t reach, size;
    if (!PyArg_ParseTuple(args, "y*O&O&:around_ranges", &ranges, number, &reach, number, &size))
        return NULL;
    const Py_ssize_t count = rows_of(&ranges, sizeof(rdc_range));
    PyObject *result = count < 0 ? NULL : room(2 * (uint64_t)count, sizeof(rdc_range));
    if (!result)
        return NULL;
    return filled(result, rdc_around_ranges(ranges.buf, (size_t)count, reach, size, rdc_inside(result)), sizeof(rdc_range));
}

static PyObject *take_ranges(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER ranges = {0}, data = {0};
    uint64_t start;
    if (!PyArg_ParseTuple(args, "y*O&y*:take_ranges", &ranges, number, &start, &data))
        return NULL;
    const Py_ssize_t count = rows_of(&ranges, sizeof(rdc_range));
    PyObject *result = count < 0 ? NULL : room((uint64_t)data.len, 1);
    if (!result)
        return NULL;
    return filled(result, rdc_take_ranges(ranges.buf, (size_t)count, start, data.buf, (size_t)data.len,
                  rdc_inside(result)), 1);
}

static PyMethodDef functions[] = {
    {"around_ranges", around_ranges, METH_VARARGS, NULL},
    {"fetched_ranges", fetched_ranges, METH_VARARGS, NULL},
    {"fill_offsets", fill_offsets, METH_VARARGS, NULL},
    {"join_matches", join_matches, METH_VARARGS, NULL},
    {"unmatched_runs", unmatched_runs, METH_VARARGS, NULL},
    {"block_matches", block_matches, METH_VARARGS, NULL},
    {"assemble_with_bits", assemble_with_bits, METH_VARARGS, NULL},
    {"assemble", assemble, METH_VARARGS, NULL},
    {"range_reads", range_reads, METH_VARARGS, NULL},
    {"run_spans", run_spans, METH_VARARGS, NULL},
    {"take_ranges", take_ranges, METH_VARARGS, NULL},
    {"instructions_of_range", instructions_of_range, METH_VARARGS, NULL},
    {"instructions_of_ranges", instructions_of_ranges, METH_VARARGS, NULL},
    {"plan_reads", plan_reads, METH_VARARGS, NULL},
    {"copies_of_instructions", copies_of_instructions, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_recipe_functions(PyObject *module)
{
    PyObject *literal = PyLong_FromUnsignedLongLong(RDC_LITERAL);
    const int failed = !literal || PyModule_AddObjectRef(module, "LITERAL", literal) ||
                       PyModule_AddIntConstant(module, "INSTRUCTION_BYTES", sizeof(rdc_instruction)) ||
                       PyModule_AddFunctions(module, functions);
    Py_XDECREF(literal);
    return failed ? -1 : 0;
}
