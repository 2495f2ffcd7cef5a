/* binding.c - Python bindings for block fingerprints and their search; tests/reference/blocks.py and, for gaps,
 * rdc/plan/gap_search.py document them.
 *
 * All numbers are read and checked before a search begins. */
#include "module.h"

#include "platform.h"
#include "search/gap_search.h"
#include "search/rolling_hash.h"
#include "search/match.h"
#include "search/match_near.h"

/* Checks the key, the length, size and width that both functions about blocks take. */
static int check_blocks(const Py_buffer *key, Py_ssize_t size, Py_ssize_t width, Py_ssize_t fingerprints)
{
    if (key->len == 16 && size >= 1 && width >= 1 && width <= 8 && fingerprints % width == 0)
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "blocks: a key of 16 bytes (found %zd), a size of >= 1 (%zd), a width of 1 to 8 (%zd), fingerprints "
                 "without a rest (%zd bytes)",
                 key->len, size, width, fingerprints);
    return -1;
}

/* Little-endian numbers of 64 bits. */
static PyObject *packed_numbers(const void *numbers, size_t count)
{
    PyObject *packed = rdc_new_bytes(8 * (uint64_t)count);
    uint8_t *to = packed ? rdc_inside(packed) : NULL;
    for (size_t i = 0; packed && i < count; i++)
        rdc_store64(to + 8 * i, ((const uint64_t *)numbers)[i]);
    return packed;
}

/* Returns how many blocks parts of these lengths have, or -1 if the lengths do not add up to `total`. */
static Py_ssize_t blocks_of(const Py_buffer *lengths, Py_ssize_t total, Py_ssize_t size)
{
    Py_ssize_t blocks = 0;
    for (Py_ssize_t at = 0; at + 8 <= lengths->len; at += 8) {
        uint64_t length;
        memcpy(&length, (const char *)lengths->buf + at, 8);
        if (length > (uint64_t)total)
            return -1;
        total -= (Py_ssize_t)length;
        blocks += (Py_ssize_t)length / size + ((Py_ssize_t)length % size != 0);
    }
    return total || lengths->len % 8 ? -1 : blocks;
}

static PyObject *block_fingerprints(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER key = {0}, data = {0}, lengths = {0};
    Py_ssize_t size, width;
    if (!PyArg_ParseTuple(args, "y*y*nn|y*:block_fingerprints", &key, &data, &size, &width, &lengths) ||
        check_blocks(&key, size, width, 0))
        return NULL;
    const uint64_t whole = (uint64_t)data.len;
    if (!lengths.obj) {
        lengths.buf = (void *)&whole;
        lengths.len = 8;
    }
    const Py_ssize_t blocks = blocks_of(&lengths, data.len, size);
    if (blocks < 0)
        return PyErr_Format(PyExc_ValueError, "blocks: lengths, 8 bytes each, that add up to %zd bytes", data.len);
    PyObject *result = rdc_new_bytes((uint64_t)(blocks * width));
    if (!result)
        return NULL;
    uint8_t *out = rdc_inside(result);
    const uint8_t *at = data.buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t row = 0; row < lengths.len / 8; row++) {
        uint64_t length;
        memcpy(&length, (const char *)lengths.buf + 8 * row, 8);
        rdc_block_fingerprints(key.buf, at, (size_t)length, (size_t)size, (unsigned)width, out);
        at += length;
        out += (length / (uint64_t)size + (length % (uint64_t)size != 0)) * (uint64_t)width;
    }
    Py_END_ALLOW_THREADS
    return result;
}

static PyObject *match_blocks(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER key = {0}, base = {0}, fingerprints = {0};
    Py_ssize_t size, width;
    int failed;
    if (!PyArg_ParseTuple(args, "y*y*nny*:match_blocks", &key, &base, &size, &width, &fingerprints) ||
        check_blocks(&key, size, width, fingerprints.len))
        return NULL;
    const size_t count = (size_t)(fingerprints.len / width);
    RDC_MEMORY uint64_t *offsets = malloc(8 * count + 1);
    if (!offsets)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    failed = rdc_match_blocks(key.buf, base.buf, (size_t)base.len, (size_t)size, (unsigned)width, fingerprints.buf,
                              count, offsets);
    Py_END_ALLOW_THREADS
    return failed ? PyErr_NoMemory() : packed_numbers(offsets, count);
}

/* Upper limits for the bytes of a run or range, an offset, and a reach, so that no sum overflows. */
#define RUN_LONGEST (UINT64_C(1) << 32)
#define OFFSET_HIGHEST (UINT64_C(1) << 63)
#define REACH_LONGEST (1 << 20)

/* Rows of 64-bit numbers, little-endian. */
#define RUN_ROW 32
#define GAP_ROW 32
#define RANGE_ROW 16
#define MATCH_ROW 24

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

/* Reads runs from their rows and counts their blocks of `size` bytes. */
static int read_runs(const Py_buffer *packed, Py_ssize_t size, rdc_run *runs, size_t *blocks)
{
    const uint8_t *row = packed->buf;
    *blocks = 0;
    for (size_t i = 0; i < (size_t)packed->len / RUN_ROW; i++, row += RUN_ROW) {
        const rdc_run run = {rdc_load64(row), rdc_load64(row + 8), rdc_load64(row + 16), rdc_load64(row + 24)};
        if (run.offset > OFFSET_HIGHEST || run.length > RUN_LONGEST ||
            (run.before > OFFSET_HIGHEST && run.before != RDC_UNPLACED) ||
            (run.behind > OFFSET_HIGHEST && run.behind != RDC_UNPLACED))
            return refuse("runs: of at most 2^32 bytes, at offsets up to 2^63");
        runs[i] = run;
        *blocks += run.length / (uint64_t)size + (run.length % (uint64_t)size != 0);
    }
    return 0;
}

/* A part of a base for the next `runs` runs: `length` bytes from `origin` on, at `start` of the given
 * bytes. */
typedef struct {
    uint64_t runs, origin, start, length;
} window;

static window window_at(const Py_buffer *packed, size_t row)
{
    window w;
    memcpy(&w, (const uint8_t *)packed->buf + sizeof w * row, sizeof w);
    return w;
}

/* Returns whether the windows serve all runs and lie inside the `given` bytes of the base. */
static int windows_fit(const Py_buffer *packed, size_t runs, size_t given)
{
    if ((size_t)packed->len % sizeof(window))
        return 0;
    for (size_t row = 0; row < (size_t)packed->len / sizeof(window); row++) {
        const window w = window_at(packed, row);
        if (w.runs > runs || w.origin > OFFSET_HIGHEST || w.start > given || w.length > given - w.start)
            return 0;
        runs -= (size_t)w.runs;
    }
    return !runs;
}

static PyObject *match_runs(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER key = {0}, base = {0}, windows = {0}, packed = {0}, fingerprints = {0};
    Py_ssize_t size, width, reach;
    size_t blocks;
    if (!PyArg_ParseTuple(args, "y*y*y*nnny*y*:match_runs", &key, &base, &windows, &size, &width, &reach, &packed,
                          &fingerprints) ||
        check_blocks(&key, size, width, fingerprints.len))
        return NULL;
    if (reach < 0 || reach > REACH_LONGEST || packed.len % RUN_ROW)
        return PyErr_Format(PyExc_ValueError, "runs: rows of 32 bytes, a reach of 0 to 2^20");
    const size_t all = (size_t)packed.len / RUN_ROW;
    if (!windows_fit(&windows, all, (size_t)base.len))
        return PyErr_Format(PyExc_ValueError, "runs: windows inside %zd bytes for %zu of them", base.len, all);
    RDC_MEMORY rdc_run *runs = rows_for(all, sizeof *runs);
    if (!runs || read_runs(&packed, size, runs, &blocks))
        return NULL;
    if (blocks != (size_t)(fingerprints.len / width))
        return PyErr_Format(PyExc_ValueError, "runs of %zu blocks, %zd fingerprints", blocks, fingerprints.len / width);
    RDC_MEMORY rdc_match *found = rows_for(blocks, sizeof *found);
    if (!found)
        return NULL;
    int64_t count = 0;
    Py_BEGIN_ALLOW_THREADS
    const uint8_t *wanted = fingerprints.buf;
    const rdc_run *run = runs;
    for (size_t row = 0; row < (size_t)windows.len / sizeof(window) && count >= 0; row++) {
        const window w = window_at(&windows, row);
        const int64_t more = rdc_match_runs(key.buf, (const uint8_t *)base.buf + w.start, (size_t)w.length, w.origin,
                                            (size_t)size, (unsigned)width, (size_t)reach, run, (size_t)w.runs, wanted,
                                            found + count);
        count = more < 0 ? -1 : count + more;
        for (const rdc_run *end = run + w.runs; run < end; run++)
            wanted += (run->length / (uint64_t)size + (run->length % (uint64_t)size != 0)) * (uint64_t)width;
    }
    Py_END_ALLOW_THREADS
    return count < 0 ? PyErr_NoMemory() : packed_numbers(found, 3 * (size_t)count);
}

/* ---- gaps ---- */

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

static int read_ranges(const Py_buffer *packed, asked *a)
{
    const uint8_t *row = packed->buf;
    a->range_count = (size_t)packed->len / RANGE_ROW;
    a->ranges = rows_for(a->range_count, sizeof *a->ranges);
    if (!a->ranges)
        return -1;
    for (size_t i = 0; i < a->range_count; i++, row += RANGE_ROW) {
        const rdc_span range = {rdc_load64(row), rdc_load64(row + 8)};
        if (range.start > OFFSET_HIGHEST || !range.length || range.length > RUN_LONGEST)
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

static void release_asked(asked *a)
{
    free(a->gaps);
    free(a->ranges);
    free(a->matches);
}

static void release_answered(answered *out)
{
    free(out->counts);
    free(out->matches);
    free(out->ranges);
}

static PyObject *search_gaps(PyObject *Py_UNUSED(module), PyObject *args)
{
    RDC_BUFFER key = {0}, windows = {0}, gaps = {0}, ranges = {0}, matches = {0}, fingerprints = {0};
    RDC_CLEANUP(release_asked) asked a = {0};
    RDC_CLEANUP(release_answered) answered out = {0};
    Py_ssize_t size, width, smaller;
    int failed;
    if (!PyArg_ParseTuple(args, "y*y*nnny*y*y*y*:search_gaps", &key, &windows, &size, &width, &smaller, &gaps, &ranges,
                          &matches, &fingerprints) ||
        check_blocks(&key, size, width, fingerprints.len))
        return NULL;
    if (smaller < 0 || gaps.len % GAP_ROW || ranges.len % RANGE_ROW || matches.len % MATCH_ROW)
        return PyErr_Format(PyExc_ValueError, "gaps: rows of 32, 16 and 24 bytes, smaller blocks of >= 0 bytes");
    a.question = (rdc_gap_question){key.buf, (size_t)size, (size_t)smaller, (unsigned)width};
    if (read_ranges(&ranges, &a) || read_matches(&matches, &a) || read_gaps(&gaps, &windows, &fingerprints, &a))
        return NULL;
    out.counts = rows_for(a.gap_count, 2 * sizeof *out.counts);
    out.matches = rows_for(a.match_count + a.blocks, sizeof *out.matches);
    out.ranges = rows_for(a.blocks, sizeof *out.ranges);
    if (!out.counts || !out.matches || !out.ranges)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    failed = search(&a, &out);
    Py_END_ALLOW_THREADS
    if (failed)
        return PyErr_NoMemory();
    RDC_OBJECT *counts = packed_numbers(out.counts, 2 * a.gap_count);
    RDC_OBJECT *found = packed_numbers(out.matches, 3 * out.match_count);
    RDC_OBJECT *left = packed_numbers(out.ranges, 2 * out.range_count);
    return counts && found && left ? PyTuple_Pack(3, counts, found, left) : NULL;
}

PyMethodDef rdc_block_functions[] = {
    {"block_fingerprints", block_fingerprints, METH_VARARGS, NULL},
    {"match_blocks", match_blocks, METH_VARARGS, NULL},
    {"match_runs", match_runs, METH_VARARGS, NULL},
    {"search_gaps", search_gaps, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
