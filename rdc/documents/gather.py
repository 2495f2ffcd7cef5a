"""Reads documents into parts: without a name, or staged in a directory so that a killed run goes on there."""

from __future__ import annotations

import os
from itertools import groupby

from rdc.documents.parts.open_parts import NamelessFile, OpenParts, PartSource
from rdc.documents.parts.part_file import (
    COUNTS,
    DOCUMENT_PART,
    Block,
    BlockLayout,
    Part,
    PartRange,
    encode_block,
    encode_section,
    method,
    part_end,
    part_start,
)
from rdc.documents.read.file_kinds import FileKind, kind_of
from rdc.documents.read.file_units import FileUnit, UnitList, check_places, list_units
from rdc.documents.read.text_batch import RowProblems, StoredBound, TextBatch
from rdc.documents.read.unit_reader import UnitReader
from rdc.errors import ExitCode, RdcError, UsageError, printable
from rdc.files.own.output_file import Claims, Output, make_directory, write_output
from rdc.lean.records import Record, replace
from rdc.limits import SIZE_LIMIT
from rdc.progress import Event, Problem, Progressed, Reporter, StopSignal, check_stop
from rdc.survey.container import PartError
from rdc.survey.read import in_order, usable_workers
from rdc.survey.slices import SEARCH, check_complete, check_slices, tree_change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.model.similar import DocumentOptions


# JoinedSlices: all slices of one search together, with the rows of divided files counted through.
#
# A slice that reads a range of a JSONL file knows its rows from the first line of the range on. Only all
# slices together know how many lines come before.


class JoinedSlices:
    """Adds up whole parts, or all slices of one search."""

    def __init__(self, parts: Sequence[Part], opened: OpenParts) -> None:
        """Join `parts`; `opened`: the same parts.
        Raises UsageError if a slice is missing, given twice or of another search, and PartError for
        ranges that no search writes. Both name the part.
        """
        heads = [part.head for part in parts]
        check_slices(heads, SEARCH)
        check_complete(heads, SEARCH)
        self._opened = opened
        self.blocks = [block for part in parts for block in part.blocks]
        self.problems = [problem for part in parts for problem in part.problems]
        self.left_out = sum([part.left_out for part in parts])
        self.later: list[Problem] = []
        """The problems that no part has by itself. They are in `problems` as well."""
        ranges = sorted([one for part in parts for one in part.ranges], key=_order)
        for path, group in groupby(ranges, key=_path):
            self._add_file(path, list(group))
        change = tree_change(heads)
        if change is not None:
            self.later.append(Problem(ExitCode.PARTIAL, change.path_bytes, change.message))
        self.problems += self.later

    def _add_file(self, path: bytes, ranges: list[PartRange]) -> None:
        """Add the ranges of one file in their order, as far as it could be read."""
        numbers = [one.outcome.range.number for one in ranges]
        first = ranges[0].outcome.range
        alike = all(
            (one.outcome.range.of, one.outcome.range.size) == (first.of, first.size) for one in ranges
        )
        if not alike or numbers != list(range(first.of)):
            self._note(
                Problem(
                    ExitCode.PARTIAL,
                    path,
                    f"{printable(path)}: expected one file in all slices, found others, and left it out;"
                    " search again when nobody writes it",
                )
            )
            return
        problems, rows = RowProblems(path), 0
        failures: dict[Problem, None] = {}
        for one in ranges:
            outcome = one.outcome
            self.blocks += [self._counted(block, one, rows) for block in one.blocks]
            problems.take(outcome.problems, rows)
            if outcome.failure is not None:
                failures[outcome.failure] = None
            # Without the lines of this range, rows of later ones have no numbers.
            if not outcome.complete:
                break
            rows += outcome.lines
        for failure in failures:
            self._note(failure)
        self.left_out += problems.count
        self.later += problems.problems()

    def _note(self, problem: Problem) -> None:
        self.left_out += 1
        self.later.append(problem)

    def _counted(self, block: Block, range_: PartRange, rows: int) -> Block:
        """Return the block with the rows before its range. Raises PartError unless it is of this range."""
        layout, outcome = block.layout, range_.outcome
        last = self._opened.numbers(block, "Q", layout.rows, layout.documents - 1, 1)[0]
        # A range of lines counts them; rows of Parquet have their numbers.
        is_parquet = not outcome.lines and kind_of(outcome.path, "auto") is FileKind.PARQUET
        most = SIZE_LIMIT if is_parquet else outcome.lines
        path = self._opened.bytes(block, layout.names, layout.name_bytes)
        if layout.sources != 1 or path != outcome.path or last > most or rows + last > SIZE_LIMIT:
            raise PartError(
                f"{self._opened.name(block.part)}: forged: expected rows of {printable(outcome.path)}, found"
                " others; search again on the machine it is from"
            )
        return replace(block, rows_before=rows)


def _path(one: PartRange) -> bytes:
    return one.outcome.path


def _order(one: PartRange) -> tuple[bytes, int]:
    return one.outcome.path, one.outcome.range.number


STAGED_ENDING = ".rdcdocs"


class Gathered(Record):
    """Documents at rest, to be searched."""

    parts: OpenParts
    blocks: list[Block]
    unit: str
    """The unit of the shingles: words or chars."""
    problems: list[Problem]
    left_out: int
    units: UnitList | None = None
    """The files of the documents, if this run read them."""


def opened_parts(sources: Sequence[PartSource], reporter: Reporter, stop: StopSignal | None) -> Gathered:
    """Check parts: whole ones of the same shingles, or all slices of one search. Their problems are reported
    again.

    Raises PartError for a damaged part, and UsageError for one of other parameters or a slice that is
    missing. Both name it.
    """
    opened = OpenParts(sources)
    parts: list[Part] = []
    for number in range(len(sources)):
        check_stop(stop)
        reporter(Progressed("read", number, len(sources)))
        part = opened.check(number)
        unit = part.head.unit
        if number and unit != parts[0].head.unit:
            raise UsageError(
                f"{opened.name(number)}: shingles of {unit}, those of {opened.name(0)} are of"
                f" {parts[0].head.unit}; search again with --shingle={parts[0].head.unit}"
            )
        parts.append(part)
        for problem in part.problems:
            reporter(problem)
    joined = JoinedSlices(parts, opened)
    for problem in joined.later:
        reporter(problem)
    reporter(Progressed("read", len(sources), len(sources)))
    return Gathered(
        opened, joined.blocks, parts[0].head.unit, ordered_problems(joined.problems), joined.left_out
    )


def gather(
    paths: Sequence[bytes],
    options: DocumentOptions,
    reporter: Reporter,
    stop: StopSignal | None,
    claims: Claims | None = None,
) -> Gathered:
    """Read all documents at and below `paths`. `claims`: the results of this run. Raises StoppedError and
    UsageError."""
    walked: list[Problem] = []

    def listed(event: Event, /) -> None:
        if isinstance(event, Problem):
            walked.append(event)
        reporter(event)

    units = list_units(paths, options, listed, stop, claims=claims)
    if options.clean is not None:
        check_places(units, os.fsencode(options.clean))
    work = _Gathering(units, options, reporter, stop, claims)
    found = work.into_memory() if options.stage is None else work.into_stage(os.fsencode(options.stage))
    return Gathered(
        found.parts,
        found.blocks,
        found.unit,
        ordered_problems([*walked, *found.problems]),
        found.left_out + len([one for one in walked if one.code]),
        units,
    )


def with_older(new: Gathered, path: str) -> Gathered:
    """Add the part of an older corpus, as the last one. Its problems do not count. Raises as
    opened_parts()."""
    sources = [*new.parts.sources, PartSource(path)]
    parts = OpenParts(sources)
    old = parts.check(len(sources) - 1)
    if old.head.unit != new.unit:
        raise UsageError(
            f"{parts.name(len(sources) - 1)}: shingles of {old.head.unit}, the new documents have those of"
            f" {new.unit}; search again with --shingle={old.head.unit}"
        )
    if old.head.slices is not None:
        raise UsageError(
            f"{parts.name(len(sources) - 1)}: slice {old.head.slices.numbers[0]}/{old.head.slices.of} of an"
            " older corpus; merge its slices first: rdc merge -o FILE"
        )
    return Gathered(parts, [*new.blocks, *old.blocks], new.unit, new.problems, new.left_out, new.units)


def ordered_problems(problems: list[Problem]) -> list[Problem]:
    """Problems in an order that does not depend on how documents were divided. Those of one file keep
    theirs."""
    return sorted(problems, key=lambda problem: problem.path_bytes)


class _Gathering:
    def __init__(
        self,
        units: UnitList,
        options: DocumentOptions,
        reporter: Reporter,
        stop: StopSignal | None,
        claims: Claims | None,
    ) -> None:
        self._claims = claims
        self._units = units
        self._options = options
        self._reporter = reporter
        self._stop = stop
        self._workers = options.workers or usable_workers()
        self._done = 0
        self._bound = StoredBound()

    def into_memory(self) -> Gathered:
        """Read into a file without a name: columns one after another."""
        file = NamelessFile()
        blocks: list[Block] = []
        problems: list[Problem] = []
        left_out = 0

        def batches() -> Iterator[TextBatch]:
            nonlocal left_out
            for unit in self._units:
                reader = self._reader(unit)
                yield from self._noted(reader, unit)
                problems.extend(reader.problems)
                left_out += reader.left_out

        start = 0
        for columns in in_order(self._encode, batches(), self._workers):
            layout = BlockLayout(*COUNTS.unpack(columns[0]))
            file.append(columns)
            blocks.append(Block(0, start, layout))
            start += layout.end
        self._reporter(Progressed("read", self._units.bytes, self._units.bytes))
        return Gathered(
            OpenParts([PartSource("documents", file)]), blocks, self._options.shingle, problems, left_out
        )

    def into_stage(self, directory: bytes) -> Gathered:
        """Read into one part a unit, named by what the files are. A part that is there is not made again."""
        try:
            make_directory(directory)
        except OSError as error:
            raise RdcError(
                f"{printable(directory)}: cannot make the directory: {error.strerror}; name another with"
                " --stage",
                code=ExitCode.FILE_IO,
            ) from error
        sources = []
        for unit in self._units:
            reader = self._reader(unit)
            try:
                name = reader.key(method(self._options.shingle)) + STAGED_ENDING
            except RdcError:
                # It is read even so, which names the file.
                sources.append(self._unnamed(reader, unit))
                continue
            path = os.path.join(directory, os.fsencode(name))
            if self._claims is not None:
                self._claims.check_named([path])
            if not os.path.exists(path):
                write_output(Output(path, DOCUMENT_PART), self._part(reader, unit))
            self._done += unit.bytes
            sources.append(PartSource(os.fsdecode(path)))
        return self._opened(sources)

    def _unnamed(self, reader: UnitReader, unit: FileUnit) -> PartSource:
        file = NamelessFile()
        file.append(self._part(reader, unit))
        self._done += unit.bytes
        return PartSource("documents", file)

    def _opened(self, sources: list[PartSource]) -> Gathered:
        def report(event: Event, /) -> None:
            if isinstance(event, Problem):
                self._reporter(event)

        if not sources:
            return self.into_memory()
        return opened_parts(sources, report, self._stop)

    def _part(self, reader: UnitReader, unit: FileUnit) -> Iterator[bytes]:
        yield from part_start(self._options.shingle)
        for columns in in_order(self._encode, self._noted(reader, unit, quiet=True), self._workers):
            yield from encode_section(b"BLOK", columns)
        yield from part_end(reader.problems, reader.left_out)

    def _reader(self, unit: FileUnit) -> UnitReader:
        return UnitReader(self._units.files, unit, self._options.field, self._bound)

    def _encode(self, batch: TextBatch) -> list[bytes]:
        return encode_block(batch, self._options.shingle)

    def _noted(self, reader: UnitReader, unit: FileUnit, *, quiet: bool = False) -> Iterator[TextBatch]:
        """Yield the batches of a unit, with progress and, unless `quiet`, its problems."""
        check_stop(self._stop)
        for batch in reader.batches():
            check_stop(self._stop)
            self._reporter(Progressed("read", self._done + reader.done, self._units.bytes))
            yield batch
        if not quiet:
            self._done += unit.bytes
            for problem in reader.problems:
                self._reporter(problem)
