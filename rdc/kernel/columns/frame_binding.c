/* frame_binding.c - the check of a pack's directory for Python; tests/reference/frames.py documents it. */
#include "module.h"

#include "columns/columns.h"

static PyObject *frames_are_sound(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER kinds = {0}, stored_sizes = {0}, sizes = {0}, counts = {0}, generations = {0}, depths = {0};
    RDC_BUFFER base_counts = {0}, lengths = {0};
    unsigned long long bases, stored;
    unsigned size_most, depth_most, bases_most;
    if (!PyArg_ParseTuple(args, "(y*y*y*y*y*y*y*y*)KK(III):frames_are_sound", &kinds, &stored_sizes, &sizes, &counts,
                          &generations, &depths, &base_counts, &lengths, &bases, &stored, &size_most, &depth_most,
                          &bases_most))
        return NULL;
    const Py_ssize_t frames = kinds.len;
    if (stored_sizes.len != 4 * frames || sizes.len != 4 * frames || counts.len != 4 * frames ||
        generations.len != 2 * frames || depths.len != frames || base_counts.len != 2 * frames || lengths.len % 4)
        return PyErr_Format(PyExc_ValueError, "frames: columns with a row for each, and lengths of 4 bytes");
    const rdc_frame_columns columns = {
        .kinds = kinds.buf,
        .stored_sizes = stored_sizes.buf,
        .sizes = sizes.buf,
        .counts = counts.buf,
        .generations = generations.buf,
        .depths = depths.buf,
        .base_counts = base_counts.buf,
        .lengths = lengths.buf,
        .frames = (size_t)frames,
        .chunks = (size_t)lengths.len / 4,
        .bases = bases,
        .stored = stored,
    };
    const rdc_frame_bounds most = {size_most, depth_most, bases_most};
    int sound;
    Py_BEGIN_ALLOW_THREADS
    sound = rdc_frames_are_sound(&columns, &most);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(sound);
}

PyMethodDef rdc_frame_functions[] = {
    {"frames_are_sound", frames_are_sound, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
