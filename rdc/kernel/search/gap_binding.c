/* gap_binding.c - Python binding for the block search of gaps; rdc/plan/gap_search.py
 * documents it.
 *
 * All numbers are read and checked before the search begins. */
#include "module.h"

#include "platform.h"
#include "search/gap_search.h"

/* Upper limits for offsets and for the bytes of a range, so that no sum overflows. */
#define OFFSET_HIGHEST (UINT64_C(1) << 63)
#define RANGE_LONGEST (UINT64_C(1) << 32)

#define GAP_ROW 32
#define RANGE_ROW 16
#define MATCH_ROW 24

typedef struct {
    rdc_gap_question question;
    rdc_gap *gaps;
    rdc_span *ranges;
    rdc_match *matches;
    size_t gap_count, range_count, match_count, blocks;
    size_t most_blocks, most_matches; /* of one gap */
} asked;

typedef struct {
    uint64_t *counts; /* two a gap */
    rdc_match *matches;
    rdc_span *ranges;
    size_t match_count, range_count;
} answered;

static int refuse(const char *why)
{
    PyErr_SetString(PyExc_ValueError, why);
    return -1;
}

static void *rows_for(size_t count, size_t each)
{
    void *rows = count <= PY_SSIZE_T_MAX / each - 1 ? malloc((count + 1) * each) : NULL;
    if (!rows)
        PyErr_NoMemory();
    return rows;
}

static int read_ranges(const Py_buffer *packed, asked *a)
{
    const uint8_t *row = packed->buf;
    a->range_count = (size_t)packed->len / RANGE_ROW;
    a->ranges = rows_for(a->range_count, sizeof *a->ranges);
    if (!a->ranges)
        return -1;
    for (size_t i = 0; i < a->range_count; i++, row += RANGE_ROW) {
        const rdc_span range = {rdc_load64(row), rdc_load64(row + 8)};
        if (range.start > OFFSET_HIGHEST || !range.length || range.length > RANGE_LONGEST)
            return refuse("gaps: ranges of 1 to 2^32 bytes, in order, at offsets up to 2^63");
        a->ranges[i] = range;
    }
    return 0;
}

static int read_matches(const Py_buffer *packed, asked *a)
{
    const uint8_t *row = packed->buf;
    a->match_count = (size_t)packed->len / MATCH_ROW;
    a->matches = rows_for(a->match_count, sizeof *a->matches);
    if (!a->matches)
        return -1;
    for (size_t i = 0; i < a->match_count; i++, row += MATCH_ROW)
        a->matches[i] = (rdc_match){rdc_load64(row), rdc_load64(row + 8), rdc_load64(row + 16)};
    return 0;
}

/* Returns whether the gap's ranges and matches are in order and the matches lie within its window. */
static int check_order(const rdc_gap *gap)
{
    uint64_t end = 0;
    for (size_t i = 0; i < gap->range_count; i++) {
        if (gap->ranges[i].start < end)
            return refuse("gaps: ranges of 1 to 2^32 bytes, in order, at offsets up to 2^63");
        end = gap->ranges[i].start + gap->ranges[i].length;
    }
    end = 0;
    for (size_t i = 0; i < gap->match_count; i++) {
        const rdc_match *match = &gap->matches[i];
        if (match->offset < end || match->offset > OFFSET_HIGHEST || !match->length || match->length > gap->length ||
            match->base_offset < gap->start || match->base_offset - gap->start > gap->length - match->length)
            return refuse("gaps: matches in order, at offsets up to 2^63, within the window");
        end = match->offset + match->length;
    }
    return 0;
}

static int read_gaps(const Py_buffer *packed, const Py_buffer *windows, const Py_buffer *fingerprints, asked *a)
{
    const uint8_t *row = packed->buf, *window = windows->buf, *fingerprint = fingerprints->buf;
    const size_t size = a->question.size, width = a->question.width;
    const rdc_span *range = a->ranges;
    const rdc_match *match = a->matches;
    size_t data_left = (size_t)windows->len, prints_left = (size_t)fingerprints->len / width;
    size_t ranges_left = a->range_count, matches_left = a->match_count;
    a->gap_count = (size_t)packed->len / GAP_ROW;
    a->gaps = rows_for(a->gap_count, sizeof *a->gaps);
    if (!a->gaps)
        return -1;
    for (size_t i = 0; i < a->gap_count; i++, row += GAP_ROW) {
        const uint64_t start = rdc_load64(row), length = rdc_load64(row + 8);
        const uint64_t ranges = rdc_load64(row + 16), matches = rdc_load64(row + 24);
        if (start > OFFSET_HIGHEST || length > data_left)
            return refuse("gaps: a window outside of the data");
        if (ranges > ranges_left || matches > matches_left)
            return refuse("gaps: more ranges or matches than there are");
        size_t blocks = 0;
        for (size_t j = 0; j < ranges && blocks <= prints_left; j++)
            blocks += range[j].length / size + (range[j].length % size != 0);
        if (blocks > prints_left)
            return refuse("gaps: more blocks than fingerprints");
        rdc_gap *gap = &a->gaps[i];
        *gap = (rdc_gap){window, start,       (size_t)length, range, (size_t)ranges, match, (size_t)matches,
                         fingerprint, blocks};
        if (check_order(gap))
            return -1;
        a->most_blocks = blocks > a->most_blocks ? blocks : a->most_blocks;
        a->most_matches = gap->match_count > a->most_matches ? gap->match_count : a->most_matches;
        a->blocks += blocks;
        window += length, data_left -= length;
        range += ranges, ranges_left -= ranges;
        match += matches, matches_left -= matches;
        fingerprint += blocks * width, prints_left -= blocks;
    }
    if (data_left || ranges_left || matches_left || prints_left)
        return refuse("gaps: windows, ranges, matches or fingerprints that belong to none");
    return 0;
}

static int search(const asked *a, answered *out)
{
    rdc_gap_scratch *scratch = rdc_gap_scratch_new(a->most_blocks, a->most_matches);
    int failed = scratch ? 0 : -1;
    for (size_t i = 0; i < a->gap_count && !failed; i++) {
        size_t matches = 0, ranges = 0;
        failed = rdc_search_gap(&a->question, &a->gaps[i], scratch, out->matches + out->match_count, &matches,
                                out->ranges + out->range_count, &ranges);
        out->counts[2 * i] = matches;
        out->counts[2 * i + 1] = ranges;
        out->match_count += matches;
        out->range_count += ranges;
    }
    rdc_gap_scratch_free(scratch);
    return failed;
}

/* Little-endian numbers of 64 bits. */
static PyObject *packed_rows(const void *rows, size_t numbers)
{
    PyObject *packed = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(8 * numbers));
    if (!packed)
        return NULL;
    const uint64_t *from = rows;
    uint8_t *to = (uint8_t *)PyBytes_AS_STRING(packed);
    for (size_t i = 0; i < numbers; i++)
        for (unsigned j = 0; j < 8; j++)
            *to++ = (uint8_t)(from[i] >> 8 * j);
    return packed;
}

static PyObject *result_of(const asked *a, const answered *out)
{
    PyObject *counts = packed_rows(out->counts, 2 * a->gap_count), *result = NULL;
    PyObject *matches = packed_rows(out->matches, 3 * out->match_count);
    PyObject *ranges = packed_rows(out->ranges, 2 * out->range_count);
    if (counts && matches && ranges)
        result = PyTuple_Pack(3, counts, matches, ranges);
    Py_XDECREF(counts);
    Py_XDECREF(matches);
    Py_XDECREF(ranges);
    return result;
}

static PyObject *search_gaps(PyObject *module, PyObject *args)
{
    Py_buffer key, windows, gaps, ranges, matches, fingerprints;
    Py_ssize_t size, width, smaller;
    PyObject *result = NULL;
    asked a = {0};
    answered out = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*nnny*y*y*y*:search_gaps", &key, &windows, &size, &width, &smaller, &gaps, &ranges,
                          &matches, &fingerprints))
        return NULL;
    if (key.len != 16 || size < 1 || width < 1 || width > 8 || fingerprints.len % width) {
        refuse("blocks: a key of 16 bytes, a size of >= 1, a width of 1 to 8, fingerprints without a rest");
        goto done;
    }
    if (smaller < 0 || gaps.len % GAP_ROW || ranges.len % RANGE_ROW || matches.len % MATCH_ROW) {
        refuse("gaps: rows of 32, 16 and 24 bytes, smaller blocks of >= 0 bytes");
        goto done;
    }
    a.question = (rdc_gap_question){key.buf, (size_t)size, (size_t)smaller, (unsigned)width};
    if (read_ranges(&ranges, &a) || read_matches(&matches, &a) || read_gaps(&gaps, &windows, &fingerprints, &a))
        goto done;
    out.counts = rows_for(a.gap_count, 2 * sizeof *out.counts);
    out.matches = rows_for(a.match_count + a.blocks, sizeof *out.matches);
    out.ranges = rows_for(a.blocks, sizeof *out.ranges);
    if (!out.counts || !out.matches || !out.ranges)
        goto done;
    int failed;
    Py_BEGIN_ALLOW_THREADS
    failed = search(&a, &out);
    Py_END_ALLOW_THREADS
    if (failed)
        PyErr_NoMemory();
    else
        result = result_of(&a, &out);
done:
    free(out.counts);
    free(out.matches);
    free(out.ranges);
    free(a.gaps);
    free(a.ranges);
    free(a.matches);
    PyBuffer_Release(&key);
    PyBuffer_Release(&windows);
    PyBuffer_Release(&gaps);
    PyBuffer_Release(&ranges);
    PyBuffer_Release(&matches);
    PyBuffer_Release(&fingerprints);
    return result;
}

static PyMethodDef functions[] = {
    {"search_gaps", search_gaps, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int rdc_add_gap_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
