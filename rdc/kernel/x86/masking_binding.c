/* masking_binding.c - Python bindings for the masking of x86 displacements. */
#include "module.h"

#include "x86/x86.h"

/* The lengths of a content's parts, 64 bits each. Without lengths there is one part. */
typedef struct {
    Py_buffer lengths;
    size_t whole, count;
} parts;

static size_t part_length(const parts *p, size_t row)
{
    uint64_t length = p->whole;
    if (p->lengths.obj)
        memcpy(&length, (const uint8_t *)p->lengths.buf + 8 * row, 8);
    return (size_t)length;
}

/* Returns whether the parts make `size` bytes; otherwise an exception is set. */
static int make_up(parts *p, Py_ssize_t size)
{
    size_t left = p->whole = (size_t)size;
    p->count = p->lengths.obj ? (size_t)p->lengths.len / 8 : 1;
    for (size_t row = 0; row < p->count && part_length(p, row) <= left; row++) {
        left -= part_length(p, row);
        if (row + 1 == p->count && !left && p->lengths.len % 8 == 0)
            return 1;
    }
    if (!p->count && !left && p->lengths.len == 0)
        return 1;
    PyErr_Format(PyExc_ValueError, "masking: lengths, 8 bytes each, that add up to %zd bytes", size);
    return 0;
}

static void release_parts(parts *p)
{
    if (p->lengths.obj)
        PyBuffer_Release(&p->lengths);
}

static Py_ssize_t bit_bytes(Py_ssize_t size)
{
    return size / 8 + (size % 8 != 0);
}

static PyObject *displacement_bits(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER content = {0};
    parts p = {0};
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*|y*:displacement_bits", &content, &p.lengths))
        return NULL;
    if (make_up(&p, content.len))
        result = PyBytes_FromStringAndSize(NULL, bit_bytes(content.len));
    if (result) {
        const uint8_t *from = content.buf;
        rdc_bits bits = {rdc_inside(result), 0, 0};
        Py_BEGIN_ALLOW_THREADS
        for (size_t row = 0; row < p.count; row++) {
            const size_t length = part_length(&p, row);
            rdc_displacement_bits(from, length, &bits);
            from += length;
        }
        rdc_end_bits(&bits);
        Py_END_ALLOW_THREADS
    }
    release_parts(&p);
    return result;
}

static PyObject *bit_counts(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER bits = {0};
    Py_ssize_t size;
    PyObject *counts = NULL;
    if (!PyArg_ParseTuple(args, "y*n:bit_counts", &bits, &size))
        return NULL;
    if (size <= 0)
        PyErr_Format(PyExc_ValueError, "masking: parts of %zd bytes", size);
    else
        counts = PyBytes_FromStringAndSize(NULL, 8 * (bits.len / size + (bits.len % size != 0)));
    if (counts) {
        uint8_t *to = rdc_inside(counts);
        for (Py_ssize_t at = 0; at < bits.len; at += size, to += 8) {
            const Py_ssize_t left = bits.len - at;
            const uint64_t count = rdc_count_bits((const uint8_t *)bits.buf + at, 8 * (size_t)(left < size ? left : size));
            memcpy(to, &count, 8);
            if (left <= size)
                break;
        }
    }
    return counts;
}

static PyObject *mask_displacements(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER content = {0};
    long filler;
    parts p = {0};
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "w*l|y*:mask_displacements", &content, &filler, &p.lengths))
        return NULL;
    if (filler < 0 || filler > UINT8_MAX) {
        PyErr_Format(PyExc_ValueError, "masking: %ld is no byte", filler);
    } else if (make_up(&p, content.len)) {
        uint8_t *code = content.buf;
        size_t count = 0;
        Py_BEGIN_ALLOW_THREADS
        for (size_t row = 0; row < p.count; row++) {
            count += rdc_mask_displacements(code, part_length(&p, row), (uint8_t)filler);
            code += part_length(&p, row);
        }
        Py_END_ALLOW_THREADS
        result = PyLong_FromSize_t(count);
    }
    release_parts(&p);
    return result;
}

/* Parts of one length, the last of which may be shorter, and the file offset of each. */
typedef struct {
    Py_buffer offsets;
    size_t total, size, count;
} equal_parts;

/* Returns whether `size` and `offsets` fit this many bytes; otherwise an exception is set. */
static int fit(const equal_parts *p, Py_ssize_t size)
{
    if (size > 0 && p->offsets.len % 8 == 0 && p->count == (p->total + (size_t)size - 1) / (size_t)size)
        return 1;
    PyErr_Format(PyExc_ValueError, "masking: %zu parts of %zd bytes for %zu", p->count, size, p->total);
    return 0;
}

static size_t equal_part_length(const equal_parts *p, size_t row)
{
    const size_t left = p->total - row * p->size;
    return left < p->size ? left : p->size;
}

static uint64_t equal_part_offset(const equal_parts *p, size_t row)
{
    uint64_t offset;
    memcpy(&offset, (const uint8_t *)p->offsets.buf + 8 * row, 8);
    return offset;
}

/* Returns whether there is one bit per byte and `filler` is a byte; otherwise an exception is set. */
static int maskable(const Py_buffer *content, const Py_buffer *bits, long filler)
{
    if (filler < 0 || filler > UINT8_MAX)
        PyErr_Format(PyExc_ValueError, "masking: %ld is no byte", filler);
    else if (bits->len != bit_bytes(content->len))
        PyErr_Format(PyExc_ValueError, "masking: %zd bytes of bits for %zd bytes", bits->len, content->len);
    else
        return 1;
    return 0;
}

static PyObject *overwrite_marked(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER content = {0}, bits = {0};
    long filler;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "w*y*l:overwrite_marked", &content, &bits, &filler))
        return NULL;
    if (maskable(&content, &bits, filler)) {
        rdc_overwrite_marked(content.buf, bits.buf, (size_t)content.len, (uint8_t)filler);
        result = Py_NewRef(Py_None);
    }
    return result;
}

static PyObject *take_displacements(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER content = {0}, bits = {0};
    Py_ssize_t size;
    long filler;
    equal_parts p;
    PyObject *taken = NULL, *counts = NULL, *result = NULL;
    if (!PyArg_ParseTuple(args, "w*y*ny*l:take_displacements", &content, &bits, &size, &p.offsets, &filler))
        return NULL;
    p.total = (size_t)content.len, p.size = (size_t)size, p.count = (size_t)p.offsets.len / 8;
    if (size % 8)
        PyErr_Format(PyExc_ValueError, "masking: parts of %zd bytes, not of eights", size);
    else if (maskable(&content, &bits, filler) && fit(&p, size) &&
             (counts = PyBytes_FromStringAndSize(NULL, p.offsets.len)))
        taken = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)rdc_count_bits(bits.buf, p.total));
    if (taken) {
        uint8_t *to = rdc_inside(taken);
        Py_BEGIN_ALLOW_THREADS
        for (size_t row = 0; row < p.count; row++) {
            const size_t at = row * p.size;
            const uint64_t count = rdc_take_displacements((uint8_t *)content.buf + at, (const uint8_t *)bits.buf + at / 8,
                                                    equal_part_length(&p, row), equal_part_offset(&p, row), (uint8_t)filler, to);
            memcpy(PyBytes_AS_STRING(counts) + 8 * row, &count, 8);
            to += count;
        }
        Py_END_ALLOW_THREADS
        result = PyTuple_Pack(2, taken, counts);
    }
    Py_XDECREF(taken);
    Py_XDECREF(counts);
    PyBuffer_Release(&p.offsets);
    return result;
}

static PyObject *put_displacements(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER content = {0}, bits = {0}, displacements = {0};
    long long start;
    Py_ssize_t size;
    equal_parts p;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "w*Ly*y*ny*:put_displacements", &content, &start, &bits, &displacements, &size, &p.offsets))
        return NULL;
    p.total = (size_t)bits.len, p.size = (size_t)size / 8, p.count = (size_t)p.offsets.len / 8;
    if (size % 8)
        PyErr_Format(PyExc_ValueError, "masking: parts of %zd bytes, not of eights", size);
    else if (start < 0 || start > INT64_MAX - content.len)
        PyErr_Format(PyExc_ValueError, "masking: content at %lld, which does not end at 0 to 2^63 - 1", start);
    else if (fit(&p, size / 8)) {
        rdc_content here = {content.buf, (uint64_t)start, (size_t)content.len, 0};
        const uint8_t *from = displacements.buf;
        size_t left = (size_t)displacements.len;
        int fits = 1;
        for (size_t row = 0; fits && row < p.count; row++) {
            const uint64_t offset = equal_part_offset(&p, row);
            const size_t length = equal_part_length(&p, row);
            size_t taken = SIZE_MAX;
            if (offset <= INT64_MAX - 8 * (uint64_t)length)
                taken = rdc_put_displacements((const uint8_t *)bits.buf + row * p.size, 8 * length, offset, from, left, &here);
            if ((fits = taken != SIZE_MAX))
                from += taken, left -= taken;
        }
        if (fits && !left)
            result = PyLong_FromSize_t(here.put);
        else
            PyErr_SetString(PyExc_ValueError, "masking: more or fewer displacement bytes than set bits, or offsets past 2^63 - 1");
    }
    PyBuffer_Release(&p.offsets);
    return result;
}

PyMethodDef rdc_masking_functions[] = {
    {"bit_counts", bit_counts, METH_VARARGS, NULL},
    {"mask_displacements", mask_displacements, METH_VARARGS, NULL},
    {"overwrite_marked", overwrite_marked, METH_VARARGS, NULL},
    {"put_displacements", put_displacements, METH_VARARGS, NULL},
    {"take_displacements", take_displacements, METH_VARARGS, NULL},
    {"displacement_bits", displacement_bits, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
