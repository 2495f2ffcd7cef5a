"""Writes parts: of what one slice of a search reads, as it is read, and of all documents, in their
order.
"""

from __future__ import annotations

import os
from array import array
from functools import partial

from rdc.documents.find.corpus import Corpus, Run
from rdc.documents.gather import Gathered, ordered_problems
from rdc.documents.parts.part_file import (
    COUNTS,
    DOCUMENT_PART,
    MAGIC_OF_SLICES,
    FoundRange,
    encode_block,
    encode_range,
    encode_section,
    encode_slice,
    part_end,
    part_start,
    shared_options,
)
from rdc.documents.read.file_kinds import SliceFiles
from rdc.documents.read.file_units import FileUnit, UnitList, list_units
from rdc.documents.read.text_batch import StoredBound, TextBatch
from rdc.documents.read.unit_reader import UnitReader
from rdc.errors import ExitCode
from rdc.files.own.output_file import Claims, Output, claim_outputs, write_output
from rdc.lean.typed import NamedTuple
from rdc.limits import BATCH_BYTES, BATCH_DOCUMENTS
from rdc.model.entries import little_endian
from rdc.model.similar import DocumentOptions, DocumentSlice
from rdc.progress import Event, Problem, Progressed, Reporter, StopSignal, check_stop
from rdc.survey.read import in_order, usable_workers
from rdc.survey.slices import SliceSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.model.scan import ScanSlice


# Writes documents as one part whose bytes do not depend on how the documents were divided before.
#
# Documents come in their order, and where a block ends follows from the documents alone: with the text that
# fills BATCH_BYTES, with the last of BATCH_DOCUMENTS, and before a document of the same path and row as the
# one before it.


class _Name(NamedTuple):
    path: bytes
    row: int


def ordered_part(gathered: Gathered) -> Iterator[bytes]:
    """Encode all documents and problems as one part, in spans."""
    corpus = Corpus(gathered.parts, gathered.blocks)
    yield from part_start(gathered.unit)
    for runs in _blocks(corpus):
        yield from encode_section(b"BLOK", _columns(corpus, runs))
    yield from part_end(gathered.problems, gathered.left_out)


def _blocks(corpus: Corpus) -> Iterator[list[Run]]:
    """Yield the runs of each block. They are not empty."""
    runs: list[Run] = []
    documents = size = 0
    last: _Name | None = None
    for run in corpus.runs():
        sizes = corpus.column(run, "Q", run.block.layout.sizes)
        first = 0
        names = corpus.names(run)
        for at in range(run.count):
            name = _Name(names.paths[names.sources[at]], names.rows[at])
            if size >= BATCH_BYTES or documents == BATCH_DOCUMENTS or name == last:
                if at > first:
                    runs.append(Run(run.block, run.first + first, at - first))
                yield runs
                runs, documents, size, first = [], 0, 0, at
            documents, size, last = documents + 1, size + sizes[at], name
        runs.append(Run(run.block, run.first + first, run.count - first))
    if runs:
        yield runs


def _columns(corpus: Corpus, runs: list[Run]) -> Iterator[bytes]:
    """Yield the columns of one block, in order."""
    paths: list[bytes] = []
    sources, rows, sizes, ends = array("I"), array("Q"), array("Q"), array("Q")
    digests, samples, sets = [], [], []
    for run in runs:
        names = corpus.names(run)
        for source in names.sources:
            if not paths or paths[-1] != names.paths[source]:
                paths.append(names.paths[source])
            sources.append(len(paths) - 1)
        rows.extend(names.rows)
        sizes.extend(corpus.column(run, "Q", run.block.layout.sizes))
        digests.append(corpus.digests(run))
        samples.append(corpus.samples(run))
        bounds = corpus.shingle_bounds(run)
        before = (ends[-1] if ends else 0) - bounds[0]
        ends.extend([before + bound for bound in bounds[1:]])
        sets.append(corpus.shingles(run.block, bounds[0], bounds[-1]))
    name_ends, end = array("Q"), 0
    for path in paths:
        end += len(path)
        name_ends.append(end)
    yield COUNTS.pack(len(paths), len(rows), ends[-1], end)
    yield little_endian(name_ends)
    yield from paths
    yield little_endian(sources)
    yield little_endian(rows)
    yield little_endian(sizes)
    yield from digests
    yield from samples
    yield little_endian(ends)
    yield from sets


# Writes the part of one slice of a search: what the slice reads, as it is read. Nothing is compared.


def root_inodes(paths: Sequence[bytes]) -> tuple[int, ...]:
    """Return the inode number of each path; 0 if it cannot be looked at."""
    return tuple(map(_inode, paths))


def _inode(path: bytes) -> int:
    try:
        return os.stat(path).st_ino
    except (OSError, ValueError):
        return 0


def write_slice(
    paths: Sequence[bytes],
    options: DocumentOptions,
    slice_: ScanSlice,
    part: bytes,
    reporter: Reporter,
    stop: StopSignal | None,
    *,
    overwrite: bool = False,
    filled: Sequence[bytes] = (),
) -> DocumentSlice:
    """Write the file `part`, completely or not at all. `filled`: directories that this search fills, and does
    not read. Raises StoppedError, UsageError and the errors of write_output()."""
    output = Output(part, DOCUMENT_PART, overwrite)
    writer = _SliceWriter(paths, options, slice_, reporter, stop, claim_outputs([output], filled))
    write_output(output, writer.spans())
    return writer.result()


class _SliceWriter:
    def __init__(
        self,
        paths: Sequence[bytes],
        options: DocumentOptions,
        slice_: ScanSlice,
        reporter: Reporter,
        stop: StopSignal | None,
        claims: Claims,
    ) -> None:
        self._claims = claims
        self._paths = paths
        self._options = options
        self._slice = slice_
        self._reporter = reporter
        self._stop = stop
        self._problems: list[Problem] = []
        self._left_out = 0
        self._bound = StoredBound()
        self._documents = self._bytes = self._done = 0
        self._range_left_out = 0
        self._code = ExitCode.OK

    def result(self) -> DocumentSlice:
        """Return the counts of what this slice wrote."""
        left_out = self._left_out + self._range_left_out
        return DocumentSlice(self._documents, self._bytes, left_out, self._code)

    def spans(self) -> Iterator[bytes]:
        """Yield the bytes of the part."""
        files = SliceFiles(self._slice, self._options.format)

        def listed(event: Event, /) -> None:
            # All slices meet it, and the one that it belongs to reports it.
            if isinstance(event, Problem):
                if files.has_path(event.path_bytes):
                    self._problems.append(event)
                    self._left_out += bool(event.code)
                    self._report(event)
            else:
                self._reporter(event)

        units = list_units(self._paths, self._options, listed, self._stop, files, self._claims)
        yield from part_start(self._options.shingle, MAGIC_OF_SLICES)
        yield from encode_section(b"SLIC", [self._encoded_slice(files, units)])
        for unit in units:
            yield from self._unit(units, unit)
        self._reporter(Progressed("read", units.bytes, units.bytes))
        yield from part_end(ordered_problems(self._problems), self._left_out)

    def _encoded_slice(self, files: SliceFiles, units: UnitList) -> bytes:
        options, roots = shared_options(self._options), root_inodes(self._paths)
        slices = SliceSet.one(self._slice, options, roots, files.totals)
        return encode_slice(self._paths, slices, units.bytes)

    def _unit(self, units: UnitList, unit: FileUnit) -> Iterator[bytes]:
        """Yield the blocks of a unit, and the range that they are of."""
        reader = UnitReader(units.files, unit, self._options.field, self._bound)
        encode = partial(encode_block, unit=self._options.shingle)
        blocks = 0
        for columns in in_order(
            encode, self._batches(reader, units), self._options.workers or usable_workers()
        ):
            self._documents += COUNTS.unpack(columns[0])[1]
            blocks += 1
            yield from encode_section(b"BLOK", columns)
        self._done += unit.bytes
        problems = reader.problems
        if reader.outcome is not None:
            yield from encode_section(b"RANG", [encode_range(FoundRange(reader.outcome, blocks))])
            problems = reader.outcome.all_problems()
            self._range_left_out += reader.outcome.left_out
        else:
            self._problems += problems
            self._left_out += reader.left_out
        for problem in problems:
            self._report(problem)

    def _report(self, problem: Problem) -> None:
        if problem.code:
            self._code = ExitCode.PARTIAL
        self._reporter(problem)

    def _batches(self, reader: UnitReader, units: UnitList) -> Iterator[TextBatch]:
        check_stop(self._stop)
        for batch in reader.batches():
            check_stop(self._stop)
            self._bytes += batch.size
            self._reporter(Progressed("read", self._done + reader.done, units.bytes))
            yield batch
